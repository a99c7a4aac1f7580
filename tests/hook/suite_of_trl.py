"""What TRL documents of its parser, command line and configs, as tests that need no network.

They know nothing of the hook; `test_suite_of_trl.py` runs them with it and without. TRL's source distribution has no
tests (1.16.0), so these are written from its documentation.
"""

import argparse
import dataclasses
import os
import sys
from pathlib import Path

import pytest
import trl
from transformers import HfArgumentParser, TrainingArguments
from trl import (
    DPOConfig,
    GRPOConfig,
    KTOConfig,
    ModelConfig,
    RewardConfig,
    RLOOConfig,
    ScriptArguments,
    SFTConfig,
    TrlParser,
)
from trl.scripts.utils import get_dataset

CONFIGS = [DPOConfig, GRPOConfig, KTOConfig, RewardConfig, RLOOConfig, SFTConfig]
PLAIN = {"output_dir": "out", "use_cpu": True, "bf16": False, "report_to": "none"}
OPTIONS = [text for name, value in PLAIN.items() for text in (f"--{name}", str(value))]
COMMANDS = ["dpo", "grpo", "kto", "reward", "rloo", "sft"]

# A value other than the default, by config: it is kept, and parsed.
VALUES = {
    DPOConfig: {
        "beta": 0.5,
        "loss_type": ["ipo"],
        "max_length": 256,
        "label_smoothing": 0.0,
        "precompute_ref_log_probs": True,
    },
    GRPOConfig: {
        "num_generations": 2,
        "max_completion_length": 32,
        "beta": 0.04,
        "temperature": 0.5,
        "scale_rewards": "none",
    },
    KTOConfig: {"beta": 0.5, "desirable_weight": 0.5, "undesirable_weight": 0.25, "max_length": 256},
    RewardConfig: {"max_length": 256, "center_rewards_coefficient": 0.1, "disable_dropout": False},
    RLOOConfig: {"num_generations": 2, "max_completion_length": 32, "beta": 0.1, "normalize_advantages": True},
    SFTConfig: {"max_length": 256, "packing": True, "dataset_text_field": "content", "completion_only_loss": True},
}

every_config = pytest.mark.parametrize("cls", CONFIGS, ids=lambda cls: cls.__name__)


@dataclasses.dataclass
class Mine:
    arg1: int
    arg2: str = "alpha"


@dataclasses.dataclass
class Reserved:
    config: str = "no"


def write(folder: Path, text: str) -> str:
    file = folder / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


# ---- the parser


def test_options_alone() -> None:
    (mine,) = TrlParser(Mine).parse_args_and_config(["--arg1", "5", "--arg2", "beta"])
    assert mine == Mine(5, "beta")


def test_a_file_gives_what_is_required(tmp_path: Path) -> None:
    (mine,) = TrlParser([Mine]).parse_args_and_config(["--config", write(tmp_path, "arg1: 23\n")])
    assert mine == Mine(23, "alpha")


def test_an_option_wins_over_the_file(tmp_path: Path) -> None:
    (mine,) = TrlParser([Mine]).parse_args_and_config(["--arg1", "1", "--config", write(tmp_path, "arg1: 23\n")])
    assert mine.arg1 == 1


def test_a_file_sets_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRL_SUITE", "before")
    TrlParser([Mine]).parse_args_and_config(["--config", write(tmp_path, "env:\n  TRL_SUITE: 7\narg1: 1\n")])
    assert os.environ["TRL_SUITE"] == "7"


def test_an_environment_that_is_no_mapping(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="env"):
        TrlParser([Mine]).parse_args_and_config(["--config", write(tmp_path, "env: yes\narg1: 1\n")])


def test_a_file_that_is_no_mapping(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mapping"):
        TrlParser([Mine]).parse_args_and_config(["--config", write(tmp_path, "- 1\n")])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        TrlParser([Mine]).parse_args_and_config(["--config", str(tmp_path / "none.yaml")])


def test_a_field_called_config_is_refused() -> None:
    with pytest.raises(ValueError, match="config"):
        TrlParser([Reserved])


def test_an_unknown_key_in_the_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unknown arguments"):
        TrlParser([Mine]).parse_args_and_config(["--config", write(tmp_path, "arg1: 1\nnonsense: 2\n")])


def test_an_unknown_option() -> None:
    with pytest.raises(ValueError, match="not used|nonsense"):
        TrlParser([Mine]).parse_args_and_config(["--arg1", "1", "--nonsense", "2"])


def test_remaining_strings(tmp_path: Path) -> None:
    mine, rest = TrlParser([Mine]).parse_args_and_config(
        ["--config", write(tmp_path, "arg1: 1\nmore: 2\n"), "--less", "3"], return_remaining_strings=True
    )
    assert mine.arg1 == 1
    assert rest == ["--more", "2", "--less", "3"]


def test_subparsers(tmp_path: Path) -> None:
    parser = TrlParser()
    commands = parser.add_subparsers(dest="command", parser_class=TrlParser)
    commands.add_parser("mine", dataclass_types=[Mine])
    result = parser.parse_args_and_config(["mine", "--config", write(tmp_path, "arg1: 9\n")])
    assert isinstance(result[0], argparse.Namespace)
    assert (result[0].command, result[0].arg1) == ("mine", 9)


# ---- the configs


@every_config
def test_defaults_by_every_parser(cls: type) -> None:
    expected = cls(**PLAIN).to_dict()
    for parser in (HfArgumentParser, TrlParser):
        (config,) = parser(cls).parse_args_into_dataclasses(OPTIONS)
        assert config.to_dict() == expected
    (config,) = HfArgumentParser(cls).parse_dict(dict(PLAIN))
    assert config.to_dict() == expected


@every_config
def test_values_are_kept(cls: type) -> None:
    config = cls(**PLAIN, **VALUES[cls])
    assert {name: getattr(config, name) for name in VALUES[cls]} == VALUES[cls]


@every_config
def test_values_by_a_file(cls: type, tmp_path: Path) -> None:
    text = "".join(f"{name}: {value!r}\n" for name, value in {**PLAIN, **VALUES[cls]}.items())
    (config,) = TrlParser(cls).parse_args_and_config(["--config", write(tmp_path, text)])
    assert {name: getattr(config, name) for name in VALUES[cls]} == VALUES[cls]


@every_config
def test_with_script_arguments_and_model_config(cls: type) -> None:
    parser = TrlParser((ScriptArguments, cls, ModelConfig))
    script, config, model = parser.parse_args_and_config([*OPTIONS, "--dataset_name", "d", "--model_name_or_path", "m"])
    assert (script.dataset_name, type(config), model.model_name_or_path) == ("d", cls, "m")


@every_config
def test_it_is_a_training_arguments(cls: type) -> None:
    assert issubclass(cls, TrainingArguments)
    assert dataclasses.is_dataclass(cls)
    assert isinstance(cls(**PLAIN), TrainingArguments)
    assert getattr(trl, cls.__name__) is cls


@every_config
def test_an_unknown_keyword(cls: type) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        cls(**PLAIN, nonsense=1)


@every_config
def test_to_dict_makes_the_same_again(cls: type) -> None:
    values = cls(**PLAIN, **VALUES[cls]).to_dict()
    values.pop("steps_per_generation", None)  # it and generation_batch_size exclude each other
    assert cls(**values).to_dict() == cls(**PLAIN, **VALUES[cls]).to_dict()


@every_config
def test_a_subclass_with_a_field(cls: type) -> None:
    @dataclasses.dataclass
    class Own(cls):
        own: int = 3

    (config,) = HfArgumentParser(Own).parse_args_into_dataclasses([*OPTIONS, "--own", "4"])
    assert config.own == 4
    assert isinstance(config, cls)


@every_config
def test_each_field_has_help(cls: type) -> None:
    own = {field.name for field in dataclasses.fields(cls)} - {f.name for f in dataclasses.fields(TrainingArguments)}
    assert not [f.name for f in dataclasses.fields(cls) if f.name in own and not f.metadata.get("help")]


@pytest.mark.parametrize("cls", [GRPOConfig, RLOOConfig])
def test_both_ways_of_saying_the_batch(cls: type) -> None:
    with pytest.raises(ValueError):
        cls(**PLAIN, num_generations=2, generation_batch_size=8, steps_per_generation=4)


def test_script_arguments_with_nothing_to_load() -> None:
    with pytest.raises((ValueError, AttributeError, TypeError)):
        get_dataset(ScriptArguments())


# ---- the command line


def run_cli(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    from trl.cli import main

    monkeypatch.setattr(sys, "argv", ["trl", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(monkeypatch, command, "--help") == 0
    assert "--output_dir" in capsys.readouterr().out


def test_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    assert not [command for command in COMMANDS if command not in shown]


def test_env(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(monkeypatch, "env") == 0
    assert trl.__version__ in capsys.readouterr().out


def test_an_unknown_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_cli(monkeypatch, "nonsense") == 2
