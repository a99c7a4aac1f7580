"""Swaps: what each config class of a module needs, and the name bound to the class that has it."""

import sys
import time

from . import extras, identity, patched_class, signatures, switch, targets
from .fields import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


class PatchError(RuntimeError):
    """A config class cannot be patched, and strict mode was asked for (`UNSLOTH_HOOK_STRICT=1`)."""


def swap(module: "ModuleType") -> None:
    """Bind patched classes in a config module that has just been executed.

    Args:
        module: one that `targets.is_config_module` names.

    Raises:
        PatchError: in strict mode, when a class cannot be patched. Else it stays as it is and one line says why.
    """
    if not sys.modules.keys().isdisjoint(targets.PARSERS):
        from . import parsers

        parsers.teach_loaded()
    try:
        found = targets.config_classes(module)
    except Exception as error:  # what it holds cannot even be looked at
        _leave(module.__name__, error)
        return
    for pristine in found:
        if pristine in identity.patched:  # the hook was off and is on again
            continue
        if targets.is_generated_class(pristine):
            from . import real_unsloth

            real_unsloth.note_owner(pristine)
            continue
        name = f"{pristine.__module__}.{pristine.__qualname__}"
        started = time.perf_counter()
        try:
            owner = _own(pristine, name)
            _bind(module, pristine, owner)
        except Exception as error:
            identity.known.add(pristine)
            _leave(name, error)
        else:
            _log(name, time.perf_counter() - started)


def _log(name: str, seconds: float) -> None:
    if "logging" in sys.modules:  # else nobody can be listening
        from logging import getLogger

        entry = identity.classes[name]
        fields = ", ".join(entry["fields"])
        getLogger("unsloth_hook").debug("%s: %s in %.1f ms, with %s", name, entry["state"], seconds * 1000, fields)


def _leave(name: str, error: Exception) -> None:
    identity.classes[name] = {"state": "left", "reason": f"{type(error).__name__}: {error}"}
    if switch.is_strict():
        raise PatchError(f"{name} cannot be patched: {type(error).__name__}: {error}") from error
    switch.say(f"{name} stays as TRL wrote it: {type(error).__name__}: {error}")


def _own(pristine: "Any", name: str) -> type:
    present = getattr(pristine, "__dataclass_fields__", {})
    # What TRL has under the name, be it a field, a property or a class variable, is TRL's.
    taken = {name for base in pristine.__mro__ if base not in identity.patched for name in vars(base)} | set(present)
    missing = [field for field in FIELDS if field.name not in taken and field.wanted(present)]
    inherited = [field for field in FIELDS if field.name in present and extras.is_of_the_hook(present[field.name])]
    if missing:
        owner = patched_class.build(pristine, missing)
    else:
        owner = pristine
        patched_class.take_over(owner, inherited)
    names = [field.name for field in FIELDS if field in missing or field in inherited]
    signatures.note(owner, names)
    identity.patched.add(owner)
    identity.known.add(owner)
    identity.classes[name] = {"state": "patched" if missing else "inherited", "fields": names}
    return owner


def _bind(module: "ModuleType", pristine: type, owner: type) -> None:
    if owner is not pristine:
        rebind(module, pristine, owner)
        identity.register_displaced(pristine, owner)
    key = (pristine.__module__, pristine.__qualname__)
    before = identity.owners.get(key)
    identity.owners[key] = (pristine, owner)
    for old, new in zip(before or (), (pristine, owner)):  # noqa: B905 (before is there only after a reload)
        try:
            identity.register_displaced(old, new)
        except TypeError:  # TRL was imported anew, bases and all: the old instances pickle no more, as with stock TRL
            pass


def rebind(module: "ModuleType", pristine: type, owner: type) -> None:
    """Let every name in `module` that holds `pristine` hold `owner`."""
    for name, value in list(vars(module).items()):
        if value is pristine:
            setattr(module, name, owner)
