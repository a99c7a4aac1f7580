"""The allow-list: what a name in a pickle is, and what it is called today. Decided from sources, without imports."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from unsloth_hook import locate, releases
from unsloth_hook.locate import Home
from unsloth_hook.pickles import OBJECT, RECONSTRUCTOR, Built, Global, Pickle, is_texts

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
# Where classes of transformers and accelerate have moved to and from (transformers 4.3x to 5.24, accelerate 0.2x to
# 1.15).
_MOVED_WITHIN = {
    "transformers": (
        "transformers.trainer_utils",
        "transformers.training_args",
        "transformers.trainer_pt_utils",
        "transformers.debug_utils",
        "transformers.utils.generic",
        "transformers.integrations.deepspeed",
        "transformers.utils.quantization_config",
        "transformers.trainer_callback",
    ),
    "accelerate": (
        "accelerate.utils.dataclasses",
        "accelerate.state",
        "accelerate.parallelism_config",
        "accelerate.utils.deepspeed",
    ),
}
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
_STRAY = re.compile(r"(?:unsloth_compiled_cache\.|unsloth_cache_)?Unsloth([A-Za-z0-9]+)Trainer", re.ASCII)
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


def stray_stem(module: str) -> str:
    """ "SFT" for ``UnslothSFTTrainer`` and its two other spellings, "" for any other module."""
    match = _STRAY.fullmatch(module)
    return match[1] if match else ""


@cache
def classify(name: Global) -> Verdict:
    """Say what ``name`` is in the light of the installed TRL, transformers and accelerate.

    Args:
        name: a global as a pickle names it.

    Returns:
        Its `Verdict`. A package that is not installed is judged by the form of the name and by `releases`.
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
    if stem := stray_stem(name.module):
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
    if home := locate.in_trl(stem):
        return Verdict(STRAY, "config", home, f"now {home.module}.{home.name}")
    return _nearest(STRAY, f"{stem}Config")


def _nearest(verdict: str, name: str) -> Verdict:
    """The class to fall back to, and why: what ``name`` extended in its day, ``TrainingArguments`` at the end."""
    homes = [home for ancestor in releases.ancestors(name) if (home := locate.in_trl(ancestor.removesuffix("Config")))]
    home = homes[0] if homes else TRAINING_ARGUMENTS
    here = f"TRL {locate.version('trl')} has none" if locate.exists("trl") else "TRL is not installed here"
    history = releases.had_it(name)
    note = f"{here} ({history or 'no release that we know had it'}); nearest: {home.module}.{home.name}"
    return Verdict(verdict, "config", home, note, nearest=True)


def _outside(name: Global, root: str) -> Verdict:
    if root in sys.stdlib_module_names or root in ("__builtin__", "copy_reg", "__main__", "nt", "posix"):
        return Verdict(UNSAFE, "unsafe", note="no part of any training arguments")
    if _CLASS_NAME.fullmatch(name.name):
        return Verdict(UNSAFE, "foreign", note=f"an object of the package {root}, which is never imported")
    return Verdict(UNSAFE, "unsafe", note="a function or unknown name outside trl, transformers and accelerate")


def _inside(name: Global, root: str) -> Verdict:
    found = locate.definition(name.module, name.name)
    if found is not None:
        return _defined(name, *found)
    if locate.mentions(name.module, name.name) or not _CLASS_NAME.fullmatch(name.name):
        return Verdict(UNSAFE, "unsafe", note="not a config class or an enum")
    if not locate.exists(root):
        return _not_installed(name, root)
    if home := _moved(name, root):
        return Verdict(
            MOVED, _kind(home, locate.classes(home.module)[home.name]), home, f"now {home.module}.{home.name}"
        )
    if name.name.endswith(("Config", "Arguments")) and _CONFIG_MODULE.fullmatch(name.module):
        return _nearest(REMOVED, name.name)
    if _CONFIG_MODULE.fullmatch(name.module):
        return Verdict(
            REMOVED, "gone", note=f"{root} {locate.version(root)} has no such class; its plain value is kept"
        )
    return Verdict(
        UNSAFE, "unsafe", note=f"{root} {locate.version(root)} has no such class, and none of its configs was here"
    )


def _defined(name: Global, home: Home, defined: locate.Definition) -> Verdict:
    kind = _kind(home, defined)
    if kind != "unsafe" and home.module.partition(".")[0] in ("trl", "transformers", "accelerate"):
        return Verdict(PORTABLE, kind, Home(name.module, name.name))
    return Verdict(UNSAFE, "unsafe", note="a class, but not a config dataclass or an enum")


def _kind(home: Home, defined: locate.Definition) -> str:
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
        home = locate.in_trl(name.name.removesuffix("Config").lstrip("_"))
        return home if home and home.name.lstrip("_") == name.name.lstrip("_") else None
    for module in _MOVED_WITHIN.get(root, ()):
        if (found := locate.classes(module).get(name.name)) and _kind(Home(module, name.name), found) != "unsafe":
            return Home(module, name.name)
    return None


def _not_installed(name: Global, root: str) -> Verdict:
    rows = releases.rows(name.name) if root == "trl" else []
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


def misuses(pickle: Pickle) -> Iterator[str]:
    """What a pickle does with the names on the list that no config needs, one sentence each; nothing if all is well.

    A class on the list is not enough: called with arguments of a stranger's choice, ``TrainingArguments.__post_init__``
    runs; BUILD on an enum's member would change the enum for the whole process.
    """
    for built in pickle.built:
        if isinstance(built.func, Global) and (reason := _misuse(built, classify(built.func).kind)):
            yield f"{built.func}: {reason}"


def _misuse(built: Built, kind: str) -> str:
    bare = not (built.kwargs or built.items or built.members)
    plain = built.called and built.state is None and bare
    if kind == "config":
        if built.called or built.args or not bare:
            return "a config class is called with arguments; real files only make it and set its fields"
        return "" if built.state is None or _is_state(built.state) else "its fields are no dict with text keys"
    if kind in ("enum", "gone"):
        one = len(built.args) == 1 and type(built.args[0]) in (str, int)
        return "" if plain and one else "not the value of an enum"
    if kind == "device":
        shapes = ([str], [str, int])
        return "" if plain and [type(arg) for arg in built.args] in shapes else "not a device such as 'cuda', 0"
    if kind == "container":
        return _container_misuse(built)
    if kind == "dtype":
        return "a dtype is called"
    if kind == "maker":
        return "called in another way than pickle and Unsloth do"
    return ""


def _is_state(state: object) -> bool:
    return isinstance(state, dict) and is_texts(state)


def _container_misuse(built: Built) -> str:
    name = built.func.name
    if built.state is not None or built.kwargs or not built.called:
        return "a plain container with more than its content"
    if name == "defaultdict":
        factory = built.args[0] if len(built.args) == 1 else None
        known = isinstance(factory, Global) and classify(factory).kind == "container"
        return "" if factory is None or known else "a defaultdict with a factory that is no container"
    if name == "complex":
        numbers = len(built.args) == 2 and all(type(arg) in (int, float) for arg in built.args)
        return "" if numbers else "not the two parts of a complex number"
    fits = not built.args or (len(built.args) == 1 and isinstance(built.args[0], (list, tuple, bytes, dict)))
    pairs = name not in ("dict", "OrderedDict") or not built.args or _is_pairs(built.args[0])
    return "" if fits and pairs else "a container made of something that is no container"


def _is_pairs(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, (list, tuple)) and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value)
    )
