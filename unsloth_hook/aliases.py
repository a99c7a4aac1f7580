"""Answers for ``UnslothSFTTrainer`` and its kin, the modules that Unsloth's pickles name, where no real one is found.

`activation.AliasFinder` asks here, last on ``sys.meta_path``, so that a real file always wins.
"""

import sys

from .releases.unsloth_module_names import CACHE, stem_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
else:
    Loader = object


def find_spec(fullname: str) -> "ModuleSpec | None":
    """A spec for a stray name whose class the installed TRL has; None for all others.

    Args:
        fullname: of a module that nobody else has found.

    Raises:
        ModuleNotFoundError: in an import statement only, for a config that other releases of TRL had: the ordinary
            error, with its history.
    """
    stem = stem_of(fullname)
    # Unsloth tells a written cache from a missing one by whether this import succeeds.
    if not stem and fullname != CACHE or "unsloth_zoo" in sys.modules:
        return None
    from importlib.machinery import ModuleSpec

    from .releases import installed_classes

    if not stem:
        return ModuleSpec(fullname, _Loader(), is_package=True) if installed_classes.exists("trl") else None
    if installed_classes.in_trl(stem) or installed_classes.in_trl(stem, "Trainer"):
        return ModuleSpec(fullname, _Loader(), origin="alias of TRL's own classes (unsloth_hook)")
    # Above the finder are importlib's frames: _find_spec, then the import. A probe (importlib.util) gets its None.
    if sys._getframe(3).f_code.co_name == "_find_and_load_unlocked" and (text := _history(f"{stem}Config")):
        raise ModuleNotFoundError(f"No module named {fullname!r}: {text}", name=fullname)
    return None


class _Loader(Loader):
    """Makes a module without content; what it is asked for is looked up in TRL."""

    def create_module(self, spec: "ModuleSpec") -> None:
        """None: the import system's own module will do."""

    def exec_module(self, module: "ModuleType") -> None:
        """Give the module its ``__getattr__`` and ``__dir__`` (PEP 562)."""
        name = module.__name__
        stem = stem_of(name)
        names = (f"Unsloth{stem}Config", f"Unsloth{stem}Trainer", f"{stem}Config", f"{stem}Trainer") if stem else ()

        def lookup(attribute: str) -> object:
            if attribute in names:
                return _resolve(name, stem, attribute)
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute, obj=module)

        vars(module)["__getattr__"] = lookup
        vars(module)["__dir__"] = lambda: sorted({*vars(module), *names})


def _resolve(module: str, stem: str, attribute: str) -> object:
    from importlib import import_module

    from .releases import installed_classes

    what = "Config" if attribute.endswith("Config") else "Trainer"
    home = installed_classes.in_trl(stem, what)
    if home is None:
        text = _history(f"{stem}Config") or "this TRL has none"
        raise AttributeError(f"module {module!r} has no attribute {attribute!r}: {text}", name=attribute)
    return getattr(import_module(home.module), home.name)


def _history(config: str) -> str:
    from .releases import history, installed_classes

    if not (had := history.had_it(config)):
        return ""
    here = (
        f"TRL {installed_classes.version('trl')} has no {config}"
        if installed_classes.exists("trl")
        else f"TRL, which has {config}, is not here"
    )
    return f"{here} ({had}). unsloth_hook.load_training_args(path) opens a file that names it"


def withdraw() -> None:
    """Take every alias out of ``sys.modules``, for when the real Unsloth arrives."""
    for name, module in list(sys.modules.items()):
        if isinstance(getattr(module, "__loader__", None), _Loader):
            del sys.modules[name]
            parent, _, child = name.rpartition(".")
            if parent in sys.modules:
                vars(sys.modules[parent]).pop(child, None)
