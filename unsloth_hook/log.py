"""The logger ``unsloth_hook``: a debug line for each swapped class. ``UNSLOTH_HOOK_LOG=debug`` prints it."""

import os
import sys

from . import _bootstrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEVELS = ("debug", "info", "warning", "error", "critical")


def swapped(name: str, entry: "dict[str, Any]", seconds: float) -> None:
    """Log what became of a class.

    Args:
        name: its full name.
        entry: what `status()` says of it.
        seconds: how long it took.
    """
    if "logging" not in sys.modules:  # nobody can be listening
        return
    from logging import getLogger

    fields = ", ".join(entry["fields"])
    getLogger("unsloth_hook").debug("%s: %s in %.1f ms, with %s", name, entry["state"], seconds * 1000, fields)


def _print(level: str) -> None:
    if level.lower() not in LEVELS:
        _bootstrap.say(f"UNSLOTH_HOOK_LOG={level!r} is none of {', '.join(LEVELS)}: nothing is logged")
        return
    import logging

    logger = logging.getLogger("unsloth_hook")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False  # else a program with logging of its own would print each line twice


# Here, since a module is executed once, whichever thread comes first.
if level := os.environ.get("UNSLOTH_HOOK_LOG", "").strip():
    _print(level)
