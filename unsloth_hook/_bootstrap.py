"""The start-up gate. Everything that runs on its own, at interpreter start, comes through here and never raises."""

import os
import sys

ON = ("1", "true", "yes", "on", "first")
OFF = ("0", "false", "no", "off")


def start(route: str = "env") -> None:
    """Switch the hook on if UNSLOTH_HOOK says so or, by a route other than `env`, if it says nothing. Never raises."""
    try:
        if value() and switch() is None:
            say(f"UNSLOTH_HOOK={value()!r} is none of {', '.join(ON + OFF)}: the hook stays off")
        elif switch() or (not value() and route != "env"):
            from .activation import activate

            activate(route)
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: start-up code must not end the interpreter
        take_off()
        say(f"the hook stays off: {type(error).__name__}: {error}")


def value() -> str:
    """UNSLOTH_HOOK, without blanks and in lower case; empty where it is unset."""
    return os.environ.get("UNSLOTH_HOOK", "").strip().lower()


def switch() -> "bool | None":
    """What UNSLOTH_HOOK says: True, False, or None where it is unset, empty or not understood."""
    return True if value() in ON else False if value() in OFF else None


def ours() -> "list[object]":
    """Our finders on the meta path."""
    return [finder for finder in sys.meta_path if type(finder).__module__.startswith("unsloth_hook.")]


def take_off() -> None:
    """Take our finders off the meta path."""
    for finder in ours():
        sys.meta_path.remove(finder)  # type: ignore[arg-type]


def say(line: str) -> None:
    """One line on standard error; never raises."""
    try:
        print(f"unsloth_hook: {line}", file=sys.stderr)
    except BaseException:  # there may be no standard error, or a closed one
        pass
