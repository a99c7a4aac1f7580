"""Builds the patched class: TRL's body again, over TRL's class, with the extra fields."""

import builtins
import dataclasses
import inspect
import sys
import typing
from copy import copy
from functools import wraps

from . import extras, representation
from .post_init import PostInit
from .representation import is_generated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .fields import Field

# What Python makes with a class. All else in a class's dict is its body.
NOT_BODY = {"__dict__", "__weakref__", "__slots__", "__abstractmethods__", "_abc_impl"}
NOT_BODY |= {"__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"}
NOT_BODY |= {"__dataclass_fields__", "__dataclass_params__"}


def build(pristine: "Any", fields: "Sequence[Field]") -> type:
    """A subclass of `pristine` with the extra `fields`, to all appearances the class itself.

    Args:
        pristine: a dataclass.
        fields: those that it does not have.

    Raises:
        TypeError: it cannot be done.
    """
    if not is_generated(inspect.unwrap(pristine.__init__)):
        raise TypeError("its __init__ is not one that dataclasses wrote")
    body = {name: value for name, value in vars(pristine).items() if name not in NOT_BODY and not _is_slot(value)}
    post_init = {"__post_init__": PostInit(fields, pristine)}
    namespace = {name: value for name, value in body.items() if name != "__init__"}
    namespace |= {**representation.methods(pristine, fields), **post_init, **declarations(fields)}
    namespace["__qualname__"] = pristine.__qualname__
    patched: Any = type(pristine)(pristine.__name__, (pristine,), namespace)
    dataclasses.dataclass(repr=False, eq=False)(patched)
    patched.__dataclass_params__ = pristine.__dataclass_params__
    patched.__doc__ = pristine.__doc__  # dataclass() writes one where there is none
    patched.__hash__ = pristine.__hash__  # a class with an __eq__ of its own loses it
    _annotate(patched, pristine)
    for field in fields:
        setattr(patched, field.name, extras.Extra(field))
        setattr(patched, extras.GIVEN + field.name, extras.Given(field))
    give_way(patched, fields)
    if hasattr(pristine.__init__, "__wrapped__"):  # by a type checker: beartype.claw, jaxtyping
        patched.__init__ = _init_through(pristine.__init__, patched.__init__, fields)
    inherited = representation.inherited(pristine, fields)
    if "__post_init__" not in body:  # nor has the patched class one, then
        del patched.__post_init__
        inherited |= post_init
    _arrange(pristine, patched, body, inherited)
    return patched  # type: ignore[no-any-return]


def _arrange(pristine: type, patched: type, body: "dict[str, Any]", inherited: "dict[str, Any]") -> None:
    """Let `super(SFTConfig, self)` in a subclass find in the pristine class what it finds on stock above it.

    Args:
        pristine: the class as TRL wrote it.
        patched: the class by its name.
        body: what TRL's body has.
        inherited: methods that take the place of those that TRL's class inherits.
    """
    for name, value in body.items():
        if hasattr(type(value), "__get__"):
            passed = _PassedData if hasattr(type(value), "__set__") else _Passed
            setattr(pristine, name, passed(patched, pristine, name, value, inherited.get(name)))
    for name in inherited.keys() - body.keys():
        setattr(pristine, name, _Inherited(pristine, name, inherited[name]))


def _is_slot(value: object) -> bool:
    return inspect.ismemberdescriptor(value) or inspect.isgetsetdescriptor(value)


def declarations(fields: "Sequence[Field]") -> "dict[str, Any]":
    """The part of a class body that declares extra fields."""
    namespace: dict[str, Any] = {"__annotations__": {}}
    for field in fields:
        of_value = getattr(builtins, field.type, None) or getattr(typing, field.type)
        namespace["__annotations__"][field.name] = typing.Optional[of_value]  # noqa: UP045 (Any | None: not in 3.10)
        namespace[field.name] = extras.declare(field)
    return namespace


def take_over(inheriting: "Any", fields: "Sequence[Field]") -> None:
    """What a config of TRL's needs that inherits all the extra `fields` from a patched one, and stays as it is."""
    if "__dataclass_fields__" in vars(inheriting):
        give_way(inheriting, fields)
    # Of `__post_init__` too: the base's rules run before this one has settled its values.
    made = {**representation.methods(inheriting, fields), "__post_init__": PostInit(fields, inheriting)}
    for name in made.keys() & vars(inheriting).keys():
        setattr(inheriting, name, made[name])


def give_way(cls: "Any", fields: "Sequence[Field]") -> None:
    """Let a dataclass that has the extra fields give way to a subclass that has something else by their names."""
    cls.__dataclass_fields__ = extras.FieldsOfClass(cls.__dataclass_fields__)
    init = vars(cls).get("__init__")
    if is_generated(init):
        # `self.max_seq_length = max_seq_length` becomes `self._unsloth_hook_max_seq_length = max_seq_length`. With a
        # frame of ours around `__init__`, the lines at which TRL's warnings point would be others.
        given = {field.name: extras.GIVEN + field.name for field in fields}
        names = tuple(given.get(name, name) for name in init.__code__.co_names)
        init.__code__ = init.__code__.replace(co_names=names)


def _annotate(patched: "Any", pristine: "Any") -> None:
    own = patched.__annotations__
    if sys.version_info >= (3, 14):  # PEP 649: TRL's are not evaluated before somebody asks
        import annotationlib

        def __annotate__(format: "Any") -> "dict[str, Any]":
            as_text = format == annotationlib.Format.STRING
            ours = {name: annotationlib.type_repr(type) if as_text else type for name, type in own.items()}
            return {**annotationlib.get_annotations(pristine, format=format), **ours}

        patched.__annotate__ = __annotate__
    else:
        patched.__annotations__ = {**vars(pristine).get("__annotations__", {}), **own}


def _init_through(
    wrapped: "Callable[..., None]", generated: "Callable[..., None]", fields: "Sequence[Field]"
) -> "Callable[..., None]":
    """An `__init__` that goes through the pristine class's own, which somebody has wrapped, for what that checks."""

    @wraps(generated)
    def __init__(self: "Any", *args: "Any", **values: "Any") -> None:
        given = [field for field in fields if field.name in values]
        for field in given:
            setattr(self, field.name, values.pop(field.name))
        vars(self)[extras.GIVEN] = given  # `PostInit` takes it, when TRL's fields are there, and applies the rules
        wrapped(self, *args, **values)
        vars(self).pop(extras.GIVEN, None)

    return __init__


class _Passed:
    """A method in the pristine class. `super(SFTConfig, self)` passes it, as on stock, where it is SFTConfig's own."""

    def __init__(self, patched: type, pristine: type, name: str, value: "Any", above: "Any") -> None:
        self._patched, self._pristine, self._name, self._value, self._above = patched, pristine, name, value, above

    def __get__(self, instance: "Any", cls: type) -> "Any":
        if self._patched in cls.__mro__:
            if self._above:
                return self._above.__get__(instance, cls)
            return getattr(super(self._pristine, cls if instance is None else instance), self._name)
        return self._value.__get__(instance, cls)

    def __reduce__(self) -> "Any":  # where cloudpickle writes the class by value, it is TRL's own
        return copy, (self._value,)


class _PassedData(_Passed):
    """The same of a property."""

    def __set__(self, instance: "Any", value: "Any") -> None:
        self._value.__set__(instance, value)

    def __delete__(self, instance: "Any") -> None:
        self._value.__delete__(instance)


class _Inherited:
    """A method in the pristine class in the place of one that TRL's class inherits."""

    def __init__(self, pristine: type, name: str, value: "Any") -> None:
        self._pristine, self._name, self._value = pristine, name, value

    def __get__(self, instance: "Any", cls: type) -> "Any":
        return self._value.__get__(instance, cls)

    def __reduce__(self) -> "Any":
        return getattr, (self._pristine.__mro__[1], self._name)
