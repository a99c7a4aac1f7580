"""What differs while the real Unsloth is loaded: its generated classes own their names."""

import sys

from . import identity, targets
from .fields import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def adopt(module: "ModuleType") -> None:
    """Let the config class of a generated module take the name of the TRL class that it stands in for.

    Unsloth does so itself from August 2026 on; before, its configs pickle as `UnslothSFTTrainer.UnslothSFTConfig`,
    which exists beside a compiled cache only.
    """
    for cls in _configs(module):
        displaced = cls.__bases__[0]
        name, home = displaced.__qualname__, sys.modules[displaced.__module__]
        cls.__module__, cls.__qualname__, cls.__name__ = home.__name__, name, name
        if getattr(home, name, None) is displaced:
            setattr(home, name, cls)
        identity.register_displaced(displaced, cls)
        _displace_shims(displaced, cls)
        note_owner(cls)


def hand_back(module: "ModuleType") -> None:
    """Until it is adopted, let the config class of a generated module leave its name to TRL's class.

    For a late activation, which then puts a patched class between the two, as if the hook had been there before.
    """
    for cls in _configs(module):
        displaced = cls.__bases__[0]
        setattr(sys.modules[displaced.__module__], displaced.__qualname__, displaced)


def _configs(module: "ModuleType") -> "list[type]":
    """The config classes in a generated module that go by names of its own."""
    return [
        cls
        for cls in list(vars(module).values())
        if isinstance(cls, type)
        and cls.__module__ == module.__name__
        and cls.__name__.startswith("Unsloth")
        and targets.is_config_module(cls.__bases__[0].__module__)
    ]


def _displace_shims(displaced: "Any", cls: type) -> None:
    # TRL 0.26 to 0.28 keep a subclass of what they have moved to trl.experimental in its old place, under its old name.
    # Unsloth puts its class there too.
    for shim in displaced.__subclasses__():
        if shim is not cls and shim.__name__ == cls.__name__ and targets.is_config_module(shim.__module__):
            try:
                identity.register_displaced(shim, cls)
            except TypeError:  # no mere shim
                pass


def note_owner(cls: type) -> None:
    """Put it on record that Unsloth's class owns its name."""
    identity.patched.add(cls)
    identity.known.add(cls)
    extras = [field.name for field in FIELDS if hasattr(cls, field.name)]
    identity.classes[f"{cls.__module__}.{cls.__qualname__}"] = {"state": "unsloth", "fields": extras}
