"""What differs while the real Unsloth is loaded: its generated classes own their names, and it may come first."""

import sys

from . import _bootstrap, finder, identity, report, targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

COMES_AFTER = ("trl", "transformers", "peft")  # what Unsloth warns about when it was imported before


def is_generated_module(name: str) -> bool:
    """Is this the name of a module that Unsloth generates, `Unsloth<X>Trainer` in its compiled cache?"""
    last = name.rpartition(".")[2].removeprefix("unsloth_cache_")
    return last.startswith("Unsloth") and last.endswith("Trainer")


def is_generated_class(cls: type) -> bool:
    """Was this class defined in such a module, whatever name it has taken since?"""
    for function in list(vars(cls).values()):
        code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
        path = getattr(code, "co_filename", "").replace("\\", "/")
        if is_generated_module(path.rpartition("/")[2].removesuffix(".py")):
            return True
    return False


def adopt(module: "ModuleType") -> None:
    """Let the config class of a generated module take the name of the TRL class that it stands in for.

    Unsloth does so itself from August 2026 on; before, its configs pickle as `UnslothSFTTrainer.UnslothSFTConfig`,
    which exists beside a compiled cache only.
    """
    for cls in list(vars(module).values()):
        if not isinstance(cls, type) or cls.__module__ != module.__name__ or cls.__name__[:7] != "Unsloth":
            continue
        displaced = cls.__bases__[0]
        if not targets.is_config_module(displaced.__module__):
            continue
        name, home = displaced.__qualname__, sys.modules[displaced.__module__]
        cls.__module__, cls.__qualname__, cls.__name__ = home.__name__, name, name
        if getattr(home, name, None) is displaced:
            setattr(home, name, cls)
        identity.register_displaced(displaced, cls)
        _displace_shims(displaced, cls)
        note_owner(cls)


def _displace_shims(displaced: "Any", cls: type) -> None:
    # TRL 0.26 to 0.28 keep a subclass of what they have moved to trl.experimental in its old place, under its old name.
    # Unsloth puts its class there too.
    for shim in displaced.__subclasses__():
        if shim is not cls and shim.__name__ == cls.__name__ and targets.is_config_module(shim.__module__):
            try:
                identity.register_displaced(shim, cls)
            except TypeError:  # no mere shim
                pass


def note_owner(cls: type) -> None:
    """Put it on record that Unsloth's class owns its name."""
    identity.patched.add(cls)
    extras = [field.name for field in targets.FIELDS if hasattr(cls, field.name)]
    report.classes[f"{cls.__module__}.{cls.__qualname__}"] = {"state": "unsloth", "fields": extras}


class UnslothFirstFinder:
    """`UNSLOTH_HOOK=first`: the first import of trl, transformers or peft imports unsloth before it."""

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """The real spec with a loader that imports Unsloth first, or None."""
        if fullname not in COMES_AFTER or "unsloth" in sys.modules:
            return None
        spec = finder.find_behind(self, fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _UnslothFirstLoader(spec.loader)  # type: ignore[assignment]
        return spec


class _UnslothFirstLoader:
    """Imports Unsloth, which imports the module itself; hands out that one, or else steps aside.

    Not in `find_spec`, where importlib holds its global lock: another thread in an import would wait for it for ever.
    """

    def __init__(self, real: "Any") -> None:
        self._real = real

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._real, name)

    def create_module(self, spec: "ModuleSpec") -> "ModuleType | None":
        _import_unsloth()
        module = sys.modules.get(spec.name)
        if module is None:
            spec.loader = self._real
            created: ModuleType | None = self._real.create_module(spec)
            return created
        self._spec = module.__spec__
        return module

    def exec_module(self, module: "ModuleType") -> None:
        module.__spec__ = self._spec  # importlib has put in the one that it asked us for


def _import_unsloth() -> None:
    if "unsloth" in sys.modules:  # another thread is importing it: to wait here could be to wait for ever
        return
    try:
        import unsloth  # noqa: F401
    except Exception as error:
        for installed in [finder for finder in sys.meta_path if isinstance(finder, UnslothFirstFinder)]:
            sys.meta_path.remove(installed)
        _bootstrap.say(
            f"UNSLOTH_HOOK=first: unsloth cannot be imported ({type(error).__name__}: {error}); going on without"
        )
