"""Switches the finders on and off."""

import _thread
import os
import sys

from . import finder, switch, targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

route: str | None = None  # how the hook was switched on, None while it is off


class Handle:
    """What `install()` returns: `uninstall()` it, or use it as a context manager.

    At the end of a `with` block the hook is off again, unless it was on before.
    """

    def __init__(self, switched_on: bool) -> None:
        self._switched_on = switched_on

    def uninstall(self) -> None:
        """Take the finders off; see `unsloth_hook.uninstall`."""
        uninstall()

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, *exception: "Any") -> None:
        if self._switched_on:
            uninstall()


def install(*, strict: bool = False) -> "Handle":
    """Switch the hook on in this process, early (before TRL is imported) or late. Calling it again changes nothing.

    `os.environ` is left alone, so child processes are not hooked by this. `UNSLOTH_HOOK=0` (or `false`, `no`, `off`, or
    anything that is not understood) keeps it off.

    Args:
        strict: raise where a config class cannot be patched, rather than leave that class as TRL wrote it.

    Returns:
        A handle that uninstalls.

    Raises:
        PatchError: TRL is imported already, one of its classes cannot be patched, and `strict` or
            `UNSLOTH_HOOK_STRICT=1` asks for it. The hook is off then.
    """
    return activate("install", strict=strict)


def activate(by: str, *, strict: bool = False) -> "Handle":
    """`install()` by a named route: `env`, `sitecustomize`, `install`, `run`, `ipython`, `pytest` or `enable`."""
    global route
    if not switch.wanted(by):
        return Handle(switched_on=False)
    switch.strict = switch.strict or strict
    if os.environ.get("UNSLOTH_HOOK_LOG"):
        from . import log  # noqa: F401 (it reads the variable)
    with _LOCK:  # only while the finders are put on: nothing is imported under it
        if not _put_on():
            return Handle(switched_on=False)
    route = os.environ.get("UNSLOTH_HOOK_ROUTE") or by  # `unsloth-hook run` leaves word there
    if "trl" in sys.modules:
        try:
            from . import late_activation

            late_activation.swap_loaded()
        except BaseException:
            uninstall()
            raise
    return Handle(switched_on=True)


def _put_on() -> bool:
    if switch.ours():
        return False
    if switch.variable() == "first":
        from .unsloth_first import UnslothFirstFinder

        sys.meta_path.insert(0, UnslothFirstFinder())
    sys.meta_path.insert(0, finder.PostImportFinder(PREFIXES, _select, _catch_up))
    sys.meta_path.append(AliasFinder())  # last, so that a real module always wins
    return True


def uninstall() -> None:
    """Take the finders off `sys.meta_path`. Classes that exist stay patched, and keep pickling."""
    global route
    switch.take_off()
    switch.strict = False
    route = None
    _hide_from_unsloth()  # whose arrival nobody will notice now


_LOCK = _thread.allocate_lock()
PREFIXES = (targets.PREFIX, "transformers.hf", "Unsloth", "unsloth.", "unsloth_")
STRAY = ("Unsloth", "unsloth_compiled_cache", "unsloth_cache_")  # the beginnings of the names that `aliases` knows


class AliasFinder:
    """The reverse alias finder, last on the meta path. What it knows is in `aliases`, imported for a stray name."""

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """See `aliases.find_spec`."""
        aliases = _aliases() if fullname.startswith(STRAY) else None
        return aliases.find_spec(fullname) if aliases else None


def _select(name: str) -> "finder.Callback | None":
    if name.startswith(("unsloth.", "unsloth_zoo.")):  # it is being imported, not only looked for
        _hide_from_unsloth()
    if name == "unsloth_zoo" and (aliases := _aliases()):
        aliases.withdraw()  # Unsloth tells a written cache from a missing one by whether importing its name succeeds
    if targets.is_generated_module(name):
        return _adopt
    if name in targets.PARSERS:
        return _teach
    return _swap if targets.is_config_module(name) else None


def _hide_from_unsloth() -> None:
    signatures = sys.modules.get("unsloth_hook.signatures")  # as long as no config is swapped, there is none
    hide: Any = getattr(signatures, "hide", None)
    if hide:
        hide()


def _catch_up() -> "finder.Callback | None":
    """Is there a config module that was executed without us, or is being executed? Asked in `find_spec`: no imports."""
    known: Any = getattr(sys.modules.get("unsloth_hook.identity"), "known", frozenset())  # none, or half imported
    try:
        missed = any(
            getattr(getattr(module, "__spec__", None), "_initializing", False)
            or not known.issuperset(targets.config_classes(module))
            for name, module in list(sys.modules.items())
            if name.startswith(targets.PREFIX) and module and targets.is_config_module(name)
        )
    except Exception:  # what one of them holds cannot even be looked at
        return None
    return _swap_missed if missed else None


def _aliases() -> "Any":
    """What few processes need; None if the package has gone since it was started."""
    try:
        from . import aliases
    except ImportError:
        return None
    return aliases


# What only a swap needs is imported by these, which the loader calls: there importlib holds no global lock. The package
# may have gone, or be broken, since it was started; then the user's import goes on as if the hook were off.
def _swap(module: "ModuleType") -> None:
    try:
        from .patching import swap
    except Exception as error:
        _leave(module, error)
    else:
        swap(module)


def _adopt(module: "ModuleType") -> None:
    try:
        from .real_unsloth import adopt
    except Exception as error:
        _leave(module, error)
    else:
        adopt(module)


def _teach(module: "ModuleType") -> None:
    if "unsloth_hook.patching" in sys.modules:  # else the first swap does it
        from .parsers import teach

        teach(module)


def _swap_missed(module: "ModuleType") -> None:
    try:
        from .late_activation import swap_missed
    except Exception as error:
        _leave(module, error)
    else:
        swap_missed()


def _leave(module: "ModuleType", error: Exception) -> None:
    global _whole
    if switch.is_strict():
        raise error
    if _whole:
        why = f"for unsloth_hook is not whole: {type(error).__name__}: {error}"
        switch.say(f"{module.__name__}, and what comes after it, stays as it is, {why}")
    _whole = False


_whole = True  # until something of ours could not be imported, which is said once
