"""What happened and why: filled in by the others, read by `status()` and by `unsloth-hook doctor`."""

import os
import sys

from . import _bootstrap, targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

route: str | None = None  # how the hook was switched on, None while it is off
late = False  # had a config module been imported before?
classes: "dict[str, dict[str, Any]]" = {}  # full class name -> {"state": patched, inherited or left, ...}


def swapped(name: str, entry: "dict[str, Any]", seconds: float) -> None:
    """Log what became of a class.

    Args:
        name: its full name.
        entry: what `status()` says of it.
        seconds: how long it took.
    """
    if "logging" in sys.modules:  # else nobody can be listening
        from logging import getLogger

        fields = ", ".join(entry["fields"])
        getLogger("unsloth_hook").debug("%s: %s in %.1f ms, with %s", name, entry["state"], seconds * 1000, fields)


def status() -> "dict[str, Any]":
    """What the hook did in this process, as plain values, ready for JSON.

    - `active` (bool), and `route`: `env`, `sitecustomize`, `install`, … or None
    - `late` (bool): TRL's configs had been imported before; references taken by then are not rebound
    - `classes`, by full name: `state` (`patched`; `inherited`: has the fields from its base; `unsloth`: Unsloth's class
      owns the name; `left`: as TRL wrote it), `fields` (the extra ones) or, if left, the `reason`: it cannot be
      patched, or is no config of a trainer
    - `variable`: UNSLOTH_HOOK as it is now
    - `asked`: the routes that start-up code came by
    - `meta_path`: the finders in order
    - `bypassed`: the config modules that were loaded past the hook, by name, each with its loader

    Returns:
        A dict with these keys.
    """
    from . import unsloth

    for name in list(classes):
        module, _, last = name.rpartition(".")
        owner = vars(sys.modules[module]).get(last) if module in sys.modules else None
        if isinstance(owner, type) and unsloth.is_generated_class(owner):
            classes[name]["state"] = "unsloth"
    active = bool(_bootstrap.ours())
    seen = {name: dict(entry) for name, entry in classes.items()}
    return {
        "active": active,
        "route": route if active else None,
        "late": late,
        "classes": {**(_left_alone() if active or seen else {}), **seen},
        "variable": os.environ.get("UNSLOTH_HOOK"),
        "asked": list(_bootstrap.asked),
        "meta_path": [_name_of(finder) for finder in sys.meta_path],
        "bypassed": _bypassed() if active else {},
    }


def _left_alone() -> "dict[str, dict[str, Any]]":
    return {
        cls: {"state": "left", "reason": reason}
        for name, module in list(sys.modules.items())
        if module and name not in classes
        for cls, reason in targets.left_alone(name, module).items()
    }


def _bypassed() -> "dict[str, str]":
    modules = [(name, module) for name, module in list(sys.modules.items()) if targets.is_config_module(name)]
    return {
        name: _name_of(getattr(module, "__loader__", None))
        for name, module in modules
        if module
        and name not in classes
        and any(f"{name}.{cls.__qualname__}" not in classes for cls in targets.config_classes(module))
    }


def _name_of(thing: object) -> str:
    cls = thing if isinstance(thing, type) else type(thing)
    return f"{cls.__module__}.{cls.__qualname__}"
