"""Contract 2, on every Python: what somebody has by the name of an extra is theirs, however they define it."""

import json
import sys
from typing import Any

import pytest
import stand_in
from helpers import ROOT, run_child

NAMES = [
    "vllm_sampling_params",
    "unsloth_num_chunks",
    "unsloth_logit_chunk_multiplier",
    "unsloth_grpo_mini_batch",
    "max_seq_length",
]

BEGIN = """
import copy, dataclasses, inspect, json, pickle, pickletools, pprint, re, sys
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, get_args
from trl.trainer.own_config import OwnConfig
from trl.trainer.heir_config import HeirConfig

def answer(ask):
    try:
        return re.sub(" at 0x[0-9a-f]+", "", str(ask()))
    except Exception as error:
        return re.sub("[.] Did you mean.*", "", f"{type(error).__name__}: {error}")

def look(cls, *steps):
    "All that can be seen of a class and of what it makes."
    told = {"class": answer(lambda: getattr(cls, NAME)), "match": answer(lambda: cls.__match_args__)}
    extras = [name for name in NAMES if name != NAME]
    told["fields"] = [each.name for each in dataclasses.fields(cls) if each.name not in extras]
    told["parameters"] = [
        str(each) for each in inspect.signature(cls).parameters.values()
        if each.name not in extras and not (each.name == NAME and type(None) in get_args(each.annotation))
    ]
    for values in ({}, {NAME: 5}, {NAME: "text"}, {NAME: None}, {"max_length": 3}, {"max_length": 3, NAME: 9}):
        made = []
        key = repr(values)
        told["make " + key] = answer(lambda: made.append(cls(**values)))
        if made:
            config = made[0]
            told["vars " + key] = [list(vars(config).items()), config.max_length]
            told["value " + key] = repr(getattr(config, NAME, "nothing"))
            told["repr " + key] = [repr(config), pprint.pformat(config)]
            told["copies " + key] = [answer(lambda: vars(copied(config))) for copied in (copy.copy, copy.deepcopy)]
            told["equal " + key] = config == copy.copy(config)
            told["replaced " + key] = answer(lambda: vars(dataclasses.replace(config, max_length=11)))
            told["set " + key] = [answer(lambda: setattr(config, NAME, 6)), answer(lambda: getattr(config, NAME))]
            told["deleted " + key] = [answer(lambda: delattr(config, NAME)), answer(lambda: getattr(config, NAME))]
    return told

told = {}
NAMES, BASE = json.loads(sys.argv[1]), sys.argv[2]
for NAME in NAMES:
    told[NAME] = {}
    for way, source in WAYS.items():
        scope = dict(globals())
        text = source.replace("NAME", NAME).replace("OwnConfig", BASE)
        exec(compile(text, "way", "exec", dont_inherit=True), scope)
        told[NAME][way] = {name: look(scope[name]) for name in scope if name.startswith("Mine")}
told["doc"] = [OwnConfig.__doc__, HeirConfig.__doc__]
print(json.dumps(told, default=repr))
"""

# The module of each is a text: a class by the name of `Mine…` is looked at.
WAYS = {
    "nothing": "@dataclass\nclass Mine(OwnConfig):\n    first: int = 1\n",
    "field": "@dataclass\nclass Mine(OwnConfig):\n    first: int = 1\n    NAME: int = 4096\n    last: int = 2\n",
    "field of another type": "@dataclass\nclass Mine(OwnConfig):\n    NAME: str = 'mine'\n",
    "field with the extra's default": "@dataclass\nclass Mine(OwnConfig):\n    NAME: Any = None\n",
    "factory": "@dataclass\nclass Mine(OwnConfig):\n    NAME: list = field(default_factory=list)\n",
    "required": "@dataclass(kw_only=True)\nclass Mine(OwnConfig):\n    NAME: int\n",
    "not in init": "@dataclass\nclass Mine(OwnConfig):\n    NAME: int = field(default=3, init=False)\n",
    "not in repr": "@dataclass\nclass Mine(OwnConfig):\n    NAME: int = field(default=3, repr=False)\n",
    "InitVar": "@dataclass\nclass Mine(OwnConfig):\n    NAME: InitVar[int] = 7\n"
    "    def __post_init__(self, value):\n        super().__post_init__()\n        self.seen = value\n",
    "ClassVar": "@dataclass\nclass Mine(OwnConfig):\n    NAME: ClassVar[int] = 7\n",
    "ClassVar without a value": "@dataclass\nclass Mine(OwnConfig):\n    NAME: ClassVar[int]\n",
    "class variable": "class Mine(OwnConfig):\n    NAME = 7\n",
    "class variable of a dataclass": "@dataclass\nclass Mine(OwnConfig):\n    more: int = 1\n    NAME = 7\n",
    "method": "class Mine(OwnConfig):\n    def NAME(self):\n        return 1\n",
    "property": "class Mine(OwnConfig):\n    @property\n    def NAME(self):\n        return 7\n",
    "property of a dataclass": "@dataclass\nclass Mine(OwnConfig):\n    more: int = 1\n"
    "    @property\n    def NAME(self):\n        return 7\n",
    "property with a setter": "class Mine(OwnConfig):\n"
    "    @property\n    def NAME(self):\n        return self.max_length\n"
    "    @NAME.setter\n    def NAME(self, value):\n        self.max_length = value\n",
    "mixins": "@dataclass\nclass Mixin:\n    a: int = 1\n    NAME: int = 2048\n    b: int = 2\n"
    "@dataclass\nclass MineBefore(Mixin, OwnConfig):\n    c: int = 3\n"
    "@dataclass\nclass MineAfter(OwnConfig, Mixin):\n    c: int = 3\n"
    "class MinePlainAfter(OwnConfig, Mixin):\n    pass\n",
    "plain mixins": "class Mixin:\n    NAME = 2048\n"
    "@dataclass\nclass MineBefore(Mixin, OwnConfig):\n    c: int = 3\n"
    "@dataclass\nclass MineAfter(OwnConfig, Mixin):\n    c: int = 3\n"
    "class MinePlainBefore(Mixin, OwnConfig):\n    pass\nclass MinePlainAfter(OwnConfig, Mixin):\n    pass\n",
    "mixins with a property": "class Mixin:\n    @property\n    def NAME(self):\n        return 7\n"
    "class MineBefore(Mixin, OwnConfig):\n    pass\n@dataclass\nclass MineAfter(OwnConfig, Mixin):\n    c: int = 3\n",
    "slots": "@dataclass(slots=True)\nclass Mine(OwnConfig):\n    NAME: int = 5\n",
    "keyword only": "@dataclass(kw_only=True)\nclass Mine(OwnConfig):\n    first: int = 1\n    NAME: int = 5\n",
    "make_dataclass": "fields = [('first', int, 1), ('NAME', str, 'x')]\n"
    "Mine = dataclasses.make_dataclass('Mine', fields, bases=(OwnConfig,))\n",
    "two deep": "@dataclass\nclass Middle(OwnConfig):\n    m: int = 1\n"
    "@dataclass\nclass Mine(Middle):\n    first: int = 1\n    NAME: int = 4096\n    last: int = 2\n",
    "two deep, a property": "@dataclass\nclass Middle(OwnConfig):\n    m: int = 1\n"
    "@dataclass\nclass Mine(Middle):\n    n: int = 1\n    @property\n    def NAME(self):\n        return 7\n",
    "over one's own": "@dataclass\nclass Middle(OwnConfig):\n    NAME: int = 4096\n"
    "@dataclass\nclass Mine(Middle):\n    n: int = 1\nclass MinePlain(Middle):\n    pass\n",
}


# One that inherits the fields, and has a docstring that dataclasses write.
HEIR = "from .own_config import OwnConfig\n@dataclass\nclass HeirConfig(OwnConfig):\n    of_heir: int = 1\n"


@pytest.fixture(scope="module", params=["OwnConfig", "HeirConfig"])
def told(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """What is seen of classes over a patched class, or over one that inherits from it, without the hook and with it."""
    config = stand_in.CONFIG.format(name="OwnConfig")
    files = {"trl/trainer/own_config.py": config, "trl/trainer/heir_config.py": stand_in.HEAD + HEIR}
    trl = stand_in.make(tmp_path_factory.mktemp("trl"), files)
    script = f"WAYS = {WAYS!r}\n" + BEGIN
    seen = []
    for start in ("", "from unsloth_hook._bootstrap import start; start()\n"):
        env = {"PYTHONPATH": f"{trl}:{ROOT}", "UNSLOTH_HOOK": "1" if start else "0"}
        done = run_child(start + script, python=sys.executable, env=env, args=[json.dumps(NAMES), request.param])
        assert done.stderr == ""
        seen.append(json.loads(done.stdout))
    return seen[0], seen[1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", [way for way in WAYS if way != "nothing"])
def test_it_is_as_stock(told: tuple[Any, Any], way: str, name: str) -> None:
    plain, hooked = (seen[name][way] for seen in told)
    assert plain
    for cls, seen in plain.items():
        for question, expected in seen.items():
            # Where an inherited `__init__` takes an extra, its default cannot be told from nothing.
            default = question == f"make {{'{name}': None}}" and expected.startswith("TypeError")
            assert default or hooked[cls][question] == expected, f"{cls}: {question}"


def test_docstrings_are_as_stock(told: tuple[Any, Any]) -> None:
    plain, hooked = (seen["doc"] for seen in told)
    assert hooked == plain
    assert plain[1].startswith("HeirConfig(output_dir")


def test_the_hook_was_on(told: tuple[Any, Any]) -> None:
    """In a class that has nothing of that name."""
    plain, hooked = (seen["max_seq_length"]["nothing"]["Mine"] for seen in told)
    assert plain["make {'max_seq_length': 5}"].startswith("TypeError")
    assert hooked["value {'max_seq_length': 5}"] == "5"
    assert hooked["repr {}"] == plain["repr {}"]
    assert hooked["vars {}"] == plain["vars {}"]
