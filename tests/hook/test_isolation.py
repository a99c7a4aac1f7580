"""Configs that no TRL has, or none yet: each is left as it is or patched right, and `status()` says which, and why.

The TRL and transformers are stand-ins. What a class does is asked without the hook and with it, by the same script.
"""

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import stand_in
from helpers import ROOT, run_child

# By the stem of the module: the class statement.
CONFIGS = {
    "plain": """
        @dataclass
        class PlainConfig(TrainingArguments):
            own: int = 2
        """,
    "slots": """
        @dataclass(slots=True)
        class SlotsConfig(TrainingArguments):
            own: int = 2
        """,
    "kw_only": """
        @dataclass(kw_only=True)
        class KwOnlyConfig(TrainingArguments):
            own: int = 2
        """,
    "frozen": """
        @dataclass(frozen=True)
        class FrozenConfig(FrozenArguments):
            own: int = 2
        """,
    "frozen_slots": """
        @dataclass(frozen=True, slots=True)
        class FrozenSlotsConfig(FrozenArguments):
            own: int = 2
        """,
    "order": """
        @dataclass(order=True, unsafe_hash=True)
        class OrderConfig(TrainingArguments):
            own: int = 2
        """,
    "bare": """
        @dataclass(repr=False, eq=False)
        class BareConfig(TrainingArguments):
            own: int = 2
        """,
    "own_methods": """
        @dataclass
        class OwnMethodsConfig(TrainingArguments):
            own: int = 2
            def __repr__(self): return f"mine({self.own})"
            def __eq__(self, other): return self.own == getattr(other, "own", None)
            def __hash__(self): return hash(self.own)
        """,
    "own_hash": """
        @dataclass
        class OwnHashConfig(TrainingArguments):
            own: int = 2
            def __hash__(self): return hash(self.own)
        """,
    "no_default": """
        @dataclass
        class NoDefaultConfig(TrainingArguments):
            own: int = field(kw_only=True)
        """,
    "init_var": """
        @dataclass
        class InitVarConfig(TrainingArguments):
            own: int = 2
            max_length: int = 7
            twice: InitVar[int] = 0
            def __post_init__(self, twice):
                super().__post_init__()
                self.own += 2 * twice
        """,
    "no_post_init": """
        @dataclass
        class NoPostInitConfig(NoPostInitArguments):
            own: int = 2
            max_length: int = 7
        """,
    "field_of_ours": """
        @dataclass
        class FieldOfOursConfig(TrainingArguments):
            own: int = 2
            unsloth_num_chunks: str = "seven"
        """,
    "property_of_ours": """
        @dataclass
        class PropertyOfOursConfig(TrainingArguments):
            own: int = 2
            max_length: int = 7
            @property
            def max_seq_length(self): return self.max_length
            @max_seq_length.setter
            def max_seq_length(self, value): raise AttributeError("max_seq_length is gone")
        """,
    "class_variable_of_ours": """
        @dataclass
        class ClassVariableOfOursConfig(TrainingArguments):
            own: int = 2
            unsloth_num_chunks: ClassVar[int] = 5
        """,
    "metaclass": """
        class Meta(type):
            def __call__(cls, *args, **values):
                made = super().__call__(*args, **values)
                made.__dict__["by_meta"] = True
                return made
        @dataclass
        class MetaclassConfig(TrainingArguments, metaclass=Meta):
            own: int = 2
        """,
    "abstract": """
        @dataclass
        class AbstractConfig(TrainingArguments, abc.ABC):
            own: int = 2
        """,
    "generic": """
        @dataclass
        class GenericConfig(TrainingArguments, Generic[T]):
            own: int = 2
        """,
    "demanding": """
        class Demanding(type):
            def __new__(meta, name, bases, namespace, *, wanted):
                return super().__new__(meta, name, bases, namespace)
            def __init__(cls, name, bases, namespace, *, wanted):
                super().__init__(name, bases, namespace)
        @dataclass
        class DemandingConfig(TrainingArguments, metaclass=Demanding, wanted=1):
            own: int = 2
        """,
    "subclassed_with": """
        @dataclass
        class SubclassedWithConfig(TrainingArguments):
            own: int = 2
            def __init_subclass__(cls, *, wanted): pass
        """,
    "own_init": """
        @dataclass
        class OwnInitConfig(TrainingArguments):
            own: int = 2
            def __init__(self, output_dir="out", own=2):
                super().__init__(output_dir)
                self.own = own
        """,
    "no_dataclass": """
        class NoDataclassConfig(TrainingArguments):
            own = 2
        """,
    "no_dataclass_own_init": """
        class NoDataclassOwnInitConfig(TrainingArguments):
            def __init__(self, output_dir="out", own=2):
                super().__init__(output_dir)
                self.own = own
        """,
}
LEFT = {  # and a word of the reason
    "frozen": "frozen",
    "frozen_slots": "frozen",
    "demanding": "wanted",
    "subclassed_with": "wanted",
    "own_init": "__init__",
    "no_dataclass_own_init": "__init__",
}
FEWER = {  # what TRL has itself under one of our names is TRL's
    "field_of_ours": "unsloth_num_chunks",
    "property_of_ours": "max_seq_length",
    "class_variable_of_ours": "unsloth_num_chunks",
}

BEGIN = """
import abc
from dataclasses import InitVar, dataclass, field
from typing import ClassVar, Generic, TypeVar
from transformers.training_args import TrainingArguments
from transformers.frozen import TrainingArguments as FrozenArguments
from transformers.no_post_init import TrainingArguments as NoPostInitArguments
T = TypeVar("T")
"""

ASK = """
import copy, dataclasses, importlib, inspect, json, pickle, pickletools, re, sys, unsloth_hook
sys.setrecursionlimit(300)

def answer(ask):
    try:
        return re.sub(" at 0x[0-9a-f]+", "", repr(ask()))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def state(config):
    names = [field.name for field in dataclasses.fields(config)]
    return {name: getattr(config, name, "gone") for name in sorted({*names, *getattr(config, "__dict__", ())})}

def through_pickle(config, protocol):
    data = pickle.dumps(config, protocol)
    names = sorted(str(argument) for code, argument, _ in pickletools.genops(data) if code.name == "GLOBAL")
    again = pickle.loads(data)
    return type(again) is type(config), state(again), names

def changed(config):
    config.own = 9
    return config.own

def of_the_class_before(cls, values):
    "Made by TRL's own class, as it were before the swap."
    return (cls.__mro__[1] if unsloth_hook.is_patched(cls) else cls)(**values)

told = {}
for stem, name in json.loads(sys.argv[1]).items():
    cls = getattr(importlib.import_module(f"trl.trainer.{stem}_config"), name)
    values = {"own": 5} if stem != "no_dataclass" else {}
    ours = {"unsloth_grpo_mini_batch": 1} if unsloth_hook.status()["active"] else {}
    twice = {"twice": 0} if stem == "init_var" else {}
    make = lambda **more: cls(**{**values, **more})
    told[stem] = {question: answer(ask) for question, ask in {
        "made": lambda: state(make()),
        "positional": lambda: cls("here", **values).output_dir,
        "repr": lambda: make(),
        "equal": lambda: [make() == make(), make() == make(output_dir="x"), make() != 1],
        "hash": lambda: hash(make()) == hash(make()),
        "order": lambda: make() < make(output_dir="x"),
        "pickles": lambda: [through_pickle(make(), protocol) for protocol in (2, 3, 4, 5)],
        "copies": lambda: [state(copy.copy(make())), state(copy.deepcopy(make())), type(copy.copy(make())) is cls],
        "replaced": lambda: state(dataclasses.replace(make(), output_dir="there", **twice)),
        "set": lambda: changed(make()),
        "unknown": lambda: make(nope=1),
        "missing": lambda: cls().output_dir,
        "too many": lambda: cls("here", *range(100)),
        "displaced": lambda: type(pickle.loads(pickle.dumps(of_the_class_before(cls, values)))) is cls,
        "subclass": lambda: dataclasses.make_dataclass("Sub", [("more", int, 3)], bases=(cls,))(**values).more,
        "signature of __init__": lambda: list(inspect.signature(cls.__init__).parameters),
        "signature": lambda: list(inspect.signature(cls).parameters),
        "match": lambda: cls.__match_args__,
        "names": lambda: [cls.__module__, cls.__qualname__, cls.__doc__],
        "fields": lambda: [field.name for field in dataclasses.fields(cls)],
        "max_seq_length": lambda: make(max_seq_length=3).max_length,
        "init_var": lambda: [make(twice=1).own, make(twice=1, **ours).own] if stem == "init_var" else None,
    }.items()}
print(json.dumps([told, unsloth_hook.status()["classes"]]))
"""


def name_of(stem: str) -> str:
    return "".join(part.capitalize() for part in stem.split("_")) + "Config"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The answers without the hook, those with it, `status()["classes"]`, and what was written on standard error."""
    files = {f"trl/trainer/{stem}_config.py": BEGIN + textwrap.dedent(text) for stem, text in CONFIGS.items()}
    files["transformers/frozen.py"] = stand_in.TRANSFORMERS.replace("@dataclass", "@dataclass(frozen=True)")
    files["transformers/no_post_init.py"] = stand_in.TRANSFORMERS.partition("    def __post_init__")[0]
    trl = stand_in.make(tmp_path_factory.mktemp("trl"), files)
    answers = []
    for start in ("", "from unsloth_hook._bootstrap import start; start()\n"):
        env = {"PYTHONPATH": os.pathsep.join([str(trl), str(ROOT)]), "UNSLOTH_HOOK": "1" if start else "0"}
        names = json.dumps({stem: name_of(stem) for stem in CONFIGS})
        answers.append(run_child(start + ASK, python=sys.executable, env=env, args=[names]))
    (stock, nothing), (hooked, classes) = (json.loads(done.stdout) for done in answers)
    assert nothing == {}
    return stock, hooked, classes, answers[1].stderr


def extras(stem: str) -> list[str]:
    """The fields that the hook adds to a config, in order."""
    names = ["vllm_sampling_params", "unsloth_num_chunks", "unsloth_logit_chunk_multiplier", "unsloth_grpo_mini_batch"]
    names += ["max_seq_length"] if "max_length" in CONFIGS[stem] else []
    return [name for name in names if name != FEWER.get(stem)]


@pytest.mark.parametrize("stem", LEFT)
def test_what_cannot_be_patched_is_as_stock_and_the_reason_is_on_record(asked: Any, stem: str) -> None:
    stock, hooked, classes, stderr = asked
    assert hooked[stem] == stock[stem]
    entry = classes[f"trl.trainer.{stem}_config.{name_of(stem)}"]
    assert entry["state"] == "left"
    assert LEFT[stem] in entry["reason"]
    assert stderr.count(f".{name_of(stem)} stays as TRL wrote it: ") == 1


@pytest.mark.parametrize("stem", [stem for stem in CONFIGS if stem not in LEFT])
def test_what_is_patched_does_all_that_stock_does(asked: Any, stem: str) -> None:
    stock, hooked, classes, stderr = asked
    added = extras(stem)
    assert classes[f"trl.trainer.{stem}_config.{name_of(stem)}"] == {"state": "patched", "fields": added}
    assert f".{name_of(stem)} " not in stderr
    values = {"vllm_sampling_params": None, "unsloth_num_chunks": -1}
    shown = {name: values.get(name) for name in added}
    before, after = dict(stock[stem]), dict(hooked[stem])

    # What names the fields names ours besides, after TRL's.
    for question in ("fields", "signature", "signature of __init__"):
        seen, stock_has = (json.loads(answers.pop(question).replace("'", '"')) for answers in (after, before))
        if stem == "metaclass" and question == "signature":  # inspect looks at its __call__
            assert seen == stock_has == ["args", "values"]
        else:
            assert seen == [*stock_has, *added]
    for question in ("made", "pickles", "copies", "replaced"):
        for name, value in shown.items():
            after[question] = after[question].replace(f", '{name}': {value}", "").replace(f"'{name}': {value}, ", "")
    length = after.pop("max_seq_length"), before.pop("max_seq_length")
    assert length[0] == "3" or "max_seq_length" not in added
    assert length[1].startswith("TypeError" if "max_seq_length" in added else length[0].partition(":")[0])
    assert after.pop("init_var") == ("[7, 7]" if stem == "init_var" else "None")
    before.pop("init_var")
    if stem == "no_dataclass":  # its own __init__ is written now
        for question in ("unknown", "too many"):
            after[question] = after[question].replace(name_of(stem), "TrainingArguments")
    assert after == before


def test_what_is_asked_succeeds_without_the_hook(asked: Any) -> None:
    stock = asked[0]
    assert stock["plain"]["equal"] == "[True, False, True]"
    assert "'own': 5" in stock["plain"]["pickles"]
    assert {answers["displaced"] for answers in stock.values()} == {"True"}
    assert all(answers["too many"].startswith("TypeError") for answers in stock.values())
    for stem in CONFIGS:
        failed = {question for question, text in stock[stem].items() if "Error" in text.partition(":")[0]}
        assert failed <= {
            "hash",
            "order",
            "unknown",
            "missing",
            "subclass",
            "set",
            "replaced",
            "max_seq_length",
            "too many",
        }, stem
        assert {"unknown"} <= failed


def test_a_module_that_this_trl_lacks_is_missing_as_ever(tmp_path: Path) -> None:
    """And its stray name with it; the others are patched."""
    text = stand_in.CONFIG.format(name="SFTConfig")
    trl = stand_in.make(tmp_path, {"trl/trainer/sft_config.py": text})
    script = """
        import traceback
        for name in ("trl.trainer.grpo_config", "trl.experimental.gkd.gkd_config"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error, error.name, error.path, traceback.format_exc())
        from trl.trainer.sft_config import SFTConfig
        print(SFTConfig().max_length)
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    runs = []
    for start in ("", "from unsloth_hook._bootstrap import start; start()\n"):
        env = {"PYTHONPATH": os.pathsep.join([str(trl), str(ROOT)]), "UNSLOTH_HOOK": "1" if start else "0"}
        end = (
            "print(SFTConfig(max_seq_length=3).max_length)\nfrom UnslothSFTTrainer import *\nimport UnslothGRPOTrainer"
        )
        start += f"import runpy; SFTConfig = runpy.run_path({str(tmp_path / 'script.py')!r})['SFTConfig']\n"
        runs.append(
            run_child(start + (end if "_bootstrap" in start else ""), python=sys.executable, env=env, check=False)
        )
    assert runs[1].stdout == runs[0].stdout + "3\n"
    assert runs[0].stdout.count("ModuleNotFoundError") == 2
    assert "ModuleNotFoundError: No module named 'UnslothGRPOTrainer'" in runs[1].stderr.splitlines()[-1]


def test_a_generated_docstring_of_what_inherits_the_fields_is_as_stock(tmp_path: Path) -> None:
    heir = """
        from .plain_config import PlainConfig

        @dataclass
        class HeirConfig(PlainConfig):
            more: int = 3
        """
    files = {"plain": CONFIGS["plain"], "heir": heir}
    texts = {f"trl/trainer/{stem}_config.py": stand_in.HEAD + textwrap.dedent(text) for stem, text in files.items()}
    path = os.pathsep.join([str(stand_in.make(tmp_path, texts)), str(ROOT)])
    docs = []
    for start in ("", "from unsloth_hook._bootstrap import start; start()\n"):
        script = start + "from trl.trainer.heir_config import HeirConfig; print(HeirConfig.__doc__)"
        docs.append(run_child(script, python=sys.executable, env={"PYTHONPATH": path, "UNSLOTH_HOOK": "1"}).stdout)
    assert docs[0] == docs[1]
    assert docs[0].startswith("HeirConfig(") and "unsloth" not in docs[0]


def test_switched_off_and_on_again_a_class_stays_the_one_patched_class(tmp_path: Path) -> None:
    texts = {"trl/trainer/plain_config.py": stand_in.HEAD + textwrap.dedent(CONFIGS["plain"])}
    script = """
        import unsloth_hook
        unsloth_hook.install()
        from trl.trainer import plain_config
        first = plain_config.PlainConfig
        for _ in range(2):
            unsloth_hook.uninstall()
            unsloth_hook.install()
        state = unsloth_hook.status()["classes"]["trl.trainer.plain_config.PlainConfig"]["state"]
        print(plain_config.PlainConfig is first, len(first.__mro__), state, first(own=4).own)
    """
    path = os.pathsep.join([str(stand_in.make(tmp_path, texts)), str(ROOT)])
    env = {"PYTHONPATH": path, "UNSLOTH_HOOK": None}
    assert run_child(script, python=sys.executable, env=env).stdout == "True 4 patched 4\n"
