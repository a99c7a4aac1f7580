"""The start-up gate. Everything that runs on its own, at interpreter start, comes through here and never raises."""

from . import switch


def start(route: str = "env") -> None:
    """Switch the hook on if UNSLOTH_HOOK lets this route do so. Never raises."""
    try:
        switch.asked[route] = switch.wanted(route)
        if switch.asked[route]:
            from .activation import activate

            activate(route)
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: start-up code must not end the interpreter
        switch.take_off()
        switch.say(f"the hook stays off: {type(error).__name__}: {error}")
