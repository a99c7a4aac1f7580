"""``UNSLOTH_HOOK_LOG=debug`` prints what goes to the logger ``unsloth_hook``: a debug line for each swapped class."""

import os

from . import switch

LEVELS = ("debug", "info", "warning", "error", "critical")


def _print(level: str) -> None:
    if level.lower() not in LEVELS:
        switch.say(f"UNSLOTH_HOOK_LOG={level!r} is none of {', '.join(LEVELS)}: nothing is logged")
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
