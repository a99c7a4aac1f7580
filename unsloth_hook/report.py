"""What happened and why: filled in by the others, read by `status()` and by `unsloth-hook doctor`."""

import sys

from . import _bootstrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

route: str | None = None  # how the hook was switched on, None while it is off
late = False  # had a config module been imported before?
classes: "dict[str, dict[str, Any]]" = {}  # full class name -> {"state": patched, inherited or left, ...}


def status() -> "dict[str, Any]":
    """What the hook did in this process.

    Returns:
        A dict of plain values, ready for JSON: `active` (bool), `route` (`env`, `sitecustomize`, `install`, … or None),
        `late` (bool: TRL's configs had been imported before; references taken by then are not rebound), and `classes`,
        by full name: `state` (`patched`; `inherited`: has the fields from its base; `unsloth`: Unsloth's class owns the
        name; `left`: as TRL wrote it), `fields` (the extra ones) or, if left, the `reason`.
    """
    from . import unsloth

    for name in list(classes):
        module, _, last = name.rpartition(".")
        owner = vars(sys.modules[module]).get(last) if module in sys.modules else None
        if isinstance(owner, type) and unsloth.is_generated_class(owner):
            classes[name]["state"] = "unsloth"
    active = bool(_bootstrap.ours())
    return {
        "active": active,
        "route": route if active else None,
        "late": late,
        "classes": {name: dict(entry) for name, entry in classes.items()},
    }
