"""Builds the patched class and binds it to its name."""

import sys
import time

from . import identity, switch, targets
from .fields import FIELDS, Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from inspect import Parameter, Signature
    from types import FunctionType, ModuleType
    from typing import Any

_added: "set[Any]" = set()  # the extra dataclass fields; a mark in their metadata would end up in argparse

# What a class statement leaves in a class beside its body; the last two, from Python 3.13, are where `inspect` looks.
AS_PRISTINE = ("__module__", "__doc__", "__firstlineno__", "__static_attributes__")


class PatchError(RuntimeError):
    """A config class cannot be patched, and strict mode was asked for (`UNSLOTH_HOOK_STRICT=1`)."""


def swap(module: "ModuleType") -> None:
    """Bind patched classes in a config module that has just been executed.

    Args:
        module: one that `targets.is_config_module` names.

    Raises:
        PatchError: in strict mode, when a class cannot be patched. Else it stays as it is and one line says why.
    """
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


def _own(pristine: type, name: str) -> type:
    present = getattr(pristine, "__dataclass_fields__", {})
    # What TRL has under the name, be it a field, a property or a class variable, is TRL's.
    taken = {name for base in pristine.__mro__ if base not in identity.patched for name in vars(base)} | set(present)
    missing = [field for field in FIELDS if field.name not in taken and field.wanted(present)]
    owner = _build(pristine, missing) if missing else pristine
    extras = [field.name for field in FIELDS if field in missing or present.get(field.name) in _added]
    if not missing and "__post_init__" in vars(owner):  # the base's rules run before this one has settled its values
        inherited = [field for field in FIELDS if field.name in extras]
        owner.__post_init__ = _PostInit(inherited, vars(owner)["__post_init__"])  # type: ignore[attr-defined]
    _show_signatures(owner, extras)
    identity.patched.add(owner)
    identity.classes[name] = {"state": "patched" if missing else "inherited", "fields": extras}
    return owner


def _build(pristine: "Any", fields: "Sequence[Field]") -> type:
    import builtins
    import dataclasses
    import inspect
    import typing

    if not _is_generated(inspect.unwrap(pristine.__init__)):
        raise TypeError("its __init__ is not one that dataclasses wrote")
    namespace = {name: vars(pristine)[name] for name in AS_PRISTINE if name in vars(pristine)}
    namespace |= {"__qualname__": pristine.__qualname__, "__annotations__": {}}
    for field in fields:
        of_value = getattr(builtins, field.type, None) or getattr(typing, field.type)
        namespace["__annotations__"][field.name] = typing.Optional[of_value]  # noqa: UP045 (Any | None: not in 3.10)
        # Keyword only, so that what inherits from this class keeps TRL's positions.
        added = dataclasses.field(default=field.default, kw_only=True, metadata={"help": field.help})
        namespace[field.name] = added
        _added.add(added)
    namespace["__post_init__"] = _PostInit(fields)
    own = vars(pristine)
    order, unsafe_hash = _is_generated(own.get("__lt__")), _is_generated(own.get("__hash__"))
    # Only what dataclasses wrote for this class is extended by the new fields; all else is inherited.
    if _is_generated(getattr(own.get("__repr__"), "__wrapped__", None)):
        namespace["__repr__"] = _repr_with(pristine, fields)
    if _is_generated(own.get("__eq__")):
        namespace["__eq__"] = _eq_with(pristine, fields)
    patched: Any = type(pristine)(pristine.__name__, (pristine,), namespace)
    dataclasses.dataclass(repr=False, eq=order, order=order, unsafe_hash=unsafe_hash)(patched)
    patched.__dataclass_params__ = pristine.__dataclass_params__
    patched.__doc__ = pristine.__doc__  # dataclass() writes one where there is none
    if not unsafe_hash:  # a class with an __eq__ of its own loses it
        patched.__hash__ = pristine.__hash__
    if hasattr(pristine.__init__, "__wrapped__"):  # by a type checker: beartype.claw, jaxtyping
        patched.__init__ = _init_through(pristine.__init__, patched.__init__, fields)
    return patched  # type: ignore[no-any-return]


# These two add the new fields to what TRL's own says. To have dataclasses write them anew for all the fields took two
# fifths of a swap.
def _repr_with(pristine: "Any", fields: "Sequence[Field]") -> "Callable[[Any], str]":
    from functools import wraps
    from reprlib import recursive_repr

    @recursive_repr()
    @wraps(pristine.__repr__)
    def __repr__(self: "Any") -> str:
        text: str = pristine.__repr__(self)
        return ", ".join([text[:-1], *(f"{field.name}={getattr(self, field.name)!r}" for field in fields)]) + text[-1:]

    return __repr__


def _eq_with(pristine: "Any", fields: "Sequence[Field]") -> "Callable[[Any, object], Any]":
    from functools import wraps

    @wraps(pristine.__eq__)
    def __eq__(self: "Any", other: object) -> "Any":
        equal = pristine.__eq__(self, other)
        if equal is not True:
            return equal
        return [getattr(self, field.name) for field in fields] == [getattr(other, field.name) for field in fields]

    return __eq__


def _init_through(
    wrapped: "Callable[..., None]", generated: "Callable[..., None]", fields: "Sequence[Field]"
) -> "Callable[..., None]":
    """An `__init__` that goes through the pristine class's own, which somebody has wrapped, for what that checks."""
    from functools import wraps

    @wraps(generated)
    def __init__(self: "Any", *args: "Any", **values: "Any") -> None:
        for field in fields:
            setattr(self, field.name, values.pop(field.name, field.default))
        wrapped(self, *args, **values)

    return __init__


def _is_generated(function: "Any") -> bool:
    file = _file_of(function)
    while file.startswith("<@beartype("):  # beartype.claw, if it is on, has wrapped what dataclasses wrote
        function = function.__wrapped__
        file = _file_of(function)
    return file == "<string>"  # dataclasses' exec, in every Python from 3.10


def _file_of(function: "Any") -> str:
    file: str = getattr(getattr(function, "__code__", None), "co_filename", "")
    return file


class _PostInit:
    """TRL's `__post_init__` with the extra fields' rules around it and no frame of ours below it.

    TRL warns with `stacklevel=3`: from `__post_init__` past the generated `__init__` to the caller's line. A method
    that calls `super().__post_init__()` would be counted; a descriptor that hands out TRL's own is not.
    """

    def __init__(self, fields: "Sequence[Field]", own: "FunctionType | None" = None) -> None:
        self._rules = [(field.name, field.before, field.after) for field in fields if field.before or field.after]
        self._own: Any = own  # in a class that is not ours; in ours, it is the next one's in the order of resolution

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner: Any = owner

    def __get__(self, instance: "Any", cls: "Any") -> "Callable[..., Any]":
        if instance is None:
            from functools import wraps

            of_class = self._own or getattr(super(self._owner, cls), "__post_init__", bool)
            return wraps(of_class)(lambda instance: self.__get__(instance, cls)())
        stock: Callable[..., Any] = (
            self._own.__get__(instance) if self._own else getattr(super(self._owner, instance), "__post_init__", bool)
        )
        rules = [(rule, getattr(instance, rule[0], None)) for rule in self._rules]
        due = [(before, after, value) for (_, before, after), value in rules if value is not None]
        for before, _, value in due:
            if before:
                before(instance, value)
        steps = [(after, value) for _, after, value in due if after]
        return _followed_by(stock, instance, steps) if steps else stock


def _followed_by(
    stock: "Callable[..., Any]", instance: "Any", rules: "Sequence[tuple[Any, Any]]"
) -> "Callable[..., Any]":
    from functools import partial

    steps = [partial(rule, instance, value) for rule, value in rules]
    # Each step returns None, so any() takes them all; partial, any and map are C and have no frames.
    if any(field._field_type.name == "_FIELD_INITVAR" for field in instance.__dataclass_fields__.values()):
        return lambda *values: any(map(partial.__call__, [partial(stock, *values), *steps]))
    return partial(any, map(partial.__call__, [partial(stock), *steps]))


def _show_signatures(cls: type, extras: "Sequence[str]") -> None:
    """`inspect.signature(cls)` shows all the parameters, `inspect.signature(cls.__init__)` those of TRL alone.

    Unsloth (all releases) writes a class from the latter and adds the same fields to it: shown there, they would be
    duplicate arguments.
    """
    import inspect

    init: Any = vars(cls).get("__init__")
    if init is not None:
        whole = inspect.signature(init)
        of_trl = [parameter for name, parameter in whole.parameters.items() if name not in extras]
        # The first look spares a fifth of a swap: 140 parameters as text.
        of_dataclasses = str(cls.__doc__).startswith(cls.__name__ + "(")
        if of_dataclasses and cls.__doc__ == _generated_doc(cls, [*whole.parameters.values()]):
            cls.__doc__ = _generated_doc(cls, of_trl)
        cls.__signature__ = _ClassSignature(init, whole)  # type: ignore[attr-defined]
        init.__signature__ = whole.replace(parameters=of_trl)


def _generated_doc(cls: type, parameters: "list[Parameter]") -> str:
    """What dataclasses makes the docstring of a class that has none: its signature, as text."""
    import inspect

    return cls.__name__ + str(inspect.Signature(parameters[1:]))


class _ClassSignature:
    """The signature of one class, and of the subclasses that construct as it does; others have their own."""

    def __init__(self, init: "FunctionType", signature: "Signature") -> None:
        self._init = init
        self._signature = signature.replace(parameters=list(signature.parameters.values())[1:])

    def __get__(self, instance: "Any", cls: type) -> "Signature":
        if instance is not None or cls.__init__ is not self._init:  # type: ignore[misc]
            raise AttributeError("__signature__")
        return self._signature


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
