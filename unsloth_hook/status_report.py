"""What happened and why, from what the others have noted down."""

import os
import sys

from . import activation, identity, late_activation, switch, targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
    classes = identity.classes
    for name in list(classes):
        module, _, last = name.rpartition(".")
        owner = vars(sys.modules[module]).get(last) if module in sys.modules else None
        if isinstance(owner, type) and targets.is_generated_class(owner):
            classes[name]["state"] = "unsloth"
    active = bool(switch.ours())
    seen = {name: dict(entry) for name, entry in list(classes.items())}
    return {
        "active": active,
        "route": activation.route if active else None,
        "late": late_activation.seen,
        "classes": {**(_left_alone() if active or seen else {}), **seen},
        "variable": os.environ.get("UNSLOTH_HOOK"),
        "asked": list(switch.asked),
        "meta_path": [_name_of(finder) for finder in sys.meta_path],
        "bypassed": _bypassed() if active else {},
    }


def _left_alone() -> "dict[str, dict[str, Any]]":
    return {
        cls: {"state": "left", "reason": reason}
        for name, module in list(sys.modules.items())
        if module and name not in identity.classes
        for cls, reason in targets.left_alone(name, module).items()
    }


def _bypassed() -> "dict[str, str]":
    modules = [(name, module) for name, module in list(sys.modules.items()) if targets.is_config_module(name)]
    return {
        name: _name_of(getattr(module, "__loader__", None))
        for name, module in modules
        if module
        and name not in identity.classes
        and any(f"{name}.{cls.__qualname__}" not in identity.classes for cls in targets.config_classes(module))
    }


def _name_of(thing: object) -> str:
    cls = thing if isinstance(thing, type) else type(thing)
    return f"{cls.__module__}.{cls.__qualname__}"
