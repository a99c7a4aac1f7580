"""On or off: what UNSLOTH_HOOK and its kin say, and which finders of ours are on the meta path."""

import os
import sys

ON = ("1", "true", "yes", "on", "first")
OFF = ("0", "false", "no", "off")
asked: "dict[str, bool]" = {}  # the routes that start-up code has come by, and whether the variable let them
strict = False  # set by install(strict=True); UNSLOTH_HOOK_STRICT=1 counts besides


def variable() -> str:
    """UNSLOTH_HOOK as the hook reads it: without white space, in small letters; "" if it is not set."""
    return os.environ.get("UNSLOTH_HOOK", "").strip().lower()


def wanted(route: str) -> bool:
    """Does UNSLOTH_HOOK say yes or, to a route other than `env`, at least nothing?"""
    value = variable()
    if value and value not in ON + OFF and route not in asked:  # a virtual environment runs each .pth line twice
        say(f"UNSLOTH_HOOK={value!r} is none of {', '.join(ON + OFF)}: the hook stays off")
    return value in ON or (not value and route != "env")


def is_strict() -> bool:
    """Is a config that cannot be patched an error?"""
    return strict or os.environ.get("UNSLOTH_HOOK_STRICT", "") == "1"


def ours() -> "list[object]":
    """Our finders on the meta path."""
    return [finder for finder in sys.meta_path if str(type(finder).__module__).startswith("unsloth_hook.")]


def take_off() -> None:
    """Take our finders off the meta path."""
    for finder in ours():
        sys.meta_path.remove(finder)  # type: ignore[arg-type]


def say(line: str) -> None:
    """One line on standard error; there may be none, or a closed one."""
    try:
        sys.stderr.write(f"unsloth_hook: {' '.join(line.split())}\n")
    except BaseException:
        pass
