"""What TRL had imported before the hook was switched on is swapped here."""

import dataclasses
import sys
from copy import copy

from . import extras, identity, patching, representation, targets

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
    """The same for classes in config modules that a finder in front has hidden from the hook's."""
    for module in sorted(_config_modules(), key=_depth):
        if not identity.known.issuperset(targets.config_classes(module)):
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
        if subclass is not owner and owner in subclass.__mro__:
            _extend(subclass, owner)
    for instance in gc.get_referrers(pristine):
        if type(instance) is pristine:
            with contextlib.suppress(TypeError):  # slots
                instance.__class__ = owner

    def __new__(cls: type, *args: "Any", **kwargs: "Any") -> "Any":
        return super(pristine, cls).__new__(owner if cls is pristine else cls)

    __new__.__wrapped__ = pristine.__init__  # type: ignore[attr-defined]  # for inspect.signature
    pristine.__new__ = __new__


def _extend(subclass: "Any", patched: "Any") -> None:
    """Give a dataclass, and what derives from it, the extra fields of the class that it derives from by now."""
    own = vars(subclass)
    if "__dataclass_fields__" in own and representation.is_generated(own.get("__init__")):
        extra = {
            name: field
            for name, field in patched.__dataclass_fields__.items()
            if extras.is_of_the_hook(field) and extras.whose(subclass, name) is extras.OURS
        }
        fields = {**subclass.__dataclass_fields__, **extra}
        subclass.__init__ = _init_for(subclass, fields)
        subclass.__dataclass_fields__ = fields
    for further in subclass.__subclasses__():
        _extend(further, patched)


def _init_for(cls: "Any", fields: "dict[str, dataclasses.Field[Any]]") -> "Any":
    """The `__init__` of a class with these fields. To make a subclass for it would call `__init_subclass__`."""
    body = {name: copy(field) for name, field in fields.items()}
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__post_init__") if hasattr(cls, name)}
    made: Any = type(cls.__name__, (), {**body, **names, "__annotations__": {f.name: f.type for f in body.values()}})
    return dataclasses.dataclass(frozen=cls.__dataclass_params__.frozen, repr=False, eq=False)(made).__init__
