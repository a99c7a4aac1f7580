"""The start-up gate. Everything that runs on its own, at interpreter start, comes through here and never raises."""

import os
import sys

ON = ("1", "true", "yes", "on", "first")
OFF = ("0", "false", "no", "off")
asked: "dict[str, bool]" = {}  # the routes that start-up code has come by, and whether the variable let them


def start(route: str = "env") -> None:
    """Switch the hook on if UNSLOTH_HOOK lets this route do so. Never raises."""
    try:
        asked[route] = wanted(route)
        if asked[route]:
            from .activation import activate

            activate(route)
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: start-up code must not end the interpreter
        take_off()
        say(f"the hook stays off: {type(error).__name__}: {error}")


def wanted(route: str) -> bool:
    """Does UNSLOTH_HOOK say yes or, to a route other than `env`, at least nothing?"""
    value = os.environ.get("UNSLOTH_HOOK", "").strip().lower()
    if value and value not in ON + OFF and route not in asked:  # a virtual environment runs each .pth line twice
        say(f"UNSLOTH_HOOK={value!r} is none of {', '.join(ON + OFF)}: the hook stays off")
    return value in ON or (not value and route != "env")


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
