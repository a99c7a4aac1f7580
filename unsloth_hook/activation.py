"""Switches the finders on and off."""

import _thread
import os
import sys

from . import _bootstrap, aliases, finder, patching, report, targets, unsloth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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


def activate(route: str, *, strict: bool = False) -> "Handle":
    """`install()` by a named route: `env`, `sitecustomize`, `install`, `run`, `ipython`, `pytest` or `enable`."""
    if not _bootstrap.wanted(route):
        return Handle(switched_on=False)
    patching.strict = patching.strict or strict
    if os.environ.get("UNSLOTH_HOOK_LOG"):
        from . import log  # noqa: F401 (it reads the variable)
    with _LOCK:  # only while the finders are put on: nothing is imported under it
        if not _put_on():
            return Handle(switched_on=False)
    report.route = os.environ.get("UNSLOTH_HOOK_ROUTE") or route  # `unsloth-hook run` leaves word there
    if "trl" in sys.modules:
        from . import late

        try:
            late.swap_loaded()
        except BaseException:
            uninstall()
            raise
    return Handle(switched_on=True)


def _put_on() -> bool:
    if _bootstrap.ours():
        return False
    if os.environ.get("UNSLOTH_HOOK", "").strip().lower() == "first":
        from .first import UnslothFirstFinder

        sys.meta_path.insert(0, UnslothFirstFinder())
    sys.meta_path.insert(0, finder.PostImportFinder(PREFIXES, _select))
    sys.meta_path.append(aliases.AliasFinder())  # last, so that a real module always wins
    return True


def uninstall() -> None:
    """Take the finders off `sys.meta_path`. Classes that exist stay patched, and keep pickling."""
    _bootstrap.take_off()
    patching.strict = False
    report.route = None


_LOCK = _thread.allocate_lock()
PREFIXES = (targets.PREFIX, "Unsloth", "unsloth_")


def _select(name: str) -> "finder.Callback | None":
    if name == "unsloth_zoo":
        aliases.withdraw()  # Unsloth tells a written cache from a missing one by whether importing its name succeeds
    if unsloth.is_generated_module(name):
        return unsloth.adopt
    return patching.swap if targets.is_config_module(name) else None
