"""TRL's `__post_init__` with the extra fields' rules after it, and no frame of ours below it."""

from functools import partial

from . import extras

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FunctionType
    from typing import Any

    from .fields import Field


class PostInit:
    """A descriptor in the place of `__post_init__`.

    TRL warns with `stacklevel=3`: from `__post_init__` past the generated `__init__` to the caller's line. A method
    that calls TRL's would be counted; a descriptor that hands it out is not.

    Args:
        fields: the extra fields of the class.
        cls: the class as TRL wrote it.
    """

    def __init__(self, fields: "Sequence[Field]", cls: "Any") -> None:
        self._cls = cls
        self._own: FunctionType | None = vars(cls).get("__post_init__")
        self._fields, self._names = fields, {extras.GIVEN, *(field.name for field in fields)}
        self._rules = [
            (field.name, field.after)
            for field in fields
            if field.after and field.after_needs in cls.__dataclass_fields__
        ]

    def __get__(self, instance: "Any", cls: "Any") -> "Callable[..., Any]":
        stock: Callable[..., Any] = (
            self._own.__get__(instance, cls)
            if self._own
            else getattr(super(self._cls, cls if instance is None else instance), "__post_init__", bool)
        )
        if instance is None:
            return stock
        if not vars(instance).keys() & self._names:  # no extra was given
            return stock
        for field in vars(instance).pop(extras.GIVEN, ()):
            if field.given and (value := getattr(instance, field.name)) is not None:
                field.given(instance, value)
        for field in self._fields:
            if field.name in vars(instance):
                _forget_default(field, instance)
        given = extras.given(instance) if self._rules else ()
        steps = [partial(rule, instance, getattr(instance, name)) for name, rule in self._rules if name in given]
        return _followed_by(stock, instance, steps) if steps else stock

    # In the class's dict `inspect` and `mock` find a function of these attributes, which can be called.
    __class__ = property(lambda self: type(self._own))

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._own, name)

    def __call__(self, instance: "Any", *values: "Any") -> "Any":
        return self.__get__(instance, type(instance))(*values)


def _forget_default(field: "Field", instance: "Any") -> None:
    # The `__init__` of somebody's dataclass sets it past `extras.Extra` where a subclass has a class variable by that
    # name; that of a pydantic dataclass does always.
    declared = type(instance).__dataclass_fields__.get(field.name)
    if extras.is_default(field, vars(instance)[field.name]) and (declared is None or extras.is_of_the_hook(declared)):
        del vars(instance)[field.name]


def _followed_by(stock: "Callable[..., Any]", instance: "Any", steps: "Sequence[Any]") -> "Callable[..., Any]":
    # Each step returns None, so any() takes them all; partial, any and map are C and have no frames.
    if any(field._field_type.name == "_FIELD_INITVAR" for field in instance.__dataclass_fields__.values()):
        return lambda *values: any(map(partial.__call__, [partial(stock, *values), *steps]))
    return partial(any, map(partial.__call__, [partial(stock), *steps]))
