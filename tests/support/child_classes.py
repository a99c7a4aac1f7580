"""Part of a child script, run with the hook and without (`stock.observe`): what can be seen of a config class."""

import copy
import dataclasses
import importlib
import inspect
import json
import os
import pprint
import pydoc
import re
import sys
import traceback
import typing
import warnings

from child_configs import attempt, full_name, keywords, options

# Keywords that make TRL or transformers warn from a config's constructor, most of them with stacklevel=3.
WARN = [
    {"pad_token": "<pad>"},
    {"truncation_mode": "keep_end"},
    {"loss_type": "chunked_nll"},
    {"packing_strategy": "bfd-requeue"},
    {"use_transformers_paged": True},
    {"vllm_importance_sampling_cap": 2.0},
    {"max_new_tokens": 64, "max_length": 32},
    {"num_generations": 2, "lmbda": 0.5, "per_device_train_batch_size": 2},
    {"reverse_kl_top_1_mode": "argmax"},
    {"gradient_checkpointing": True},
]
FAIL = [
    {"nonsense": 1},
    {"eval_strategy": "bogus"},
    {"num_generations": 0},
    {"generation_batch_size": 3},
    {"loss_weights": [1.0, 2.0]},
    {"max_completion_length": 999999},
    {"auto_find_batch_size": True},
]


# What TRL's configs derive from besides TrainingArguments: up to 0.26, in 0.29, and from 1.0 on.
BASES = [
    ("trl.trainer.utils", "OnPolicyConfig"),
    ("trl.trainer.base_config", "BaseConfig"),
    ("trl.trainer.base_config", "_BaseConfig"),
]


BEGINNINGS = ("--v", "--u", "--m")  # of the extras' options


def without_addresses(text):
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def describe_field(field):
    default = field.default_factory if field.default is dataclasses.MISSING else field.default
    return {
        "type": repr(field.type),
        "type_args": [repr(part) for part in typing.get_args(field.type)],
        "default": without_addresses(repr(default)),
        "flags": [field.init, field.repr, field.compare, field.hash],
        "kw_only": field.kw_only,
        "help": field.metadata.get("help"),
    }


def describe_signature(signature):
    return [
        [p.name, str(p.kind), without_addresses(repr(p.default)), repr(p.annotation)]
        for p in signature.parameters.values()
    ] + [["return", repr(signature.return_annotation)]]


def describe_source(cls):
    root = os.path.dirname(sys.modules["trl"].__file__)
    lines, first = inspect.getsourcelines(cls)
    return {
        "source": inspect.getsource(cls),
        "lines": [len(lines), first],
        "sourcefile": os.path.relpath(inspect.getsourcefile(cls), root),
        "file": os.path.relpath(inspect.getfile(cls), root),
        "module": inspect.getmodule(cls).__name__,
        "module_is_the_loaded_one": inspect.getmodule(cls) is sys.modules[cls.__module__],
        "doc": inspect.getdoc(cls),
        "comments": inspect.getcomments(cls),
    }


def describe_routes(cls):
    """Is it the same object wherever TRL holds a class of this name?"""
    for stem in ("trainer", "config"):
        attempt(importlib.import_module, re.sub("_config$", f"_{stem}", cls.__module__))
    import trl

    for module in (trl, trl.trainer):
        attempt(getattr, module, cls.__name__)  # both load their names when asked for them
    return {
        name: vars(module)[cls.__name__] is cls
        for name, module in sorted(sys.modules.items())
        if name.split(".")[0] == "trl" and cls.__name__ in vars(module) and "Thin" not in str(type(module))
    }


def describe_body(cls):
    """What a class has itself, and what `super()` from a subclass finds past it."""
    config = object.__new__(cls)

    def passed(name):
        found = getattr(super(cls, config), name)
        return getattr(found, "__qualname__", type(found).__name__)

    methods = [
        name for name, value in vars(cls).items() if callable(getattr(cls, name)) and not isinstance(value, type)
    ]
    return {"names": list(vars(cls)), "passed": {name: attempt(passed, name) for name in methods}}


def describe(cls, written):
    mro = cls.__mro__
    return {
        "mro": [full_name(base) for base in mro],
        "as_written": [base is written.get(full_name(base)) for base in mro],
        "module": cls.__module__,
        "name": cls.__name__,
        "qualname": cls.__qualname__,
        "metaclass": full_name(type(cls)),
        "doc": cls.__doc__,
        "match_args": list(cls.__match_args__),
        "fields": {field.name: describe_field(field) for field in dataclasses.fields(cls)},
        "field_order": [field.name for field in dataclasses.fields(cls)],
        "signature": describe_signature(inspect.signature(cls)),
        "init_signature": describe_signature(inspect.signature(cls.__init__)),
        "method_names": {
            name: [value.__name__, value.__qualname__, value.__module__]
            for name in ("__init__", "__post_init__", "__repr__", "__eq__", "to_dict")
            for value in [getattr(cls, name)]
        },
        "post_init_signature": describe_signature(inspect.signature(cls.__post_init__)),
        "source": describe_source(cls),
        "source_again": describe_source(cls),
        "hints": {name: repr(hint) for name, hint in typing.get_type_hints(cls).items()},
        "body": describe_body(cls),
        "help_page": pydoc.render_doc(cls, renderer=pydoc.plaintext),
        "routes": describe_routes(cls),
    }


def describe_instance(cls):
    config = cls(**keywords(cls))
    other = cls(**keywords(cls, output_dir="elsewhere"))
    replaced = attempt(dataclasses.replace, config, learning_rate=0.125)
    return {
        "to_dict": config.to_dict(),
        "vars": {name: repr(value) for name, value in vars(config).items()},
        "json": json.loads(config.to_json_string()),
        "sanitized": config.to_sanitized_dict(),
        "repr": repr(config),
        "str": str(config),
        "pprint": pprint.pformat(config),
        "equal": [config == cls(**keywords(cls)), config == other, config == copy.copy(config), config == 1],
        "hash": type(attempt(hash, config)).__name__,
        "replaced": replaced if isinstance(replaced, str) else [full_name(type(replaced)), replaced.to_dict()],
        "set_training": cls(**keywords(cls)).set_training(learning_rate=0.5).to_dict(),
        "post_init_again": attempt(cls.__post_init__, cls(**keywords(cls))),
    }


def outcome(function, *args, **kwargs):
    """The exception and the warnings of a call: text, category, file, line, and the frames of the exception."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result, frames = "ok", []
        try:
            function(*args, **kwargs)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
            frames = [[os.path.basename(f.filename), f.name] for f in traceback.extract_tb(error.__traceback__)]
    return {
        "result": result,
        "frames": frames,
        "warnings": [
            # "<string>" is what dataclasses wrote, with a line for each field.
            [str(w.message), w.category.__name__, os.path.basename(w.filename), w.lineno * (w.filename != "<string>")]
            for w in caught
        ],
    }


def construct(cls, kwargs):
    return cls(**keywords(cls, **kwargs))  # THE CALLER'S LINE


def callers_line():
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, text in enumerate(file, 1) if text.endswith("# THE CALLER'S LINE\n"))


def describe_calls(cls):
    class Heir(cls):
        pass

    class HeirWithPostInit(cls):
        def __post_init__(self):
            super().__post_init__()

    @dataclasses.dataclass
    class DataHeir(cls):
        mine: int = 3

    names = {field.name for field in dataclasses.fields(cls)}
    calls = {"nothing": outcome(construct, cls, {}), "positional": outcome(cls, *range(500))}
    for kwargs in WARN + FAIL:
        if "nonsense" in kwargs or set(kwargs) <= names:
            calls[repr(kwargs)] = outcome(construct, cls, kwargs)
            for heir in (Heir, HeirWithPostInit, DataHeir):
                calls[f"{heir.__name__} {kwargs!r}"] = outcome(construct, heir, kwargs)
    config = cls(**keywords(cls))
    for kwargs in WARN:
        if set(kwargs) <= names:
            calls[f"replace {kwargs!r}"] = outcome(dataclasses.replace, config, **kwargs)
    return {
        "calls": calls,
        "heirs": {
            heir.__name__: {
                "signature": describe_signature(inspect.signature(heir)),
                "fields": [field.name for field in dataclasses.fields(heir)],
                "to_dict": heir(**keywords(heir)).to_dict(),
            }
            for heir in (Heir, HeirWithPostInit, DataHeir)
        },
    }


def describe_parsers(cls):
    from transformers import HfArgumentParser
    from trl import ModelConfig, ScriptArguments, TrlParser

    def among_others():
        parser = HfArgumentParser((ScriptArguments, cls, ModelConfig))
        script, config, model = parser.parse_args_into_dataclasses(options(cls, "--dataset_name", "d"))
        return [type(script).__name__, config.to_dict(), type(model).__name__]

    def abbreviations(parser):
        """What each beginning of an option stands for, if it begins as an extra's does."""
        long = [option for action in parser._actions for option in action.option_strings if option[:3] in BEGINNINGS]
        texts = sorted({option[:length] for option in long for length in range(3, len(option))})
        return {text: sorted({entry[0].dest for entry in parser._get_option_tuples(text)}) for text in texts}

    parser, trl_parser = HfArgumentParser(cls), TrlParser(cls)
    (parsed,) = parser.parse_args_into_dataclasses(options(cls))
    (by_trl,) = trl_parser.parse_args_and_config(options(cls))
    (from_dict,) = parser.parse_dict(keywords(cls))
    return {
        "parsed": [full_name(type(parsed)), parsed.to_dict()],
        "by_trl": [full_name(type(by_trl)), by_trl.to_dict()],
        "from_dict": [full_name(type(from_dict)), from_dict.to_dict()],
        "among_others": attempt(among_others),
        "options": {
            option: [without_addresses(repr(action.default)), without_addresses(repr(action.type)), action.help]
            for action in parser._actions
            for option in action.option_strings
        },
        "abbreviations": [abbreviations(parser), abbreviations(trl_parser)],
        "help": sorted(set(re.findall(r"--\w+", parser.format_help()))),
        "trl_help": sorted(set(re.findall(r"--\w+", trl_parser.format_help()))),
    }


def describe_extras(cls):
    """What only a patched class can do; without the hook, the errors of the attempt."""
    from transformers import HfArgumentParser
    from trl import TrlParser

    def from_yaml(text, *more):
        with open("config.yaml", "w", encoding="utf-8") as file:
            file.write("".join(f"{name}: {value!r}\n" for name, value in keywords(cls).items()) + text)
        (config,) = TrlParser(cls).parse_args_and_config(["--config", "config.yaml", *more])
        return config.unsloth_num_chunks

    def from_options(*more):
        (config,) = HfArgumentParser(cls).parse_args_into_dataclasses(options(cls, *more))
        return config.unsloth_num_chunks

    def from_dict():
        (config,) = HfArgumentParser(cls).parse_dict(keywords(cls, unsloth_num_chunks=4))
        return config.unsloth_num_chunks

    def from_keywords():
        params = object()
        config = cls(
            **keywords(
                cls,
                unsloth_num_chunks=4,
                unsloth_logit_chunk_multiplier=2,
                unsloth_grpo_mini_batch=1,
            ),
            vllm_sampling_params=params,
        )
        return {
            "values": [
                config.vllm_sampling_params is params,
                config.unsloth_num_chunks,
                config.unsloth_logit_chunk_multiplier,
                config.unsloth_grpo_mini_batch,
            ],
            "in to_dict": config.to_dict()["unsloth_num_chunks"],
            "in repr": "unsloth_num_chunks=4" in repr(config),
            "equal to one without": config == cls(**keywords(cls)),
        }

    def replaced():
        config = dataclasses.replace(cls(**keywords(cls, unsloth_num_chunks=4)), unsloth_logit_chunk_multiplier=3)
        return [config.unsloth_num_chunks, config.unsloth_logit_chunk_multiplier]

    def rebuilt():  # as TRL's trainers do
        values = cls(**keywords(cls, unsloth_num_chunks=4)).to_dict()
        values.pop("steps_per_generation", None)
        return cls(**values).unsloth_num_chunks

    def lengths(**kwargs):
        config = cls(**keywords(cls, **kwargs))
        return [config.max_seq_length, config.max_length]

    def mini_batch(value):
        return cls(**keywords(cls, unsloth_grpo_mini_batch=value)).unsloth_grpo_mini_batch

    size = getattr(cls(**keywords(cls)), "generation_batch_size", None)
    return {
        "by_option": attempt(from_options, "--unsloth_num_chunks", "4"),
        "by_option_wrong": attempt(from_options, "--unsloth_num_chunks", "four"),
        "by_dict": attempt(from_dict),
        "by_keyword": attempt(from_keywords),
        "by_yaml": attempt(from_yaml, "unsloth_num_chunks: 4\n"),
        "option_over_yaml": attempt(from_yaml, "unsloth_num_chunks: 4\n", "--unsloth_num_chunks", "7"),
        "replaced": attempt(replaced),
        "rebuilt": attempt(rebuilt),
        "max_seq_length": {
            "positive": attempt(lengths, max_seq_length=2048),
            "none": attempt(lengths, max_seq_length=None),
            "zero": attempt(lengths, max_seq_length=0),
            "negative": attempt(lengths, max_seq_length=-1),
            "both": attempt(lengths, max_seq_length=2048, max_length=1500),
            "max_length": attempt(lengths, max_length=1500),
            "too short": attempt(lengths, max_seq_length=1),
            "max_length too short": attempt(lambda: cls(**keywords(cls, max_length=1)).max_length),
        },
        "generation_batch_size": size,
        "mini_batch_one": attempt(mini_batch, 1),
        "mini_batch_fits": attempt(mini_batch, size or 10**6),
        "mini_batch_too_large": attempt(mini_batch, size + 1 if size else 10**6),
    }


def describe_bystander(cls):
    return {
        "mro": [full_name(base) for base in cls.__mro__],
        "vars": sorted(vars(cls)),
        "fields": [[field.name, without_addresses(repr(field.default))] for field in dataclasses.fields(cls)],
        "signature": describe_signature(inspect.signature(cls)),
    }


def bystanders():
    """Classes near to the public configs, which the hook must leave alone: those of them that this TRL has."""
    import transformers
    import trl
    import trl.trainer.model_config

    @dataclasses.dataclass
    class SFTConfig(transformers.TrainingArguments):
        """The user's own."""

        max_length: int = 3

    classes = [transformers.TrainingArguments, trl.trainer.model_config.ModelConfig, trl.ScriptArguments, SFTConfig]
    for module, name in BASES:
        base = getattr(attempt(importlib.import_module, module), name, None)
        if base is not None:

            @dataclasses.dataclass
            class MyConfig(base):
                """The user's own, from TRL's base."""

            classes += [base, MyConfig]
    return {full_name(cls): describe_bystander(cls) for cls in classes}


def describe_use(cls):
    return {
        "instance": attempt(describe_instance, cls),
        "behaviour": attempt(describe_calls, cls),
        "parsers": attempt(describe_parsers, cls),
        "extras": attempt(describe_extras, cls),
    }
