"""The allow-list: what a name in a pickle is, and what it is called today. Decided from sources, without imports."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache

from ..releases import history, installed_classes
from ..releases.installed_classes import Home
from ..releases.unsloth_module_names import stem_of
from .pickle_tree import OBJECT, RECONSTRUCTOR, Global

PORTABLE, STRAY, MOVED, REMOVED, UNSAFE = "portable", "stray", "moved", "removed", "unsafe"

TRAINING_ARGUMENTS = Home("transformers.training_args", "TrainingArguments")

# Not dataclasses, but TrainingArguments holds them: accelerate's state, and DeepSpeed's settings when it is used.
STATE_CLASSES = frozenset(
    {
        Home("accelerate.state", "PartialState"),
        Home("accelerate.utils.deepspeed", "HfDeepSpeedConfig"),
        Home("transformers.integrations.deepspeed", "HfDeepSpeedConfig"),
        Home("transformers.integrations.deepspeed", "HfTrainerDeepSpeedConfig"),
    }
)
CONTAINERS = frozenset(
    {
        ("collections", "OrderedDict"),
        ("collections", "defaultdict"),
        *(
            (module, name)
            for module in ("builtins", "__builtin__")
            for name in ("list", "dict", "tuple", "set", "frozenset", "complex", "bytearray")
        ),
    }
)
DTYPE = re.compile(r"(?:u?int|bfloat|float|complex)\d{1,3}(?:_e\dm\d(?:fn)?(?:u?z)?|_e\dm\dfnu|_e\dm\dfn_x2)?|bool")

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_CLASS_NAME = re.compile(r"_?[A-Z]\w*[a-z]\w*", re.ASCII)
_CONFIG_NAME = re.compile(r"(?:Config|Configuration|Arguments|Args|Plugin|Kwargs|State)$")
# Modules that hold configs and the enums of configs; scripts and command lines run something when they are imported.
_CONFIG_MODULE = re.compile(
    r"(?:trl|transformers|accelerate)(?:\.\w+)*\.\w*"
    r"(?:config|configs|configuration_\w+|training_args\w*|utils|generic|dataclasses|state|deepspeed|core|trainer_callback)"
)
_SCRIPTS = re.compile(r"\.(?:scripts?|commands?|cli|cli_utils|examples?|tests?|_\w+)(?:\.|$)")


@dataclass(frozen=True)
class Verdict:
    """What a global is.

    ``verdict`` is one of the five words. ``kind`` says how it may be used: "config", "enum", "device", "dtype",
    "container", "maker" (part of another way to write that an object is made), "gone" (no such class any more: a plain
    value is left), "foreign" (a class of a package that this project does not read), "unsafe". ``home`` is where the
    class is today, or with ``nearest`` a stand-in for a class that exists no more.
    """

    verdict: str
    kind: str
    home: Home | None = None
    note: str = ""
    nearest: bool = False


@cache
def classify(name: Global) -> Verdict:
    """Say what ``name`` is in the light of the installed TRL, transformers and accelerate.

    Args:
        name: a global as a pickle names it.

    Returns:
        Its `Verdict`. A package that is not installed is judged by the form of the name and by `history`.
    """
    root = name.module.partition(".")[0]
    if not _MODULE.fullmatch(name.module) or not _IDENTIFIER.fullmatch(name.name):
        return Verdict(UNSAFE, "unsafe", note="not the name of a class in a module")
    if (name.module, name.name) in CONTAINERS:
        return Verdict(PORTABLE, "container")
    if name in RECONSTRUCTOR or name in OBJECT:
        return Verdict(PORTABLE, "maker", note="another way to write that an object is made")
    if root == "torch":
        return _torch(name)
    if stem := stem_of(name.module):
        return _stray(name, stem)
    if root not in ("trl", "transformers", "accelerate"):
        return _outside(name, root)
    if _SCRIPTS.search(name.module):
        return Verdict(UNSAFE, "unsafe", note="importing this module would run a program")
    return _inside(name, root)


def _torch(name: Global) -> Verdict:
    if name.module == "torch" and name.name == "device":
        return Verdict(PORTABLE, "device")
    if name.module == "torch" and DTYPE.fullmatch(name.name):
        return Verdict(PORTABLE, "dtype")
    return Verdict(UNSAFE, "unsafe", note="of torch only device and the dtypes belong in training arguments")


def _stray(name: Global, stem: str) -> Verdict:
    if name.name != f"Unsloth{stem}Config":
        return Verdict(UNSAFE, "unsafe", note="not the config of this module")
    if home := installed_classes.in_trl(stem):
        return Verdict(STRAY, "config", home, f"now {home.module}.{home.name}")
    return _nearest(STRAY, f"{stem}Config")


def _nearest(verdict: str, name: str) -> Verdict:
    """The class to fall back to, and why: what ``name`` extended in its day, ``TrainingArguments`` at the end."""
    homes = [
        home
        for ancestor in history.ancestors(name)
        if (home := installed_classes.in_trl(ancestor.removesuffix("Config")))
    ]
    home = homes[0] if homes else TRAINING_ARGUMENTS
    here = (
        f"TRL {installed_classes.version('trl')} has none"
        if installed_classes.exists("trl")
        else "TRL is not installed here"
    )
    had = history.had_it(name)
    note = f"{here} ({had or 'no release that we know had it'}); nearest: {home.module}.{home.name}"
    return Verdict(verdict, "config", home, note, nearest=True)


def _outside(name: Global, root: str) -> Verdict:
    if root in sys.stdlib_module_names or root in ("__builtin__", "copy_reg", "__main__", "nt", "posix"):
        return Verdict(UNSAFE, "unsafe", note="no part of any training arguments")
    if _CLASS_NAME.fullmatch(name.name):
        return Verdict(UNSAFE, "foreign", note=f"an object of the package {root}, which is never imported")
    return Verdict(UNSAFE, "unsafe", note="a function or unknown name outside trl, transformers and accelerate")


def _inside(name: Global, root: str) -> Verdict:
    found = installed_classes.definition(name.module, name.name)
    if found is not None:
        return _defined(name, *found)
    if installed_classes.mentions(name.module, name.name) or not _CLASS_NAME.fullmatch(name.name):
        return Verdict(UNSAFE, "unsafe", note="not a config class or an enum")
    if not installed_classes.exists(root):
        return _not_installed(name, root)
    if home := _moved(name, root):
        return Verdict(
            MOVED,
            _kind(home, installed_classes.classes(home.module)[home.name]),
            home,
            f"now {home.module}.{home.name}",
        )
    if name.name.endswith(("Config", "Arguments")) and _CONFIG_MODULE.fullmatch(name.module):
        return _nearest(REMOVED, name.name)
    if _CONFIG_MODULE.fullmatch(name.module):
        return Verdict(
            REMOVED, "gone", note=f"{root} {installed_classes.version(root)} has no such class; its plain value is kept"
        )
    return Verdict(
        UNSAFE,
        "unsafe",
        note=f"{root} {installed_classes.version(root)} has no such class, and none of its configs was here",
    )


def _defined(name: Global, home: Home, defined: installed_classes.Definition) -> Verdict:
    kind = _kind(home, defined)
    if kind != "unsafe" and home.module.partition(".")[0] in ("trl", "transformers", "accelerate"):
        return Verdict(PORTABLE, kind, Home(name.module, name.name))
    return Verdict(UNSAFE, "unsafe", note="a class, but not a config dataclass or an enum")


def _kind(home: Home, defined: installed_classes.Definition) -> str:
    if defined.kind == "enum":
        return "enum"
    if home in STATE_CLASSES:
        return "config"
    # TRL's configs inherit their decorator now and then; a collator or a model's output is a dataclass and no config.
    inherits = home.module.startswith("trl.") and home.name.endswith("Config")
    if _CONFIG_NAME.search(home.name) and (defined.kind == "dataclass" or inherits):
        return "config"
    return "unsafe"


def _moved(name: Global, root: str) -> Home | None:
    if root == "trl" and name.name.endswith("Config"):
        home = installed_classes.in_trl(name.name.removesuffix("Config").lstrip("_"))
        return home if home and home.name.lstrip("_") == name.name.lstrip("_") else None
    for module in history.MOVED_WITHIN.get(root, ()):
        if (found := installed_classes.classes(module).get(name.name)) and _kind(
            Home(module, name.name), found
        ) != "unsafe":
            return Home(module, name.name)
    return None


def _not_installed(name: Global, root: str) -> Verdict:
    rows = history.rows(name.name) if root == "trl" else []
    current = [row for row in rows if row.last is None]
    if any(row.module == name.module for row in current) or (root != "trl" and _CONFIG_MODULE.fullmatch(name.module)):
        kind = "config" if name.name.endswith(("Config", "Arguments", "State")) else "enum"
        return Verdict(
            PORTABLE, kind, Home(name.module, name.name), f"{root} is not installed here; judged by the name"
        )
    if current:
        home = Home(current[0].module, current[0].name)
        return Verdict(MOVED, "config", home, f"now {home.module}.{home.name}")
    if _CONFIG_MODULE.fullmatch(name.module):
        return _nearest(REMOVED, name.name) if name.name.endswith("Config") else Verdict(REMOVED, "gone")
    return Verdict(UNSAFE, "unsafe", note=f"{root} is not installed here and the name is unknown")
