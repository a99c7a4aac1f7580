"""`UNSLOTH_HOOK=first`: Unsloth is imported before whatever it has to be imported before."""

import _frozen_importlib
import _thread
import sys

from . import finder, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

COMES_AFTER = ("trl", "transformers", "peft")  # what Unsloth warns about when it was imported before


class UnslothFirstFinder:
    """The first import of trl, transformers or peft imports unsloth before it."""

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """The real spec with a loader that imports Unsloth first, or None."""
        if fullname not in COMES_AFTER or _is_there():
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
        locks = _held_locks()
        for lock in locks:
            lock.release()
        try:
            _import_unsloth()
        finally:
            for lock in locks:
                lock.acquire()
        module = sys.modules.get(spec.name)
        if module is None:
            spec.loader = self._real
            created: ModuleType | None = self._real.create_module(spec)
            return created
        self._spec = module.__spec__
        return module

    def exec_module(self, module: "ModuleType") -> None:
        module.__spec__ = self._spec  # importlib has put in the one that it asked us for


def _is_there() -> bool:
    """Has Unsloth been imported, or is this thread importing it now? What another thread imports is waited for."""
    spec = getattr(sys.modules.get("unsloth"), "__spec__", None)
    if spec is None:
        return "unsloth" in sys.modules
    lock = _locks().get("unsloth")
    return not getattr(spec, "_initializing", False) or lock is None or lock.owner == _thread.get_ident()


def _held_locks() -> "list[Any]":
    """importlib's locks of the modules that this thread is about to import, outermost first.

    While they are held, the thread that imports Unsloth, and with it these modules, would wait for this one, which
    waits for Unsloth. Without them it executes the modules, and importlib, as after any import of a parent, looks
    into `sys.modules` again. The lock of a module that is being executed already stays held.
    """
    me = _thread.get_ident()
    return [
        lock
        for name, lock in _locks().items()
        if lock.owner == me and name.partition(".")[0] in COMES_AFTER and name not in sys.modules
    ]


def _locks() -> "dict[str, Any]":
    references = getattr(_frozen_importlib, "_module_locks", {})  # private, but the same in CPython 3.10 to 3.14
    alive = {name: reference() for name, reference in list(references.items())}
    return {name: lock for name, lock in alive.items() if lock is not None}


def _import_unsloth() -> None:
    try:
        import unsloth  # noqa: F401
    except Exception as error:
        for installed in [finder for finder in sys.meta_path if isinstance(finder, UnslothFirstFinder)]:
            sys.meta_path.remove(installed)
            switch.say(
                f"UNSLOTH_HOOK=first: unsloth cannot be imported ({type(error).__name__}: {error}); going on without"
            )
