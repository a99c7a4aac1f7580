"""Contracts 1, 2, 5 and 6: what `replace`, a late subclass, `inspect` and somebody else's finder make of an extra."""

import json
import textwrap
from pathlib import Path
from typing import Any

import helpers
import pytest
import stock
from stock import EXTRAS

REPLACED = """
import copy, dataclasses, json, sys
from child_configs import attempt, keywords
from trl import SFTConfig

@dataclasses.dataclass
class Heir(SFTConfig):
    mine: int = 1

    def __post_init__(self):
        super().__post_init__()

@dataclasses.dataclass
class Longer(SFTConfig):
    max_length: int = 77

def lengths(config):
    return [config.max_seq_length, config.max_length]

told = {}
for cls in (SFTConfig, Heir, Longer):
    five = cls(**keywords(cls, max_seq_length=5))
    by_hand = cls(**keywords(cls, max_seq_length=5))
    by_hand.max_length = 9
    told[cls.__name__] = {
        "five": lengths(five),
        "another length": lengths(dataclasses.replace(five, max_length=7)),
        "to the default": lengths(dataclasses.replace(five, max_length=1024)),
        "another extra": lengths(dataclasses.replace(five, max_seq_length=6)),
        "both": lengths(dataclasses.replace(five, max_seq_length=6, max_length=7)),
        "something else": lengths(dataclasses.replace(five, learning_rate=1.0)),
        "by hand": lengths(dataclasses.replace(by_hand, learning_rate=1.0)),
        "copy.replace": lengths(copy.replace(five, max_length=7)) if sys.version_info >= (3, 13) else [5, 7],
        "anew": lengths(cls(**keywords(cls, max_seq_length=5, max_length=7))),
    }
print(json.dumps(told))
"""


@helpers.once
def replaced() -> Any:
    return stock.run(REPLACED, "1")


@pytest.mark.parametrize("cls", ["SFTConfig", "Heir", "Longer"])
def test_replace_changes_what_is_asked_for(cls: str) -> None:
    assert replaced()[cls] == {
        "five": [5, 5],
        "another length": [5, 7],
        "to the default": [5, 1024],
        "another extra": [6, 6],
        "both": [6, 6],
        "something else": [5, 5],
        "by hand": [5, 9],
        "copy.replace": [5, 7],
        "anew": [5, 5],
    }


LATE = """
import dataclasses, json, sys
from child_configs import attempt, keywords
import trl
from trl import DPOConfig, SFTConfig

@dataclasses.dataclass
class Heir(SFTConfig):
    mine: list = dataclasses.field(default_factory=list)
    number: int = 3
    derived: int = dataclasses.field(init=False, default=4)

    def __init_subclass__(cls):
        seen.append(cls.__name__)

seen = []

@dataclasses.dataclass
class Further(Heir):
    max_seq_length: str = "mine"

@dataclasses.dataclass(kw_only=True)
class Required(SFTConfig):
    needed: int

class Plain(DPOConfig):
    def __init__(self, *args, mine=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.mine = mine

before = {cls.__name__: repr(cls(**keywords(cls), **more)) for cls, more in
          ((Heir, {}), (Further, {}), (Required, {"needed": 1}), (Plain, {}))}
import unsloth_hook
unsloth_hook.install()
told = {}
for cls, more in ((Heir, {"number": 5}), (Further, {"number": 5}), (Required, {"needed": 5}), (Plain, {"mine": 5})):
    config = cls(**keywords(cls), **more, unsloth_num_chunks=2)
    plain = cls(**keywords(cls), **{**more, "needed": 1} if "needed" in more else {})
    told[cls.__name__] = {
        "patched": unsloth_hook.is_patched(cls),
        "took": [config.unsloth_num_chunks, *[getattr(config, name) for name in more]],
        "same repr as before": repr(plain) == before[cls.__name__],
        "fields": sorted({field.name for field in dataclasses.fields(cls)} & set(sys.argv[1:])),
        "length": cls(**keywords(cls), **more, max_seq_length=7).max_length,
        "replaced": dataclasses.replace(config, unsloth_num_chunks=3).unsloth_num_chunks if cls is Required else 3,
        "wrong": attempt(lambda: cls(**keywords(cls), **more, nope=1)),
    }
told["subclasses seen"] = seen
print(json.dumps(told))
"""


def test_a_subclass_made_before_a_late_switch_takes_the_fields() -> None:
    told = stock.run(LATE, None, *EXTRAS)
    assert told.pop("subclasses seen") == ["Further"], "the hook makes no subclass of a user's class"
    for cls, seen in told.items():
        assert seen["patched"]
        assert seen["took"] == [2, 5], cls
        assert seen["same repr as before"], cls
        assert seen["fields"] == sorted(EXTRAS), cls
        assert seen["length"] == (1024 if cls == "Further" else 7), cls
        assert seen["replaced"] == 3
        assert "unexpected keyword argument 'nope'" in seen["wrong"]


SIGNATURES = """
import importlib, inspect, json, pathlib, sys, tempfile
import unsloth_hook
from child_configs import keywords
folder = tempfile.mkdtemp()
for package in ("unsloth", "unsloth_zoo"):  # stand-ins: the real ones take half a minute; see tests/unsloth
    pathlib.Path(folder, package).mkdir()
    pathlib.Path(folder, package, "__init__.py").write_text("from . import part\\n")
    pathlib.Path(folder, package, "part.py").write_text("")
sys.path.insert(0, folder)

def shown(cls):
    parameters = [inspect.signature(each).parameters for each in (cls, cls.__init__)]
    return [[name for name in names if name in sys.argv[3:]] for names in parameters]

import trl
from trl import SFTConfig
from trl.experimental.gkd.gkd_config import GKDConfig
before = [shown(SFTConfig), shown(GKDConfig)]
importlib.util.find_spec(sys.argv[1])
probed = shown(SFTConfig)
if sys.argv[2] == "uninstall":
    unsloth_hook.uninstall()
else:
    importlib.import_module(sys.argv[1])
after = [shown(SFTConfig), shown(GKDConfig)]
from trl import DPOConfig  # Unsloth is there by now
after += [shown(DPOConfig)] if sys.argv[2] == "import" else []
attributes = sorted(set(vars(SFTConfig.__init__)) & {"__signature__"})
took = SFTConfig(**keywords(SFTConfig), unsloth_num_chunks=3).unsloth_num_chunks
print(json.dumps([before, probed, after, attributes, took]))
"""


@pytest.mark.parametrize(
    ("package", "how"), [("unsloth", "import"), ("unsloth_zoo", "import"), ("unsloth", "uninstall")]
)
def test_init_shows_trls_parameters_alone_once_unsloth_comes(package: str, how: str) -> None:
    """Or once nobody would notice that it comes. Unsloth writes a class from them, and adds the same fields."""
    before, probed, after, attributes, took = stock.run(SIGNATURES, "1", package, how, *EXTRAS)
    all_of_them = list(EXTRAS)
    assert before == [[all_of_them, all_of_them]] * 2
    assert probed == [all_of_them, all_of_them]
    for of_class, of_init in after:
        assert (of_class, of_init) == (all_of_them, [])
    assert attributes == ["__signature__"]
    assert took == 3


IN_FRONT = """
import json, sys, unsloth_hook
import trl
from child_configs import keywords
from importlib.machinery import PathFinder

class Theirs:  # answers for all of a package, as typeguard's import hook does
    def find_spec(self, name, path=None, target=None):
        return PathFinder.find_spec(name, path, target) if name.partition(".")[0] == "trl" else None

sys.meta_path.insert(0, Theirs())
from trl import SFTConfig
import wave  # anything that has not been imported
import colorsys
finders = [type(finder).__name__ for finder in sys.meta_path]
print(json.dumps([
    unsloth_hook.is_patched(trl.SFTConfig),
    SFTConfig(**keywords(SFTConfig), unsloth_num_chunks=4).unsloth_num_chunks,
    [finders.count("PostImportFinder"), finders[0]],
    unsloth_hook.status()["bypassed"],
    [wave.__spec__.loader is wave.__loader__, type(wave.__loader__).__name__],
]))
"""


def test_what_a_finder_in_front_hid_is_swapped_at_the_next_import() -> None:
    patched, chunks, finders, bypassed, loader = stock.run(IN_FRONT, "1")
    assert patched
    assert chunks == 4
    assert finders == [1, "PostImportFinder"]
    assert bypassed == {}
    assert loader == [True, "SourceFileLoader"]


WRITE = """
import json
from child_configs import keywords, public_configs
print(json.dumps({name: cls(**keywords(cls)).to_dict() for name, cls in public_configs().items()}))
"""
READ = """
import json, sys
from child_configs import attempt, public_configs
with open(sys.argv[1], encoding="utf-8") as file:
    told = json.load(file)
print(json.dumps({name: str(attempt(lambda: cls(**told[name]).to_dict() == told[name]))
                  for name, cls in public_configs().items()}))
"""


def test_json_of_a_config_makes_the_config_where_the_hook_is_not(tmp_path: Path) -> None:
    outcomes = []
    for hook in ("0", "1"):
        file = tmp_path / hook
        file.write_text(json.dumps(stock.run(WRITE, hook)), encoding="utf-8")
        outcomes.append(stock.run(READ, "0", str(file)))
    plain, hooked = outcomes
    assert hooked == plain  # some of TRL's configs cannot be made of their own dict: an error, as text
    assert plain["SFTConfig"] == "True"


BY_VALUE = """
import dataclasses, json, sys
import cloudpickle
from child_configs import keywords
from child_pickles import load
from trl import SFTConfig

@dataclasses.dataclass
class Middle(SFTConfig):
    mine: int = 1

@dataclasses.dataclass
class Last(Middle):
    max_seq_length: int = 5

@dataclasses.dataclass
class Other(Middle):
    more: int = 2

made = [Last(**keywords(Last), mine=3), Other(**keywords(Other), **({"unsloth_num_chunks": 4} if sys.argv[1:] else {}))]
data = cloudpickle.dumps(made)
names, (last, other) = load(data)
if sys.argv[1:]:
    with open(sys.argv[1], "wb") as file:
        file.write(data)
print(json.dumps([
    sorted({name for name in names if "unsloth" in name}),
    [last.mine, last.max_seq_length, last.max_length, other.more],
    [field.name for field in dataclasses.fields(type(last)) if field.name not in sys.argv[2:]],
    getattr(other, "unsloth_num_chunks", None), other.to_dict().get("unsloth_num_chunks"),
]))
"""


def test_classes_two_deep_that_cloudpickle_writes_by_value_have_nothing_of_the_hook(tmp_path: Path) -> None:
    """And open where it is not."""
    stock_names, *plain, _, _ = stock.run(BY_VALUE, "0")
    names, *hooked, chunks, in_dict = stock.run(BY_VALUE, "1", str(tmp_path / "file"), *EXTRAS)
    assert names == stock_names == []
    assert hooked[0] == plain[0]
    assert (chunks, in_dict) == (4, 4)
    read = """
        import json, pickle, sys
        with open(sys.argv[1], "rb") as file:
            last, other = pickle.load(file)
        seen = [last.to_dict()["max_seq_length"], last == last, "mine=3" in repr(last), other.unsloth_num_chunks]
        print(json.dumps(seen))
    """
    assert stock.run(textwrap.dedent(read), "0", str(tmp_path / "file")) == [5, True, True, 4]


CAPTURED = """
import json, sys
import cloudpickle
from child_configs import keywords
from child_pickles import load
from trl import SFTConfig

def make(**values):  # by value, and with it the class that it names
    return SFTConfig(**values)

import unsloth_hook
unsloth_hook.install()
data = cloudpickle.dumps([make, keywords(SFTConfig)])
with open(sys.argv[1], "wb") as file:
    file.write(data)
print(json.dumps(sorted({name for name in load(data)[0] if "unsloth" in name})))
"""


def test_where_cloudpickle_writes_a_class_taken_before_a_late_switch_nothing_is_of_the_hook(tmp_path: Path) -> None:
    """What it writes cannot make a config elsewhere (docs/limits.md), but it can be read."""
    assert stock.run(CAPTURED, None, str(tmp_path / "file")) == []
    read = "import json, pickle, sys; print(json.dumps(pickle.load(open(sys.argv[1], 'rb'))[1]['output_dir']))"
    assert stock.run(read, "0", str(tmp_path / "file")) == "out"
