"""Contract 2: the extra fields, their types, where they are added and what they do."""

import json
from pathlib import Path
from typing import Any

import pytest
import stand_in
from helpers import run_child
from stock import CONFIGS, EXTRAS, extras_of, pair

every_config = pytest.mark.parametrize("name", CONFIGS)
contract = pytest.mark.contract


def extras(name: str) -> dict[str, Any]:
    """What the hooked process saw of the extra fields of one config."""
    seen: dict[str, Any] = pair("classes", name)[1]["extras"]
    return seen


def run_hooked(folder: Path, script: str) -> Any:
    done = run_child(script, env={"UNSLOTH_HOOK": "1", "PYTHONPATH": str(folder)})
    assert done.stderr == ""
    return json.loads(done.stdout)


@contract
@every_config
def test_a_config_has_the_fields_it_should_have_and_no_others(name: str) -> None:
    plain, hooked = pair("classes", name)
    assert set(hooked["fields"]) - set(plain["fields"]) == set(extras_of(plain["fields"]))


def test_max_seq_length_is_only_where_trl_has_max_length() -> None:
    """Known from TRL's documentation, so that the rule is not the only witness."""
    having = {name for name in CONFIGS if "max_seq_length" in pair("classes", name)[1]["fields"]}
    assert {"SFTConfig", "DPOConfig", "RewardConfig", "CPOConfig", "ORPOConfig", "GKDConfig"} <= having
    assert not {"GRPOConfig", "RLOOConfig", "GMPOConfig"} & having


@contract
@every_config
def test_the_fields_have_real_types_defaults_and_help(name: str) -> None:
    plain, hooked = pair("classes", name)
    for extra in extras_of(plain["fields"]):
        field = hooked["fields"][extra]
        assert (field["type_args"], field["default"]) == EXTRAS[extra]
        assert field["flags"] == [True, False, False, None]  # not in what dataclasses write for a subclass
        assert field["kw_only"]
        assert field["help"]
        assert "%" not in field["help"], "argparse would take it for a format"


@contract
@every_config
def test_keywords_are_carried(name: str) -> None:
    assert extras(name)["by_keyword"] == {
        "values": [True, 4, 2, 1],
        "in to_dict": 4,
        "in repr": True,
        "equal to one without": False,
    }


@contract
@every_config
@pytest.mark.parametrize("way", ["by_option", "by_dict", "by_yaml", "rebuilt"])
def test_a_value_arrives_by_every_way(name: str, way: str) -> None:
    plain, hooked = pair("classes", name)
    shows = ("unsloth_num_chunks", plain["parsers"] if isinstance(plain["parsers"], str) else "unsloth_num_chunks")
    assert any(text in plain["extras"][way] for text in shows), "stock TRL takes it too: this test shows nothing"
    refused = isinstance(plain["parsers"], str) and way in ("by_option", "by_yaml")  # TRL's own class is, alike
    assert hooked["extras"][way] == (plain["parsers"] if refused else 4)


@contract
@every_config
def test_an_option_wins_over_yaml(name: str) -> None:
    parsers = pair("classes", name)[0]["parsers"]
    assert extras(name)["option_over_yaml"] == (parsers if isinstance(parsers, str) else 7)


@contract
@every_config
def test_an_option_takes_whole_numbers_only(name: str) -> None:
    assert extras(name)["by_option_wrong"] == "SystemExit: 2"


@contract
@every_config
def test_replace_keeps_one_and_changes_another(name: str) -> None:
    plain, hooked = pair("classes", name)
    replaced = plain["instance"]["replaced"]
    assert hooked["extras"]["replaced"] == (replaced if isinstance(replaced, str) else [4, 3])


@contract
@every_config
def test_max_seq_length_becomes_max_length(name: str) -> None:
    plain, hooked = pair("classes", name)
    seen, stock = hooked["extras"]["max_seq_length"], plain["extras"]["max_seq_length"]
    if "max_seq_length" in plain["fields"]:  # TRL up to 0.19 has it itself, in SFTConfig
        assert seen == stock
        return
    if "max_length" not in plain["fields"]:
        error = f"TypeError: {plain['qualname']}.__init__() got an unexpected keyword argument 'max_seq_length'"
        assert {seen[way] for way in ("positive", "none", "zero", "negative", "both", "too short")} == {error}
        return
    default = plain["instance"]["to_dict"]["max_length"]
    assert seen["positive"] == [2048, 2048]
    assert seen["both"] == [2048, 2048]
    assert seen["max_length"] == [None, 1500]
    assert [seen["none"], seen["zero"], seen["negative"]] == [[None, default], [0, default], [-1, default]]
    # TRL's own checks see it: it is in place before TRL's __post_init__.
    short = stock["max_length too short"]
    assert seen["max_length too short"] == short
    assert seen["too short"] == (short if isinstance(short, str) else [1, short])


def test_some_config_does_check_max_length() -> None:
    seen = [pair("classes", name)[0]["extras"]["max_seq_length"]["max_length too short"] for name in CONFIGS]
    assert any("must be smaller than max_length" in str(outcome) for outcome in seen)


@contract
@every_config
def test_a_mini_batch_must_fit_the_generation_batch(name: str) -> None:
    plain, hooked = pair("classes", name)
    size, seen = plain["extras"]["generation_batch_size"], hooked["extras"]
    assert seen["mini_batch_one"] == 1
    assert seen["mini_batch_fits"] == (size or 10**6)
    if size is None:
        assert seen["mini_batch_too_large"] == 10**6
    else:
        error = seen["mini_batch_too_large"]
        assert error.startswith(f"ValueError: unsloth_grpo_mini_batch ({size + 1})")
        assert f"generation_batch_size ({size})" in error


def test_some_configs_have_a_generation_batch_and_some_have_none() -> None:
    having = {name for name in CONFIGS if pair("classes", name)[0]["extras"]["generation_batch_size"]}
    assert {"GRPOConfig", "RLOOConfig", "GMPOConfig"} <= having
    assert "SFTConfig" not in having


def test_a_field_that_trl_declares_itself_is_not_added(tmp_path: Path) -> None:
    """A stand-in for a TRL to come, or of the past: it has fields of the same names."""
    text = stand_in.CONFIG.format(name="OwnConfig") + (
        "    unsloth_num_chunks: int = 7\n    max_seq_length: str = 'TRL'\n"
        "    vllm_sampling_params: dict | None = None\n"
    )
    script = """
        import dataclasses, inspect, json, unsloth_hook
        from trl.trainer.own_config import OwnConfig
        config = OwnConfig(unsloth_logit_chunk_multiplier=2, max_seq_length="3")
        print(json.dumps({
            "config": dataclasses.asdict(config),
            "types": {f.name: str(f.type) for f in dataclasses.fields(OwnConfig) if f.name == "max_seq_length"},
            "own": list(vars(OwnConfig)["__annotations__"]),
            "init": list(inspect.signature(OwnConfig.__init__).parameters),
            "status": unsloth_hook.status()["classes"],
        }))
    """
    seen = run_hooked(stand_in.make(tmp_path, {"trl/trainer/own_config.py": text}), script)
    assert seen["config"] == {
        "output_dir": "out",
        "max_length": 7,
        "unsloth_num_chunks": 7,
        "max_seq_length": "3",
        "vllm_sampling_params": None,
        "unsloth_logit_chunk_multiplier": 2,
        "unsloth_grpo_mini_batch": None,
    }
    assert seen["types"] == {"max_seq_length": "<class 'str'>"}
    added = ["unsloth_logit_chunk_multiplier", "unsloth_grpo_mini_batch"]
    of_trl = ["unsloth_num_chunks", "max_seq_length", "vllm_sampling_params"]
    assert seen["own"] == ["max_length", *of_trl, *added]
    assert seen["init"] == ["self", "output_dir", "max_length", *of_trl, *added]
    assert seen["status"] == {"trl.trainer.own_config.OwnConfig": {"state": "patched", "fields": added}}


def test_a_config_that_has_them_all_is_left_as_it_is(tmp_path: Path) -> None:
    """A stand-in for a TRL that has taken the fields over."""
    text = stand_in.CONFIG.format(name="OwnConfig") + "".join(f"    {name}: int | None = 1\n" for name in EXTRAS)
    script = """
        import inspect, json
        from trl.trainer.own_config import OwnConfig
        names = [list(inspect.signature(what).parameters) for what in (OwnConfig, OwnConfig.__init__)]
        print(json.dumps([[base.__name__ for base in OwnConfig.__mro__], names]))
    """
    mro, (of_class, of_init) = run_hooked(stand_in.make(tmp_path, {"trl/trainer/own_config.py": text}), script)
    assert mro == ["OwnConfig", "TrainingArguments", "object"]
    assert of_class == ["output_dir", "max_length", *EXTRAS]
    assert of_init == ["self", *of_class], "fields of TRL's own were hidden"


def test_a_new_field_is_one_line_of_the_table(tmp_path: Path) -> None:
    folder = stand_in.make(
        tmp_path,
        {
            "trl/trainer/own_config.py": stand_in.CONFIG.format(name="OwnConfig"),
            "trl/trainer/heir_config.py": stand_in.HEAD
            + "from .own_config import OwnConfig\n@dataclass\nclass HeirConfig(OwnConfig):\n    more: int = 1\n",
        },
    )
    script = """
        import inspect, json
        from unsloth_hook import fields
        seen = []
        fields.FIELDS += (
            fields.Field("brand_new", "str", "new", "Help.", given=lambda config, value: seen.append(value)),
        )
        from trl.trainer.heir_config import HeirConfig, OwnConfig
        configs = [OwnConfig(), OwnConfig(brand_new="x"), HeirConfig(more=2, brand_new="y"), OwnConfig(brand_new=None)]
        print(json.dumps([
            [config.brand_new for config in configs],
            seen,
            [list(inspect.signature(cls).parameters)[-1] for cls in (OwnConfig, HeirConfig)],
            [vars(config).get("brand_new") for config in configs],
        ]))
    """
    values, seen, last, stored = run_hooked(folder, script)
    assert values == ["new", "x", "y", None]
    assert seen == ["x", "y"], "a rule ran for a field that was not set, or not once"
    assert last == ["brand_new", "brand_new"]
    assert stored == [None, "x", "y", None]


# As TRL 0.27 and 0.28 have them: the class has moved, and its old module keeps a subclass of the same name that warns.
SHIM = (
    stand_in.HEAD
    + """import warnings
from ..experimental.orpo.orpo_config import ORPOConfig as _ORPOConfig

@dataclass
class ORPOConfig(_ORPOConfig):
    def __post_init__(self):
        warnings.warn("ORPOConfig has moved", FutureWarning, stacklevel=3)
        super().__post_init__()
"""
)


def test_a_shim_of_trl_027_gets_the_fields_once(tmp_path: Path) -> None:
    """A stand-in: the TRL that the tests run with has no shims."""
    folder = stand_in.make(
        tmp_path,
        {
            "trl/experimental/orpo/orpo_config.py": stand_in.CONFIG.format(name="ORPOConfig"),
            "trl/trainer/orpo_config.py": SHIM,
        },
    )
    script = """
        import dataclasses, inspect, json, pickle, pickletools, warnings
        from trl.trainer.orpo_config import ORPOConfig as shim
        from trl.experimental.orpo.orpo_config import ORPOConfig as moved
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            config = shim(max_seq_length=3)
        line = inspect.currentframe().f_lineno - 1
        data = [pickle.dumps(moved()), pickle.dumps(config)]
        print(json.dumps({
            "fields": [field.name for field in dataclasses.fields(shim)],
            "bases": [shim.__bases__ == (moved,), shim.__mro__[1] is moved],
            "warnings": [[str(w.message), w.filename == __file__, w.lineno == line] for w in caught],
            "modules": [[op[1] for op in pickletools.genops(d) if op[0].name.endswith("UNICODE")][0] for d in data],
            "types": [type(pickle.loads(data[0])) is moved, type(pickle.loads(data[1])) is shim],
            "max_length": config.max_length,
            "init": list(inspect.signature(shim.__init__).parameters),
        }))
    """
    seen = run_hooked(folder, script)
    assert sorted(seen["fields"]) == sorted(["output_dir", "max_length", *EXTRAS])
    assert seen["bases"] == [True, True]
    assert seen["warnings"] == [["ORPOConfig has moved", True, True]]
    assert seen["modules"] == ["trl.experimental.orpo.orpo_config", "trl.trainer.orpo_config"]
    assert seen["types"] == [True, True]
    assert seen["max_length"] == 3
    assert sorted(seen["init"]) == sorted(["self", "output_dir", "max_length", *EXTRAS])
