"""What a config says of itself: TRL's own methods, less the extras that nobody has set."""

from functools import wraps
from reprlib import recursive_repr

from . import extras

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .fields import Field


def methods(pristine: "Any", fields: "Sequence[Field]") -> "dict[str, Any]":
    """Those methods of TRL's body that go through all fields, each by its name.

    Args:
        pristine: the class as TRL wrote it.
        fields: the extra fields.
    """
    own = vars(pristine)
    made: dict[str, Any] = {}
    if "__str__" in own:
        made["__str__"] = _str(pristine, fields, "__str__", own["__str__"])
    if "__repr__" in own:
        made["__repr__"] = _repr(pristine, fields)
    if "to_dict" in own:
        made["to_dict"] = _to_dict(pristine, own["to_dict"])
    if is_generated(own.get("__eq__")):
        made["__eq__"] = _eq(pristine, fields)
    return made


def inherited(pristine: "Any", fields: "Sequence[Field]") -> "dict[str, Any]":
    """The same of what TRL's class inherits, where `super(SFTConfig, self)` finds them."""
    above: Any = pristine.__mro__[1]
    made: dict[str, Any] = {name: _str(above, fields, name, _above(pristine, name)) for name in ("__str__", "__repr__")}
    if hasattr(above, "to_dict"):
        made["to_dict"] = _to_dict(above, _above(pristine, "to_dict"))
    return made


def _above(pristine: type, name: str) -> "Callable[[Any], Any]":
    return lambda self: getattr(super(pristine, self), name)()


def _to_dict(cls: "Any", stock: "Callable[[Any], Any]") -> "Callable[[Any], Any]":
    @wraps(cls.to_dict)
    def to_dict(self: "Any") -> "Any":
        shown = stock(self)
        for name in extras.unset(self):
            shown.pop(name, None)
        for name in extras.given(self):  # a class that cloudpickle has brought from elsewhere does not declare them
            shown.setdefault(name, getattr(self, name))
        return shown

    return to_dict


def _str(cls: "Any", fields: "Sequence[Field]", name: str, stock: "Callable[[Any], str]") -> "Callable[[Any], str]":
    @wraps(getattr(cls, name))
    def __str__(self: "Any") -> str:
        text: str = stock(self)
        hidden = extras.unset(self)
        for field in fields:
            if field.name in hidden:  # as `TrainingArguments.__str__` writes them (transformers, all releases)
                text = text.replace(f"\n{field.name}={field.default},\n", "\n", 1)
        return text

    return __str__


def _repr(pristine: "Any", fields: "Sequence[Field]") -> "Callable[[Any], str]":
    stock: Any = vars(pristine).get("__repr__")
    if not is_generated(getattr(stock, "__wrapped__", None)):
        return _str(pristine, fields, "__repr__", stock)

    @recursive_repr()
    @wraps(stock)
    def __repr__(self: "Any") -> str:
        text: str = stock(self)
        more = [f"{name}={getattr(self, name)!r}" for name in extras.given(self)]
        return ", ".join([text[:-1], *more]) + text[-1:]

    __repr__.__wrapped__ = stock.__wrapped__  # type: ignore[attr-defined]  # by this pprint knows a dataclass
    return __repr__


def _eq(pristine: "Any", fields: "Sequence[Field]") -> "Callable[[Any, object], Any]":
    stock = pristine.__eq__

    @wraps(pristine.__eq__)
    def __eq__(self: "Any", other: object) -> "Any":
        equal = stock(self, other)
        if equal is not True:
            return equal
        mine, theirs = vars(self), vars(other)  # what nobody has set is not there
        return [mine.get(field.name) for field in fields] == [theirs.get(field.name) for field in fields]

    return __eq__


def is_generated(function: "Any") -> bool:
    """Did dataclasses write this function?"""
    file = _file_of(function)
    while file.startswith("<@beartype("):  # beartype.claw, if it is on, has wrapped what dataclasses wrote
        function = function.__wrapped__
        file = _file_of(function)
    return file == "<string>"  # dataclasses' exec, in every Python from 3.10


def _file_of(function: "Any") -> str:
    file: str = getattr(getattr(function, "__code__", None), "co_filename", "")
    return file
