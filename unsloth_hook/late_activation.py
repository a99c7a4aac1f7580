"""What TRL had imported before the hook was switched on is swapped here."""

import sys

from . import identity, patched_class, patching, targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

seen = False  # had a config module been imported before?


def swap_loaded() -> None:
    """Patch the config classes of the modules that are loaded, bases first, wherever a `trl` module holds them.

    Raises:
        PatchError: in strict mode, when a class cannot be patched.
    """
    from . import real_unsloth

    generated = [module for name, module in list(sys.modules.items()) if targets.is_generated_module(name) and module]
    for module in generated:
        real_unsloth.hand_back(module)
    try:
        for module in sorted(_config_modules(), key=_depth):
            _swap(module)
    finally:
        for module in generated:
            real_unsloth.adopt(module)


def swap_missed() -> None:
    """The same for config modules that a finder in front has hidden from the hook's, once they have been executed."""
    for module in sorted(_config_modules(), key=_depth):
        executing = getattr(module.__spec__, "_initializing", False)
        if not executing and not identity.known.issuperset(targets.config_classes(module)):
            _swap(module)


def _swap(module: "ModuleType") -> None:
    global seen
    seen = True
    stock = targets.config_classes(module)
    patching.swap(module)
    for pristine in stock:
        owner = getattr(module, pristine.__name__)
        if owner is not pristine:
            _take_over(pristine, owner)


def _config_modules() -> "list[ModuleType]":
    return [module for name, module in list(sys.modules.items()) if targets.is_config_module(name) and module]


def _depth(module: "ModuleType") -> int:
    return max((len(cls.__mro__) for cls in targets.config_classes(module)), default=0)


def _take_over(pristine: "Any", owner: type) -> None:
    """Everything that TRL would still take for `pristine` becomes `owner`'s.

    A trainer asks `isinstance(args, SFTConfig)` and rebuilds what is none from `to_dict()`, which knows fields only. So
    that nothing else is lost, existing instances become the owner's, existing subclasses derive from it, and the
    class that somebody took before constructs it.
    """
    import contextlib
    import gc

    for name, module in list(sys.modules.items()):
        if (name == "trl" or name.startswith(targets.PREFIX) or targets.is_generated_module(name)) and module:
            patching.rebind(module, pristine, owner)
    for subclass in pristine.__subclasses__():
        if subclass is not owner:
            with contextlib.suppress(TypeError):  # its other bases do not allow it
                subclass.__bases__ = tuple(owner if base is pristine else base for base in subclass.__bases__)
                patched_class.extend(subclass, owner)
    for instance in gc.get_referrers(pristine):
        if type(instance) is pristine:
            with contextlib.suppress(TypeError):  # slots
                instance.__class__ = owner

    def __new__(cls: type, *args: "Any", **kwargs: "Any") -> "Any":
        return super(pristine, cls).__new__(owner if cls is pristine else cls)

    __new__.__wrapped__ = pristine.__init__  # type: ignore[attr-defined]  # for inspect.signature
    pristine.__new__ = __new__
