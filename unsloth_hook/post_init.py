"""TRL's `__post_init__` with the extra fields' rules around it, and no frame of ours below it."""

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
        pristine: the class as TRL wrote it.
        own: its own `__post_init__`; None if it inherits one or has none.
    """

    def __init__(self, fields: "Sequence[Field]", pristine: "Any", own: "FunctionType | None") -> None:
        self._fields, self._pristine, self._own = fields, pristine, own

    def _stock(self, instance: "Any", cls: "Any") -> "Callable[..., Any]":
        if self._own:
            return self._own.__get__(instance, cls)  # type: ignore[no-any-return]
        return getattr(super(self._pristine, instance or cls), "__post_init__", bool)

    def __get__(self, instance: "Any", cls: "Any") -> "Callable[..., Any]":
        if instance is None:
            from functools import wraps

            return wraps(self._stock(None, cls))(lambda instance: self.__get__(instance, cls)())
        given = [field for field in self._fields if field.name in vars(instance)]
        due = [(field, self._value(field, instance)) for field in given]
        for field, value in due:
            if field.before and value is not None:
                field.before(instance, value)
        stock = self._stock(instance, cls)
        steps = [(field.after, value) for field, value in due if field.after and value is not None]
        return _followed_by(stock, instance, steps) if steps else stock

    def _value(self, field: "Field", instance: "Any") -> "Any":
        """What an extra was set to; None if it is not the hook's, or was set to its default.

        The `__init__` of somebody's dataclass sets it past `extras.Extra` where a subclass has a class variable by that
        name; that of a pydantic dataclass does always.
        """
        cls, value = type(instance), vars(instance)[field.name]
        declared = cls.__dataclass_fields__.get(field.name)
        if declared is not None and not extras.is_of_the_hook(declared):
            return None
        if extras.is_default(field, value):
            del vars(instance)[field.name]
            return None
        return value if extras.whose(cls, field.name) is extras.OURS else None


def _followed_by(
    stock: "Callable[..., Any]", instance: "Any", rules: "Sequence[tuple[Any, Any]]"
) -> "Callable[..., Any]":
    from functools import partial

    steps = [partial(rule, instance, value) for rule, value in rules]
    # Each step returns None, so any() takes them all; partial, any and map are C and have no frames.
    if any(field._field_type.name == "_FIELD_INITVAR" for field in instance.__dataclass_fields__.values()):
        return lambda *values: any(map(partial.__call__, [partial(stock, *values), *steps]))
    return partial(any, map(partial.__call__, [partial(stock), *steps]))
