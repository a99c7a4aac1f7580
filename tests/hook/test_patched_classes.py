"""Contract 1: every public config is swapped from the start, and cannot be told from TRL's but by its extra fields."""

import importlib.metadata
import json
import re
from functools import partial
from typing import Any

import helpers
import pytest
import stand_in
import stock
from helpers import run_child
from stock import CONFIGS, EXTRAS, extras_of, pair, without_extras

every_config = pytest.mark.parametrize("name", CONFIGS)
contract = pytest.mark.contract


def classes(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return pair("classes", name)


def cannot_be_parsed_for(name: str) -> bool:
    """Does every parser refuse TRL's own class (SDPOConfig in 1.8: a default of another type)? Then ours, alike."""
    plain, hooked = classes(name)
    if isinstance(plain["parsers"], dict):
        return False
    assert hooked["parsers"] == plain["parsers"] == "SystemExit: 2"
    return True


def bases_with_fields(name: str) -> dict[str, list[str]]:
    """Full names of the public configs in a config's stock mro, each with the extras that it needs by itself."""
    seen = stock.observe()["stock"]["classes"]
    full = {f"{entry['module']}.{entry['qualname']}": entry for entry in seen.values()}
    needs: dict[str, list[str]] = {}
    inherited: list[str] = []
    for base in reversed([base for base in seen[name]["mro"] if base in full]):
        needs[base] = [extra for extra in extras_of(full[base]["fields"]) if extra not in inherited]
        inherited += needs[base]
    return needs


@contract
def test_the_walk_finds_every_public_config() -> None:
    seen = stock.observe()
    assert len(CONFIGS) >= 14
    assert sorted(seen["stock"]["classes"]) == sorted(CONFIGS)
    assert sorted(seen["hooked"]["classes"]) == sorted(CONFIGS)


@contract
def test_every_config_is_patched_or_inherits_or_is_left_with_the_reason() -> None:
    """As `status()` says; in a release that was tried, it says what is on record (docs/versions.md)."""
    said = dict(stock.observe()["hooked"]["status"])
    told = {stock.DECLARED[name]: said.pop(stock.DECLARED[name]) for name in stock.DECLARED}
    for name, full in stock.DECLARED.items():
        if name in CONFIGS:
            needs = bases_with_fields(name)[full]
            assert told[full]["state"] == ("patched" if needs else "inherited"), full
            assert set(told[full]["fields"]) == set(extras_of(classes(name)[0]["fields"])), full
        else:
            assert told[full] == {"state": "left", "reason": "it does not derive from transformers.TrainingArguments"}
    for full, entry in said.items():
        module = full.rpartition(".")[0]
        assert entry == {"state": "left", "reason": f"{module} holds no config of a trainer"}, full
    states, release = {full: entry["state"] for full, entry in told.items()}, importlib.metadata.version("trl")
    assert states == stock.RELEASES.get(release, states), f"TRL {release}: see tests/releases/release_tables.py"


@contract
@every_config
def test_mro_has_the_pristine_class_right_behind_the_patched_one(name: str) -> None:
    """A class that inherits all the fields from a patched base stays as it is: no second class."""
    plain, hooked = classes(name)
    needs = bases_with_fields(name)
    assert hooked["mro"] == [entry for base in plain["mro"] for entry in [base] * (2 if needs.get(base) else 1)]
    if needs[plain["mro"][0]]:
        assert hooked["as_written"][:2] == [False, True], "__mro__[1] is not the class that TRL's class statement made"
    else:
        assert hooked["as_written"][0], "a config that inherits the fields was replaced"


@pytest.mark.parametrize("name", ["GKDConfig", "GOLDConfig", "GMPOConfig"])
def test_an_inheriting_config_is_the_one_that_trl_wrote(name: str) -> None:
    plain, hooked = classes(name)
    assert plain["as_written"][0]
    assert hooked["as_written"][0]
    assert sorted(hooked["field_order"]) == sorted({*plain["field_order"], *extras_of(plain["fields"])})


@contract
@every_config
@pytest.mark.parametrize("key", ["module", "name", "qualname", "metaclass", "doc", "match_args", "method_names"])
def test_names_are_as_stock(name: str, key: str) -> None:
    plain, hooked = classes(name)
    assert hooked[key] == plain[key]
    assert "<locals>" not in json.dumps(hooked[key])


@contract
@every_config
def test_source_is_as_stock_each_time_it_is_asked_for(name: str) -> None:
    plain, hooked = classes(name)
    assert re.match(rf"(#.*\n|@dataclass\n)*class {plain['name']}\b", plain["source"]["source"])
    assert hooked["source"] == plain["source"]
    assert hooked["source_again"] == plain["source"]


@contract
@every_config
def test_one_object_by_every_route(name: str) -> None:
    plain, hooked = classes(name)
    assert hooked["routes"][hooked["module"]]
    assert hooked["routes"] == plain["routes"]
    if [stock.DECLARED[key].rpartition(".")[2] for key in CONFIGS].count(plain["name"]) == 1:  # no shim of that name
        assert set(hooked["routes"].values()) == {True}


def test_the_four_routes_to_a_stable_config_are_among_those_checked() -> None:
    routes = classes("SFTConfig")[1]["routes"]
    assert {"trl", "trl.trainer", "trl.trainer.sft_config", "trl.trainer.sft_trainer"} <= set(routes)


@contract
@every_config
def test_trl_fields_are_as_stock_and_in_trl_order(name: str) -> None:
    plain, hooked = classes(name)
    assert without_extras(hooked["fields"], plain["fields"]) == plain["fields"]
    extras = extras_of(plain["fields"])
    assert [field for field in hooked["field_order"] if field not in extras] == plain["field_order"]
    own = bases_with_fields(name)[plain["mro"][0]]
    assert not own or hooked["field_order"][-len(own) :] == own


@contract
@every_config
def test_signature_of_the_class_is_trl_parameters_then_the_extras(name: str) -> None:
    plain, hooked = classes(name)
    *trl, returns = plain["signature"]
    extras = extras_of(plain["fields"])
    assert hooked["signature"][: len(trl)] == trl
    assert [parameter[0] for parameter in hooked["signature"][len(trl) : -1]] == extras
    assert {parameter[1] for parameter in hooked["signature"][len(trl) : -1]} == {"KEYWORD_ONLY"}
    assert [parameter[2] for parameter in hooked["signature"][len(trl) : -1]] == [EXTRAS[extra][1] for extra in extras]
    assert hooked["signature"][-1] == returns


@contract
@every_config
def test_signature_of_init_is_that_of_the_class(name: str) -> None:
    plain, hooked = classes(name)
    assert plain["init_signature"][0][0] == "self"
    assert hooked["init_signature"] == [
        plain["init_signature"][0],
        *hooked["signature"][:-1],
        plain["init_signature"][-1],
    ]
    assert hooked["post_init_signature"] == plain["post_init_signature"]


@contract
@every_config
@pytest.mark.parametrize("heir", ["Heir", "HeirWithPostInit", "DataHeir"])
def test_signature_and_fields_of_a_subclass(name: str, heir: str) -> None:
    plain, hooked = (seen["behaviour"]["heirs"][heir] for seen in classes(name))
    extras = extras_of(plain["fields"])
    assert [parameter for parameter in hooked["signature"] if parameter[0] not in extras] == plain["signature"]
    assert [parameter[0] for parameter in hooked["signature"]][-1 - len(extras) : -1] == extras
    assert [field for field in hooked["fields"] if field not in extras] == plain["fields"]
    assert sorted(set(hooked["fields"]) - set(plain["fields"])) == sorted(extras)
    assert hooked["to_dict"] == plain["to_dict"]


@contract
@every_config
def test_type_hints_are_as_stock(name: str) -> None:
    plain, hooked = classes(name)
    assert without_extras(hooked["hints"], plain["hints"]) == plain["hints"]
    assert set(hooked["hints"]) - set(plain["hints"]) == set(extras_of(plain["fields"]))


@contract
@every_config
def test_it_has_itself_what_trls_body_has(name: str) -> None:
    plain, hooked = (seen["body"] for seen in classes(name))
    assert set(plain["names"]) <= set(hooked["names"])


@contract
@every_config
def test_super_of_a_subclass_passes_what_it_passes_on_stock(name: str) -> None:
    """`super(SFTConfig, self).method()`: past TRL's own, to what TRL's class inherits."""
    plain, hooked = (seen["body"]["passed"] for seen in classes(name))
    assert {method: hooked[method] for method in plain} == plain
    assert name != "SFTConfig" or plain["__init__"] != "SFTConfig.__init__"


@contract
@every_config
def test_an_abbreviation_means_an_option_of_trls_where_it_can(name: str) -> None:
    if cannot_be_parsed_for(name):
        return
    for plain, hooked in zip(*(seen["parsers"]["abbreviations"] for seen in classes(name)), strict=True):
        assert {text: hooked[text] for text in plain} == plain
        assert "max_steps" in plain["--max_s"]
        assert hooked["--unsloth_n"] == ["unsloth_num_chunks"]


@contract
@every_config
def test_help_page_shows_the_doc_and_the_extras(name: str) -> None:
    plain, hooked = (seen["help_page"] for seen in classes(name))
    assert hooked.splitlines()[0] == plain.splitlines()[0]
    assert all(extra in hooked for extra in extras_of(classes(name)[0]["fields"]))
    doc = [line.strip(" |") for line in hooked.splitlines()]
    assert {line.strip(" |") for line in plain.splitlines() if "onfiguration class" in line} <= set(doc)


@contract
@every_config
@pytest.mark.parametrize("key", ["to_dict", "vars", "json", "sanitized"])
def test_values_and_defaults_are_as_stock(name: str, key: str) -> None:
    plain, hooked = (seen["instance"][key] for seen in classes(name))
    assert list(hooked.items()) == list(plain.items())


@contract
@every_config
@pytest.mark.parametrize("key", ["equal", "hash", "post_init_again"])
def test_equality_and_hash_are_as_stock(name: str, key: str) -> None:
    plain, hooked = (seen["instance"] for seen in classes(name))
    assert hooked[key] == plain[key]


@contract
@every_config
def test_replace_is_as_stock(name: str) -> None:
    plain, hooked = (seen["instance"]["replaced"] for seen in classes(name))
    assert hooked == plain  # some of TRL's configs cannot be replaced: an error, as text


@contract
@every_config
def test_set_training_is_as_stock(name: str) -> None:
    plain, hooked = (seen["instance"]["set_training"] for seen in classes(name))
    assert hooked == plain


@contract
@every_config
@pytest.mark.parametrize("key", ["repr", "str", "pprint"])
def test_what_it_prints_is_as_stock(name: str, key: str) -> None:
    plain, hooked = (seen["instance"][key] for seen in classes(name))
    assert hooked == plain


@contract
@every_config
def test_constructor_errors_are_as_stock(name: str) -> None:
    """Text, type and frames: nothing of ours is in the traceback of TRL's own error."""
    plain, hooked = (seen["behaviour"]["calls"] for seen in classes(name))
    assert plain["{'nonsense': 1}"]["result"].startswith(
        f"TypeError: {classes(name)[0]['name']}.__init__() got an unexpected keyword"
    )
    assert {call: seen["result"] for call, seen in hooked.items()} == {c: seen["result"] for c, seen in plain.items()}
    assert {call: seen["frames"] for call, seen in hooked.items()} == {c: seen["frames"] for c, seen in plain.items()}


@contract
@every_config
def test_constructor_warnings_are_as_stock(name: str) -> None:
    """Text, category, file and line: they point at the caller, not at us."""
    plain, hooked = (seen["behaviour"]["calls"] for seen in classes(name))
    assert {call: seen["warnings"] for call, seen in hooked.items()} == {
        call: seen["warnings"] for call, seen in plain.items()
    }


def test_the_warnings_compared_do_point_at_the_callers_line() -> None:
    source = (stock.SUPPORT / "child_classes.py").read_text(encoding="utf-8").splitlines()
    line = 1 + next(number for number, text in enumerate(source) if text.endswith("# THE CALLER'S LINE"))
    for name, kwargs in (
        ("SFTConfig", {"pad_token": "<pad>"}),
        ("SFTConfig", {"truncation_mode": "keep_end"}),
        ("DPOConfig", {"truncation_mode": "keep_end"}),
        ("GRPOConfig", {"use_transformers_paged": True}),
        ("RewardConfig", {"pad_token": "<pad>"}),
        ("OnlineDPOConfig", {"max_new_tokens": 64, "max_length": 32}),
    ):
        for heir in ("", "Heir "):
            caught = classes(name)[1]["behaviour"]["calls"][f"{heir}{kwargs!r}"]["warnings"]
            assert ["child_classes.py", line] in [warning[2:] for warning in caught], (name, heir, kwargs)


@contract
@every_config
@pytest.mark.parametrize("key", ["parsed", "by_trl", "from_dict", "among_others"])
def test_parsers_round_trip_as_stock(name: str, key: str) -> None:
    if cannot_be_parsed_for(name):
        return
    plain, hooked = (seen["parsers"][key] for seen in classes(name))
    assert hooked == plain  # ModelConfig has an option that some of TRL's configs have too: an error, as text


@contract
@every_config
def test_parser_options_are_as_stock_with_the_extras_added(name: str) -> None:
    if cannot_be_parsed_for(name):
        return
    plain, hooked = (seen["parsers"] for seen in classes(name))
    extras = extras_of(classes(name)[0]["fields"])
    assert without_extras(hooked["options"], plain["options"]) == plain["options"]
    assert {f"--{extra}" for extra in extras} <= set(hooked["options"])
    for extra in extras:
        assert hooked["options"][f"--{extra}"][2], "no help for this option"


@contract
@every_config
@pytest.mark.parametrize("key", ["help", "trl_help"])
def test_parser_help_prints_and_lists_the_extras(name: str, key: str) -> None:
    if cannot_be_parsed_for(name):
        return
    plain, hooked = (set(seen["parsers"][key]) for seen in classes(name))
    assert plain <= hooked
    assert {f"--{extra}" for extra in extras_of(classes(name)[0]["fields"])} <= hooked


@contract
def test_what_lies_beside_the_public_configs_is_untouched() -> None:
    """TRL's base, its model config and script arguments, transformers' class, and the user's own SFTConfig."""
    seen = stock.observe()
    assert len(seen["stock"]["bystanders"]) in (4, 6)  # TRL 0.27 and 0.28 have no such base
    assert seen["hooked"]["bystanders"] == seen["stock"]["bystanders"]


ORDERS = {
    "from the package first": "from trl import SFTConfig as first",
    "from its module first": "from trl.trainer.sft_config import SFTConfig as first",
    "from the trainer's module first": "from trl.trainer.sft_trainer import SFTConfig as first",
    "transformers first": "from transformers import TrainingArguments; from trl.trainer import SFTConfig as first",
}

SAME_EVERYWHERE = """
import json, sys
{order}
import trl, trl.trainer, trl.trainer.sft_config, trl.trainer.sft_trainer
from child_configs import keywords
import unsloth_hook
names = ("trl", "trl.trainer", "trl.trainer.sft_config", "trl.trainer.sft_trainer")
print(json.dumps([
    [sys.modules[name].SFTConfig is first for name in names],
    unsloth_hook.is_patched(first),
    first(**keywords(first)).to_dict(),
], default=str))
"""


@helpers.once
def by_import_order() -> Any:
    jobs = {name: partial(stock.run, SAME_EVERYWHERE.format(order=order), "1") for name, order in ORDERS.items()}
    return stock.at_once(**jobs)


@pytest.mark.parametrize("order", ORDERS)
def test_any_import_order_gives_the_same_patched_class(order: str) -> None:
    same, patched, values = by_import_order()[order]
    assert same == [True] * 4
    assert patched
    assert values == classes("SFTConfig")[0]["instance"]["to_dict"]


def test_only_public_classes_that_config_modules_define_are_patched(tmp_path: Any) -> None:
    """A stand-in for TRL, which has no such modules to be wrong about."""
    own = stand_in.CONFIG.format(name="OwnConfig")
    files = {
        "trl/trainer/good_config.py": own.replace("Own", "Good") + stand_in.CONFIG.format(name="_PrivateConfig"),
        "trl/trainer/borrowing_config.py": "from .good_config import GoodConfig as Base\n"
        "from somebody import OwnConfig\nAliasConfig = OwnConfig\nclass OtherConfig: max_length = 3\n"
        + stand_in.CONFIG.format(name="Configuration"),
        "trl/trainer/other_config.py": own.replace("from transformers.training_args", "from .training_args"),
        "trl/trainer/training_args.py": stand_in.TRANSFORMERS,
        "trl/trainer/base_config.py": own.replace("Own", "Base"),
        "trl/trainer/model_config.py": own.replace("Own", "Model"),
        "trl/trainer/_hidden_config.py": own,
        "trl/trainer/config.py": own,
        "trl/trainer/good_configs.py": own,
        "trl/trainer/deep/deep_config.py": own,
        "trl/scripts/script_config.py": own,
        "trl/top_config.py": own,
        "trl/experimental/flat_config.py": own,
        "trl/experimental/good/good_config.py": own.replace("Own", "Good"),
        "trl/experimental/_hidden/hidden_config.py": own,
        "trl/experimental/good/deep/deep_config.py": own,
        "trlx/trainer/good_config.py": own,
        "somebody/__init__.py": own,
        "my/trl/trainer/sft_config.py": own,
    }
    stand_in.make(tmp_path, files)
    modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files]
    script = f"""
        import importlib, json, sys, unsloth_hook
        print(json.dumps({{
            f"{{module}}:{{name}}": unsloth_hook.is_patched(value)
            for module in {modules!r}
            for name, value in vars(importlib.import_module(module)).items()
            if isinstance(value, type)
        }}))
    """
    done = run_child(script, env={"UNSLOTH_HOOK": "1", "PYTHONPATH": str(tmp_path)})
    assert done.stderr == ""
    patched = {name for name, value in json.loads(done.stdout).items() if value}
    assert patched == {
        "trl.trainer.good_config:GoodConfig",
        "trl.trainer.borrowing_config:Base",  # the same object, imported from where it is defined
        "trl.experimental.good.good_config:GoodConfig",
    }


def test_an_alias_beside_its_class_is_the_same_patched_class(tmp_path: Any) -> None:
    """A stand-in for TRL, which has renamed classes so."""
    text = stand_in.CONFIG.format(name="NewConfig") + "\nOldConfig = NewConfig\n"
    stand_in.make(tmp_path, {"trl/trainer/new_config.py": text})
    script = """
        import json, pickle
        from trl.trainer.new_config import NewConfig, OldConfig
        loaded = pickle.loads(pickle.dumps(OldConfig()))
        print(json.dumps([NewConfig is OldConfig, len(NewConfig.__mro__), type(loaded) is NewConfig]))
    """
    done = run_child(script, env={"UNSLOTH_HOOK": "1", "PYTHONPATH": str(tmp_path)})
    assert json.loads(done.stdout) == [True, 4, True]


def test_only_what_dataclasses_wrote_is_written_anew(tmp_path: Any) -> None:
    """A stand-in for TRL: its real configs write none of these by hand, or all alike."""
    body = """
    def __repr__(self): return "by hand"
    def __eq__(self, other): return "equal by hand"
    def __hash__(self): return 7
    def __lt__(self, other): return "less by hand"
    def __post_init__(self):
        self.seen = getattr(self, "unsloth_num_chunks", "nothing")
"""
    text = stand_in.HEAD + "@dataclass\nclass HandConfig(TrainingArguments):\n    max_length: int = 7\n" + body
    ordered = (
        stand_in.HEAD
        + "@dataclass(order=True, unsafe_hash=True)\nclass OrderedConfig(TrainingArguments):\n    a: int = 1\n"
    )
    bare = stand_in.HEAD + "class BareConfig(TrainingArguments):\n    pass\n"
    stand_in.make(
        tmp_path,
        {
            "trl/trainer/hand_config.py": text,
            "trl/trainer/ordered_config.py": stand_in.HEAD + ordered,
            "trl/trainer/bare_config.py": bare,
        },
    )
    script = """
        import json, unsloth_hook
        from trl.trainer.hand_config import HandConfig
        from trl.trainer.ordered_config import OrderedConfig
        from trl.trainer.bare_config import BareConfig
        config = HandConfig(unsloth_num_chunks=4)
        ordered = [OrderedConfig(a=1, unsloth_num_chunks=n) for n in (4, 5)]
        print(json.dumps([
            repr(config), config == 3, hash(config), config < config, config.seen,
            ordered[0] < ordered[1], hash(ordered[0]) == hash(ordered[1]), ordered[0] == ordered[1],
            [unsloth_hook.is_patched(cls) for cls in (HandConfig, OrderedConfig, BareConfig)],
            BareConfig(unsloth_num_chunks=3).unsloth_num_chunks,
        ]))
    """
    done = run_child(script, env={"UNSLOTH_HOOK": "1", "PYTHONPATH": str(tmp_path)})
    result = json.loads(done.stdout)
    assert result[:5] == ["by hand", "equal by hand", 7, "less by hand", 4]
    assert result[5:8] == [False, True, False], "equality alone knows the extra fields; order and hash are TRL's"
    assert result[8:] == [[True, True, True], 3]
