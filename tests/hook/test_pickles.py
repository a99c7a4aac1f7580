"""Contract 3: a patched config pickles to what TRL's pickles to, and opens wherever TRL's opens."""

import json
from pathlib import Path
from typing import Any

import helpers
import pytest
import stock
from helpers import run_child
from stock import CONFIGS, EXTRAS, extras_of, pair

every_config = pytest.mark.parametrize("name", CONFIGS)
contract = pytest.mark.contract

FORMS = [
    *(f"protocol-{number}" for number in range(6)),
    "python-pickler",
    "multiprocessing",
    "dill",
    "cloudpickle",
    "torch-zip",
    "torch-legacy",
    "torch-dill",
]
FOREIGN = ("unsloth", "copyreg.", "copy_reg.", "builtins.", "__builtin__.", "functools.", "typing.", "dataclasses._")


def pickles(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return pair("pickles", name)


@contract
@every_config
@pytest.mark.parametrize("form", FORMS)
def test_globals_are_as_stock(name: str, form: str) -> None:
    """The same names in the same order; protocols 0 and 1, which nobody promised, too."""
    plain, hooked = (seen["globals"][form] for seen in pickles(name))
    assert hooked == plain
    if form not in ("protocol-0", "protocol-1"):
        module = pair("classes", name)[0]["module"]
        assert hooked[0] == f"{module}.{pair('classes', name)[0]['name']}"
        assert not [found for found in hooked if found.startswith(FOREIGN)]


@contract
@every_config
@pytest.mark.parametrize("form", [*FORMS, "copy", "deepcopy"])
def test_it_comes_back_as_the_same_class_with_the_same_state(name: str, form: str) -> None:
    same_class, same_object, same_state = pickles(name)[1]["round_trip"][form]
    assert (same_class, same_object, same_state) == (True, False, True)


@contract
@every_config
def test_the_class_itself_pickles_by_its_name(name: str) -> None:
    plain, hooked = pickles(name)
    assert hooked["class"] == plain["class"]
    assert hooked["class"][1]
    assert hooked["reduced"] == plain["reduced"]


@contract
@every_config
@pytest.mark.parametrize("form", ["torch-zip", "torch-legacy"])
def test_weights_only_has_the_same_outcome_and_needs_the_same_allow_list(name: str, form: str) -> None:
    plain, hooked = (seen[form] for seen in pickles(name))
    assert hooked["unsafe"] == plain["unsafe"]
    assert "Weights only load failed" in plain["default"]
    assert hooked["default"] == plain["default"], "the default of torch.load was changed"
    assert hooked["refused"] == plain["refused"]
    cls, state = plain["allowed"]
    assert hooked["allowed"][0] == cls
    extras = extras_of(pair("classes", name)[0]["fields"])
    expected = {field: value for field, value in state.items() if field not in extras}
    assert {field: value for field, value in hooked["allowed"][1].items() if field not in extras} == expected
    assert hooked["allowed"][1]["unsloth_num_chunks"] == "4"


def test_the_allow_list_of_sft_config_has_nine_names() -> None:
    assert len(pickles("SFTConfig")[1]["torch-zip"]["unsafe"]) == 9


@contract
@every_config
def test_a_subclass_in_main_drags_nothing_of_the_hook_into_cloudpickle(name: str) -> None:
    plain, hooked = (seen["heirs"] for seen in pickles(name))
    assert hooked["Heir"] == plain["Heir"]
    assert hooked["DataHeir"]["pickle"] == plain["DataHeir"]["pickle"]
    # A dataclass carries its Field objects with it, so also the types of ours.
    assert not [found for found in hooked["DataHeir"]["cloudpickle"] if "unsloth" in found.lower()]
    assert set(plain["DataHeir"]["cloudpickle"]) <= set(hooked["DataHeir"]["cloudpickle"])


# Opens every file in some folders. It imports nothing but what the loading imports.
READ = """
import json, pickle, sys

if {block}:
    class Block:
        def find_spec(self, name, path=None, target=None):
            if "unsloth" in name.lower() and name != "unsloth":  # TRL asks find_spec about that one
                raise ModuleNotFoundError(f"{{name}} is blocked here", name=name)

    sys.meta_path.insert(0, Block())

import os, torch, warnings

warnings.simplefilter("ignore")
seen, before = {{}}, set(sys.modules)
for file in [os.path.join(folder, name) for folder in sys.argv[1:] for name in sorted(os.listdir(folder))]:
    if ".torch-" in file:
        config = torch.load(file, weights_only=False)
    else:
        with open(file, "rb") as stream:
            config = pickle.load(stream)
    if not seen:
        new = [module for module in set(sys.modules) - before if "unsloth" in module.lower()]
    cls = type(config)
    seen[file] = {{
        "class": f"{{cls.__module__}}.{{cls.__qualname__}}",
        "declared": [extra for extra in {extras!r} if extra in cls.__dataclass_fields__],
        "values": {{extra: getattr(config, extra) for extra in {extras!r} if hasattr(config, extra)}},
        "attributes": {{extra: value for extra, value in vars(config).items() if extra in {extras!r}}},
        "others": [config.note, config.learning_rate, getattr(config, "field_of_old", None)],
        "dict": config.to_dict()["output_dir"],
        "again": cls.__module__ == "__main__" or type(pickle.loads(pickle.dumps(config))) is cls,
        "shown": config.output_dir in repr(config),
        "equal": config == config,
        "owner": getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls,
    }}
print(json.dumps({{"seen": seen, "new": new, "any": [name for name in sys.modules if "unsloth" in name.lower()]}}))
"""


def read(*folders: str, hook: bool) -> dict[str, Any]:
    stock.observe()
    done = run_child(
        READ.format(block=not hook, extras=list(EXTRAS)),
        options=[] if hook else ["-I"],
        env={"UNSLOTH_HOOK": "1" if hook else None, "TRL_EXPERIMENTAL_SILENCE": "1"},
        args=[str(stock.folders()[folder]) for folder in folders],
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@helpers.once
def readings() -> dict[str, dict[str, Any]]:
    """The hook's files opened where it is blocked, and stock's and the hook's opened where it is on."""
    return stock.at_once(
        without=lambda: read("hooked", hook=False),
        hooked=lambda: read("stock", "hooked", hook=True),
    )


def files_of(name: str, written_by: str, read: str) -> dict[str, dict[str, Any]]:
    """The files of one config by form, less those of its subclasses in `__main__`, and less fields of TRL's own."""
    own = [extra for extra in EXTRAS if extra in pair("classes", name)[0]["fields"]]
    files = {}
    for file, entry in readings()[read]["seen"].items():
        key, _, form = Path(file).name.partition(".")
        if Path(file).parent.name == written_by and key == name and "Heir" not in form:
            of_extras = {
                part: {extra: value for extra, value in entry[part].items() if extra not in own}
                for part in ("values", "attributes")
            }
            declared = [extra for extra in entry["declared"] if extra not in own]
            files[form] = {**entry, **of_extras, "declared": declared}
    return files


@contract
@every_config
def test_it_opens_where_the_hook_is_blocked(name: str) -> None:
    """In `python -I`: as TRL's class, the extra that was set surviving as a plain attribute."""
    extras = extras_of(pair("classes", name)[0]["fields"])
    files = files_of(name, "hooked", "without")
    assert set(files) == {*FORMS, "other-release"}
    for form, seen in files.items():
        assert seen["class"] == stock.DECLARED[name], form
        assert seen["declared"] == []
        assert seen["attributes"] == ({} if form == "other-release" or not extras else {"unsloth_num_chunks": 4})
        assert seen["others"][0] == "set by hand"
        assert (seen["dict"], seen["again"], seen["shown"], seen["owner"]) == ("out", True, True, True)


@contract
@every_config
def test_subclasses_in_main_open_where_the_hook_is_blocked(name: str) -> None:
    for heir in ("Heir", "DataHeir"):
        seen = readings()["without"]["seen"][str(stock.folders()["hooked"] / f"{name}.cloudpickle-{heir}")]
        assert seen["class"] == f"__main__.{heir}"
        assert seen["values"]["unsloth_num_chunks"] == 4


@contract
def test_nothing_of_the_hook_was_there() -> None:
    assert readings()["without"]["any"] == []


@contract
@every_config
def test_a_stock_file_opens_under_the_hook(name: str) -> None:
    """As the patched class; extras that the file lacks answer with their defaults."""
    extras = extras_of(pair("classes", name)[0]["fields"])
    files = files_of(name, "stock", "hooked")
    assert set(files) == {*FORMS, "other-release"}
    for form, seen in files.items():
        assert seen["class"] == stock.DECLARED[name], form
        assert set(seen["declared"]) == set(extras)
        chunks = -1 if form == "other-release" else 4
        assert seen["values"] == {extra: chunks if extra == "unsloth_num_chunks" else None for extra in extras}
        assert set(seen["attributes"]) <= {"unsloth_num_chunks"}, "the file had no others"
        assert (seen["dict"], seen["again"], seen["shown"], seen["equal"]) == ("out", True, True, True)
        assert seen["owner"]


@contract
@every_config
def test_a_file_of_another_release_answers_with_defaults_and_keeps_the_old(name: str) -> None:
    seen = files_of(name, "stock", "hooked")["other-release"]
    default = pair("classes", name)[0]["instance"]["to_dict"]["learning_rate"]
    assert seen["others"] == ["set by hand", default, 3]


@contract
@every_config
def test_a_file_of_the_hook_opens_under_the_hook(name: str) -> None:
    extras = extras_of(pair("classes", name)[0]["fields"])
    files = files_of(name, "hooked", "hooked")
    assert set(files) == {*FORMS, "other-release"}
    for form, seen in files.items():
        assert set(seen["declared"]) == set(extras)
        chunks = -1 if form == "other-release" else 4
        assert seen["values"] == {extra: chunks if extra == "unsloth_num_chunks" else None for extra in extras}
        assert seen["again"] and seen["equal"] and seen["owner"]


@contract
def test_opening_a_checkpoint_under_the_hook_imports_none_of_unsloths_modules() -> None:
    """Those of ours that a swap needs may come with it."""
    seen = readings()["hooked"]
    assert seen["any"], "the hook was not on"
    assert [name for name in seen["new"] if name.partition(".")[0] != "unsloth_hook"] == []


WORKERS = """
import json, multiprocessing, os, sys
from concurrent.futures import ThreadPoolExecutor

def describe(config):
    cls = type(config)
    return [
        f"{cls.__module__}.{cls.__qualname__}",
        sys.modules[cls.__module__].SFTConfig is cls,
        "unsloth_num_chunks" in cls.__dataclass_fields__,
        config.unsloth_num_chunks, config.dataset_num_proc, config.note,
    ]

def work(config):
    return config, describe(config)

def ask(method, config):
    with multiprocessing.get_context(method).Pool(1) as pool:
        returned, seen = pool.apply_async(work, (config,)).get(timeout=1200)
    return {"child": seen, "returned": describe(returned), "equal": returned == config}

def main():
    from trl.trainer.sft_config import SFTConfig

    config = SFTConfig("out", use_cpu=True, bf16=False, unsloth_num_chunks=4, dataset_num_proc=48)
    config.note = "by hand"
    result = {"fork": ask("fork", config)}
    with ThreadPoolExecutor(2) as pool:
        methods = ("spawn", "forkserver")
        result.update(zip(methods, pool.map(ask, methods, (config, config))))
    os.environ["UNSLOTH_HOOK"] = "0"
    result["spawn without the hook"] = ask("spawn", config)
    print(json.dumps(result))

if __name__ == "__main__":
    main()
"""


def test_workers_get_the_same_class_and_give_it_back() -> None:
    """As argument and as result; the user's own numbers arrive. A worker without the hook gets TRL's class."""
    seen = json.loads(run_child(WORKERS, env={"UNSLOTH_HOOK": "1"}).stdout.splitlines()[-1])
    facts = ["trl.trainer.sft_config.SFTConfig", True, True, 4, 48, "by hand"]
    for method in ("fork", "spawn", "forkserver"):
        assert seen[method] == {"child": facts, "returned": facts, "equal": True}, method
    without = [*facts[:2], False, *facts[3:]]
    assert seen["spawn without the hook"] == {"child": without, "returned": facts, "equal": True}
