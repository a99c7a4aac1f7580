"""Command lines, files and dicts that become a config, alone or beside dataclasses of somebody else's."""

import argparse
import dataclasses
import json
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cattrs
import dacite
import hydra.utils
import jsonargparse
import pydantic
import simple_parsing
import trl
import tyro
import yaml
from idiom import OPTIONS, PLAIN, attempt, dotted, make, own_fields, parse
from omegaconf import OmegaConf
from transformers import HfArgumentParser
from trl import DPOConfig, GRPOConfig, ModelConfig, ScriptArguments, SFTConfig, TrlParser


@dataclass
class _Lengths(ScriptArguments):
    """What two of eight public scripts that were looked at have."""

    max_seq_length: int = field(default=512, metadata={"help": "longest sequence of the dataset"})


@dataclass
class _AllFive:
    vllm_sampling_params: str = "none"
    unsloth_num_chunks: int = 1
    unsloth_logit_chunk_multiplier: float = 0.5
    unsloth_grpo_mini_batch: int = 2
    max_seq_length: int = 3


def _lengths(*configs: Any) -> list[Any]:
    return [
        {"max_length": each.max_length} if isinstance(each, (SFTConfig, DPOConfig)) else vars(each) for each in configs
    ]


def own_length_first() -> Any:
    """open-instruct, courses: `TrlParser((ScriptArguments, SFTConfig, ModelConfig))`, `max_seq_length` in the first."""
    parser = TrlParser((_Lengths, SFTConfig, ModelConfig))
    parsed = parser.parse_args_and_config(
        [*OPTIONS, "--max_seq_length", "99", "--dataset_name", "d", "--max_length", "64"]
    )
    return _lengths(*parsed[:2])


def own_length_last() -> Any:
    """The same in the other order: `TrlParser((SFTConfig, ModelConfig, DataArguments))`."""
    parser = TrlParser((SFTConfig, ModelConfig, _Lengths))
    config, _, script = parser.parse_args_and_config([*OPTIONS, "--max-seq-length", "99", "--max_length=64"])
    return _lengths(config, script)


def own_length_not_given() -> Any:
    """The same, with nothing on the command line: everybody has his own default."""
    return _lengths(*parse((_Lengths, SFTConfig))), _lengths(*parse((DPOConfig, _Lengths)))


def all_five_names_beside() -> Any:
    """HfArgumentParser, and a dataclass with every one of the names."""
    options = ("--unsloth_num_chunks", "7", "--unsloth_logit_chunk_multiplier", "0.25", "--max_seq_length", "9")
    return own_fields(parse((_AllFive, SFTConfig), *options)[0], parse((SFTConfig, _AllFive), *options)[1])


def own_length_in_yaml() -> Any:
    """`parse_yaml_file`: alignment-handbook's recipes, one file for three dataclasses."""
    text = yaml.safe_dump({**PLAIN, "max_seq_length": 99, "max_length": 64, "dataset_name": "d"})
    Path("recipe.yaml").write_text(text, encoding="utf-8")
    return _lengths(*HfArgumentParser((_Lengths, SFTConfig)).parse_yaml_file("recipe.yaml"))


def own_length_in_json() -> Any:
    """`parse_json_file(json_file=os.path.abspath(sys.argv[1]))`: peft's and course scripts."""
    Path("args.json").write_text(json.dumps({**PLAIN, "max_seq_length": 99, "max_length": 64}), encoding="utf-8")
    return _lengths(*HfArgumentParser((SFTConfig, _Lengths)).parse_json_file(json_file=os.path.abspath("args.json")))


def own_length_in_a_dict() -> Any:
    """LLaMA-Factory, hparams/parser.py: `parser.parse_dict(args, allow_extra_keys=...)`."""
    values = {**PLAIN, "max_seq_length": 99, "max_length": 64}
    parser = HfArgumentParser((_Lengths, DPOConfig))
    return _lengths(*parser.parse_dict(values)), attempt(parser.parse_dict, {**values, "nothing_of_theirs": 1})


def own_length_in_trls_file() -> Any:
    """`--config recipe.yaml` of TRL's parser, an option over it, and `env:` in the file."""
    values = {**PLAIN, "max_seq_length": 99, "max_length": 64, "env": {"IDIOM_VARIABLE": "set"}}
    Path("c.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    parser = TrlParser((_Lengths, SFTConfig))
    parsed = parser.parse_args_and_config(["--config", "c.yaml", "--max_length", "32", "--dataset_name", "d"])
    return _lengths(*parsed), os.environ.get("IDIOM_VARIABLE")


def keys_that_nobody_takes() -> Any:
    """Recipes written for another release: an unknown key in TRL's file, and what the error says."""
    Path("c.yaml").write_text(yaml.safe_dump({**PLAIN, "no_such_key": 1}), encoding="utf-8")
    parser = TrlParser((ScriptArguments, SFTConfig))
    arguments = ["--config", "c.yaml", "--dataset_name", "d"]
    extra = attempt(lambda: parser.parse_args_and_config(arguments, fail_with_unknown_args=False)[2:])
    return attempt(parser.parse_args_and_config, arguments), extra


def remaining_strings() -> Any:
    """`return_remaining_strings=True`, `parse_known_args`: scripts that hand the rest on to another program."""
    rest = HfArgumentParser((SFTConfig,)).parse_args_into_dataclasses(
        args=[*OPTIONS, "--max_length", "5", "--no_such_option", "1"], return_remaining_strings=True
    )[1:]
    return rest, TrlParser((SFTConfig,)).parse_args_and_config(
        [*OPTIONS, "--nothing=1"], return_remaining_strings=True
    )[1:]


def option_made_by_hand() -> Any:
    """Profiling scripts: `parser.add_argument("--max_seq_length")` on TRL's parser, before the configs are parsed."""
    parser = TrlParser((SFTConfig, ModelConfig))
    parser.add_argument("--max_seq_length", type=int, default=512)
    parser.add_argument("--trace-path", default=None)
    *configs, rest = parser.parse_args_into_dataclasses([*OPTIONS, "--max_seq_length", "9", "--trace-path", "p"])
    return configs[0].max_length, vars(rest)


def abbreviations() -> Any:
    """Shell scripts that write options short: argparse takes any beginning that is unique."""
    config = parse((GRPOConfig,), "--max_s", "3", "--temp", "0.5", "--logging_f=true")[0]
    refused = [_refusal((SFTConfig,), option) for option in ("--num=1", "--nothing=1")]
    return config.max_steps, config.temperature, config.logging_first_step, refused


def abbreviations_of_an_own_option() -> Any:
    """The same for an option of the script: `--max_seq 9`, beside a config."""
    return [
        own_fields(parse(classes, "--max_seq", "9")[classes.index(_AllFive)])
        for classes in ((_AllFive, SFTConfig), (SFTConfig, _AllFive))
    ]


def _refusal(classes: Any, *options: str) -> Any:
    """The last line of what argparse prints, or the options that were taken."""
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stderr(text), contextlib.redirect_stdout(text):
        try:
            parse(classes, *options)
        except (SystemExit, ValueError) as error:
            return f"{type(error).__name__} {error} {text.getvalue().strip().splitlines()[-1:]}"
    return "taken"


def aliases() -> Any:
    """`field(metadata={"aliases": [...]})` and HfArg of transformers: a short name for an own field."""

    @dataclass
    class Aliased:
        length: int = field(default=1, metadata={"aliases": ["--max_seq_length", "-l"], "help": "length"})

    return [
        vars(parse(classes, *option)[classes.index(Aliased)])
        for classes in ((Aliased, SFTConfig), (SFTConfig, Aliased))
        for option in (("-l", "2"), ("--max_seq_length", "3"))
    ]


def field_renamed_by_dest() -> Any:
    """A parser whose namespace is read by hand: `parse_known_args()`, then `vars(namespace)`."""
    parser = HfArgumentParser((_Lengths,))
    parser._add_dataclass_arguments(SFTConfig)
    namespace, rest = parser.parse_known_args([*OPTIONS, "--max_seq_length", "9", "--dataset_name", "d"])
    return namespace.max_seq_length, namespace.max_length, rest


def subcommand() -> Any:
    """TRL's command line: `make_parser(subparsers)` of trl.scripts, options and defaults of a file."""
    from trl.scripts.sft import make_parser

    root = TrlParser(prog="trl")
    subparsers = root.add_subparsers(dest="command", parser_class=TrlParser)
    make_parser(subparsers)
    parser = make_parser()
    parsed = attempt(parser.parse_args_and_config, [*OPTIONS, "--dataset_name", "d", "--max_length", "5"])
    if isinstance(parsed, str):
        return parsed
    return [type(each).__name__ for each in parsed], parsed[1].max_length, sorted(subparsers.choices)


def own_classes_over_trls() -> Any:
    """open-r1: `TrlParser((GRPOScriptArguments, GRPOConfig, ModelConfig))`, each over TRL's."""

    @dataclass
    class GRPOScriptArguments(ScriptArguments):
        reward_funcs: list[str] = field(default_factory=lambda: ["accuracy"])

    @dataclass
    class OpenGRPOConfig(trl.GRPOConfig):
        benchmarks: list[str] = field(default_factory=list)
        max_seq_length: int = 5

    parser = TrlParser((GRPOScriptArguments, OpenGRPOConfig, ModelConfig))
    arguments = [
        *OPTIONS,
        "--dataset_name",
        "d",
        "--benchmarks",
        "a",
        "b",
        "--max_seq_length",
        "6",
        "--reward_funcs",
        "x",
    ]
    script, config, model = parser.parse_args_and_config(arguments)
    return script.reward_funcs, config.benchmarks, config.max_seq_length, vars(model)


def yaml_and_options() -> Any:
    """alignment-handbook's H4ArgumentParser and open-instruct's: a file, and `--name=value` over it by `fields()`."""

    class H4ArgumentParser(HfArgumentParser):
        def parse_yaml_and_args(self, file: str, options: list[str]) -> list[Any]:
            given = dict(option.lstrip("-").split("=", 1) for option in options)
            used: dict[str, str] = {}
            outputs = []
            for read in self.parse_yaml_file(os.path.abspath(file)):
                keys = {each.name for each in dataclasses.fields(read) if each.init}
                inputs = {name: value for name, value in vars(read).items() if name in keys}
                for name, text in given.items():
                    if name not in keys:
                        continue
                    kind = type(read).__dataclass_fields__[name].type
                    inputs[name] = kind(text) if kind in (int, float) else text
                    if name in used:
                        raise ValueError(f"Duplicate argument provided: {name}, may cause unexpected behavior")
                    used[name] = text
                outputs.append(type(read)(**inputs))
            return outputs

    Path("c.yaml").write_text(yaml.safe_dump({**PLAIN, "max_length": 64, "dataset_name": "d"}), encoding="utf-8")
    parsed = H4ArgumentParser((ScriptArguments, SFTConfig)).parse_yaml_and_args(
        "c.yaml", ["--learning_rate=0.5", "--run_name=r"]
    )
    return vars(parsed[0]), parsed[1].learning_rate, parsed[1].run_name, parsed[1].max_length, parsed[1].to_dict()


def own_parser_by_fields() -> Any:
    """Fallback parsers of cluster scripts: an option for each of `fields()`, with one's own added before."""
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    for each in dataclasses.fields(SFTConfig):
        parser.add_argument(f"--{each.name}", default=None)
    parser.add_argument("--max_seq_length", type=int, default=10)
    namespace = parser.parse_args(["--learning_rate", "0.5", "--max_seq_length", "20"])
    given = {name: value for name, value in vars(namespace).items() if value is not None}
    return given, make(
        SFTConfig, learning_rate=float(given["learning_rate"]), max_length=given["max_seq_length"]
    ).max_length


def options_that_help_shows() -> Any:
    """`--help`: documentation generators and shell completions read the options."""
    text = HfArgumentParser((SFTConfig,), prog="train").format_help()
    return re.findall(r"^  (--[a-z0-9_]+)", text, re.M)


def help_beside_own_option() -> Any:
    """`--help` of a script that has `max_seq_length` itself: the option is there once, with the script's words."""
    text = HfArgumentParser((_Lengths, SFTConfig), prog="train").format_help()
    return len(re.findall(r"^  --max_seq_length", text, re.M)), "longest sequence of the dataset" in text


def merged_namespaces() -> Any:
    """LLaVA-like scripts: `Namespace(**vars(model_args), **vars(data_args), **vars(training_args))`."""
    script, config, model = parse((_Lengths, SFTConfig, ModelConfig), "--dataset_name", "d", "--max_seq_length", "9")
    names = {name: value for name, value in vars(config).items() if name not in vars(model)}
    merged = argparse.Namespace(**vars(script), **names, **vars(model))
    return merged.max_seq_length, sorted(vars(merged))


def yaml_straight_into_the_class() -> Any:
    """Notebooks: `SFTConfig(**yaml.safe_load(file))`, and the file of another release."""
    values = yaml.safe_load(yaml.safe_dump({**PLAIN, "max_length": 12, "learning_rate": 1e-4}))
    return SFTConfig(**values).to_dict(), attempt(SFTConfig, **values, no_such_option=1)


def a_flag_and_a_list() -> Any:
    """Options of TRL's own: flags, lists, dicts as JSON; each release takes others."""
    config = parse((SFTConfig,), "--packing", "--no_remove_unused_columns", "--max_length", "7")[0]
    lists = ("--loss_weights", "0.5", "0.5", "--loss_type", "sigmoid", "hinge")
    refused = [_refusal((DPOConfig,), *lists), _refusal((SFTConfig,), "--model_init_kwargs", '{"a": 1}')]
    return config.packing, config.remove_unused_columns, config.max_length, refused


def jsonargparse_options() -> Any:
    """jsonargparse and LightningCLI: the class's parameters are options, and all of them are handed to it."""
    given = {**PLAIN, "max_length": 5}
    options = [f"--args.{name}={str(value).lower()}" for name, value in given.items()]
    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(SFTConfig, "args")
    parser.add_argument("--max_seq_length", type=int, default=3)
    parsed = parser.parse_args([*options, "--max_seq_length=4"])
    config = parser.instantiate_classes(parsed).args
    return config.max_length, parsed.max_seq_length, config.to_dict(), list(vars(config))


def jsonargparse_type() -> Any:
    """The same with the class as the type of one option: `--config=file.yaml`, `--config.beta`."""
    Path("config.yaml").write_text(yaml.safe_dump({**PLAIN, "beta": 0.5}), encoding="utf-8")
    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--config", type=DPOConfig)
    config = parser.instantiate_classes(parser.parse_args(["--config=config.yaml", "--config.seed=7"])).config
    refused = attempt(parser.parse_args, ["--config=config.yaml", "--config.no_such_option=7"])
    return dotted(type(config)), config.beta, config.seed, config.to_dict(), list(vars(config)), refused


def tyro_command() -> Any:
    """tyro.cli, as CleanRL's scripts use it: a dataclass that has a length beside a config class it does not show."""

    @dataclass
    class Command:
        max_seq_length: int = 5
        config: tyro.conf.Suppress[type] = SFTConfig

    command = tyro.cli(Command, args=["--max-seq-length", "6"])
    return command.max_seq_length, command.config is SFTConfig


def simple_parsing_dataclass() -> Any:
    """simple_parsing's `parser.add_arguments(SFTConfig, dest="cfg")`, with an option of the script's own."""

    @dataclass
    class Small(SFTConfig):
        max_seq_length: int = 3

    def run() -> Any:
        parser = simple_parsing.ArgumentParser(add_option_string_dash_variants=simple_parsing.DashVariant.UNDERSCORE)
        parser.add_arguments(Small, dest="cfg")
        config = parser.parse_args([*OPTIONS, "--max_seq_length", "4", "--max_length", "64"]).cfg
        return config.max_length, config.max_seq_length

    try:
        return attempt(run)
    except SystemExit as error:
        return f"SystemExit {error}"


def hydra_target() -> Any:
    """Hydra recipes: `_target_: trl.SFTConfig`, and `_partial_: true`."""
    node = OmegaConf.create({"_target_": "trl.SFTConfig", **PLAIN, "max_length": "${length}", "length": 7})
    del node["length"]
    whole = OmegaConf.create({"length": 7, "args": node})
    config = hydra.utils.instantiate(whole.args)
    partial = hydra.utils.instantiate({**PLAIN, "_target_": "trl.DPOConfig", "_partial_": True})
    return type(config).__qualname__, config.max_length, config.to_dict(), partial(beta=0.7).beta


def omegaconf_structured() -> Any:
    """AReaL and Hetu: `OmegaConf.merge(OmegaConf.structured(SFTConfig), cfg)`, which TRL's unions are too much for."""

    @dataclass
    class Experiment:
        max_seq_length: int = 5
        trainer: Any = None

    merged = OmegaConf.merge(OmegaConf.structured(Experiment), {"trainer": {**PLAIN, "max_length": 6}})
    experiment = OmegaConf.to_object(merged)
    config = SFTConfig(**experiment.trainer)
    return (
        attempt(lambda: sorted(OmegaConf.structured(SFTConfig))),
        config.max_length,
        OmegaConf.to_yaml(OmegaConf.create(config.to_dict())),
    )


def dacite_dict() -> Any:
    """dacite's `from_dict(SFTConfig, resolved)`."""
    loose = dacite.Config(check_types=False, strict=True)
    config = dacite.from_dict(SFTConfig, {**PLAIN, "max_length": 7}, loose)
    return config.to_dict(), attempt(
        dacite.from_dict, SFTConfig, {**PLAIN, "nothing": 1}, dacite.Config(check_types=False, strict=True)
    )


def cattrs_structure() -> Any:
    """cattrs: a class of the script's own with a length, and a config left as it is."""
    converter = cattrs.Converter()
    converter.register_structure_hook(SFTConfig, lambda values, cls: cls(**values))
    config = converter.structure({**PLAIN, "max_length": 8}, SFTConfig)
    return config.to_dict(), converter.structure({"max_seq_length": 9}, _AllFive).max_seq_length


def pydantic_adapter() -> Any:
    """pydantic models that hold a config: FastAPI services which start training runs."""

    class Job(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        max_seq_length: int = 3
        args: Any = None
        kind: type[SFTConfig] = SFTConfig

    job = Job(args=make(SFTConfig), kind=trl.SFTConfig)
    return (
        job.kind is SFTConfig,
        job.args.max_length,
        attempt(Job, kind=int),
        job.model_dump(include={"max_seq_length"}),
    )


def arguments_of_the_process() -> Any:
    """Scripts without an argument list: `sys.argv` is read, and an `.args` file beside it."""
    Path("train.args").write_text("--max_length 21 --max_seq_length 4", encoding="utf-8")
    sys.argv = [os.path.abspath("train.py"), *OPTIONS, "--max_length", "22"]
    config, own = HfArgumentParser((SFTConfig, _Lengths)).parse_args_into_dataclasses(look_for_args_file=True)
    return _lengths(config, own)


def simple_parsing_class() -> Any:
    """The same with TRL's class itself, which is then made with every option."""
    parser = simple_parsing.ArgumentParser()
    parser.add_arguments(SFTConfig, dest="cfg")
    config = parser.parse_args([*OPTIONS, "--max_length", "5"]).cfg
    return config.max_length, config.to_dict(), list(vars(config))


def pydantic_validates_the_class() -> Any:
    """pydantic takes dataclasses as they are: `TypeAdapter(SFTConfig).validate_python(values)`."""
    configs = [
        pydantic.TypeAdapter(cls).validate_python({**PLAIN, "learning_rate": "0.5"}) for cls in (SFTConfig, GRPOConfig)
    ]
    return [[config.learning_rate, config.to_dict(), list(vars(config))] for config in configs]


def schema_by_pydantic() -> Any:
    """Forms of web services: the JSON schema of a config."""
    return list(pydantic.TypeAdapter(SFTConfig).json_schema()["properties"])
