"""An extra field on a config: where its value is, and whose it is in a class that derives from the config."""

import dataclasses
import sys
from operator import attrgetter

from .fields import FIELDS, Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

GIVEN = "_unsloth_hook_"  # and the field's name: where the `__init__` that the hook writes puts what it was given
OURS, NOWHERE = object(), object()

_PROCESS: "Any" = getattr(getattr(dataclasses, "_process_class", None), "__code__", None)
_table = {field.name: field for field in FIELDS}
NAMES = _table.keys()


def is_of_the_hook(declared: "Any") -> bool:
    """Is this dataclass field the hook's? Its help tells, also in a copy; any other mark would end up in argparse."""
    field = _table.get(declared.name)
    return field is not None and declared.metadata.get("help") == field.help


def whose(cls: type, name: str) -> "Any":
    """What stock Python would find by the name of an extra on `cls`, a subclass or mixin of which may have its own.

    Returns:
        OURS where nobody but the hook has something by that name. Else the class attribute, or NOWHERE for a field
        that is declared without one.
    """
    own = vars(cls)
    if type(own.get(name)) is Extra:  # the patched class itself
        return OURS
    if "__dataclass_fields__" not in own and name not in own and name in _own_annotations(cls):
        return NOWHERE  # to be made a dataclass; its field has no default
    owner = OURS
    for base in cls.__mro__:
        here = vars(base)
        if isinstance(value := here.get(name, NOWHERE), Extra):
            continue
        if value is not NOWHERE:
            return value
        declared = here.get("__dataclass_fields__", {}).get(name)
        if declared is not None and not is_of_the_hook(declared):
            owner = NOWHERE
    return owner


def _own_annotations(cls: type) -> "Mapping[str, Any]":
    if sys.version_info >= (3, 14):  # PEP 649: they are made when asked for, and may name what only a type checker has
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    return vars(cls).get("__annotations__", {})  # type: ignore[no-any-return]


def given(config: "Any") -> "list[str]":
    """Names of the hook's fields that somebody has set on `config`."""
    values = vars(config)
    return [
        name
        for name, field in _table.items()
        if name in values and not is_default(field, values[name]) and whose(type(config), name) is OURS
    ]


def unset(config: "Any") -> "list[str]":
    """Names of the hook's fields that `config` has among its fields, and that nobody has set."""
    declared, names = type(config).__dataclass_fields__, given(config)
    return [name for name in _table if name not in names and name in declared and is_of_the_hook(declared[name])]


def is_default(field: Field, value: "Any") -> bool:
    """Is this the value of an extra that nobody has set?"""
    return value is field.default or (type(value) is type(field.default) and bool(value == field.default))


class Extra:
    """The class attribute of an extra: it holds the default, so that an instance need not until one is set.

    A data descriptor, since every `__init__` that dataclasses write sets all the fields, given or not.
    """

    def __init__(self, field: Field) -> None:
        self.field = field

    def __get__(self, instance: "Any", cls: type) -> "Any":
        name, found = self.field.name, whose(cls, self.field.name)
        if instance is not None and name in vars(instance) and not hasattr(type(found), "__set__"):
            return vars(instance)[name]
        if found is OURS:
            return self.field.default
        if found is NOWHERE:
            raise AttributeError(
                f"type object {cls.__name__!r} has no attribute {name!r}"
                if instance is None
                else f"{cls.__name__!r} object has no attribute {name!r}"
            )
        return found.__get__(instance, cls) if hasattr(type(found), "__get__") else found

    def __set__(self, instance: "Any", value: "Any") -> None:
        found = whose(type(instance), self.field.name)
        if found is OURS and is_default(self.field, value):
            vars(instance).pop(self.field.name, None)
            return
        if hasattr(type(found), "__set__"):
            found.__set__(instance, value)
        else:
            vars(instance)[self.field.name] = value
        code = sys._getframe(1).f_code
        in_init = code.co_name == "__init__" and code.co_filename == "<string>"  # that dataclasses wrote for a subclass
        if in_init and found is OURS and self.field.given and value is not None:
            self.field.given(instance, value)

    def __delete__(self, instance: "Any") -> None:
        found = whose(type(instance), self.field.name)
        if hasattr(type(found), "__delete__"):
            found.__delete__(instance)
            return
        if self.field.name not in vars(instance):
            raise AttributeError(self.field.name)
        del vars(instance)[self.field.name]


class Declaration(dataclasses.Field):  # type: ignore[type-arg]  # generic to type checkers only
    """The dataclass field of an extra.

    cloudpickle writes a subclass of a config that was made in `__main__` by value, and with it the fields. Where it is
    read nothing may know the default. So what is written is no field, as far as dataclasses go, but a ClassVar.
    """

    __slots__ = ()
    __class__ = dataclasses.Field  # type: ignore[assignment]  # pickle compares it with the class that it writes

    def __reduce_ex__(self, protocol: "Any") -> "Any":
        written: Any = dataclasses.field(default=self.default, metadata=self.metadata)
        written.name, written.type = self.name, self.type
        written._field_type = dataclasses._FIELD_CLASSVAR  # type: ignore[attr-defined]
        return written.__reduce_ex__(protocol)

    def __copy__(self) -> "Declaration":
        made: Any = declare(_table[self.name])
        made.name, made.type, made._field_type = self.name, self.type, self._field_type  # type: ignore[attr-defined]
        return made  # type: ignore[no-any-return]


def declare(field: Field) -> Declaration:
    """A dataclass field for an extra.

    Keyword only, so that what inherits from the class keeps TRL's positions. No part of what dataclasses write for a
    subclass: a repr would show it unset, and an `__eq__` that cloudpickle writes by value would ask for it where it is
    unknown. The hook's own have it (`representation`).
    """
    metadata = {"help": field.help}
    made: Any = dataclasses.field(default=field.default, kw_only=True, repr=False, compare=False, metadata=metadata)
    made.__class__ = Declaration
    return made  # type: ignore[no-any-return]


class Given:
    """Takes what the hook's `__init__` was given for an extra.

    In a subclass that has something of its own by that name, be it a property, this is no parameter.
    """

    def __init__(self, field: Field) -> None:
        self._field = field

    def __get__(self, instance: "Any", cls: type) -> "Any":
        return self if instance is None else attrgetter(self._field.name)(instance)

    def __set__(self, instance: "Any", value: "Any") -> None:
        if value is self._field.default or is_default(self._field, value):
            return
        if whose(type(instance), self._field.name) is not OURS:
            init = type(instance).__init__.__qualname__
            raise TypeError(f"{init}() got an unexpected keyword argument {self._field.name!r}")
        setattr(instance, self._field.name, value)
        if self._field.given and value is not None:
            self._field.given(instance, value)


class FieldsOfClass(dict[str, "dataclasses.Field[Any]"]):
    """A `__dataclass_fields__` in which a subclass does not find the extras whose names it has for something else.

    `dataclass` takes a base's fields before the class's own, in their order: an extra among them would decide where a
    field of that name stands, and what becomes of a property or a class variable.
    """

    def __get__(self, instance: "Any", cls: type) -> "dict[str, dataclasses.Field[Any]]":
        asking = sys._getframe(1)
        if asking.f_code is not _PROCESS:
            return self if vars(cls).get("__dataclass_fields__") is self else self._left_to(cls)
        cls = asking.f_locals["cls"]
        # With slots, each field of a base is a slot of the class, and what is in a slot is in its pickles.
        fields = self._left_to(cls, slots=asking.f_locals["slots"])
        if len(fields) < len(self):
            _prepare_bases(cls)
        return fields

    def _left_to(self, cls: type, slots: bool = False) -> "dict[str, dataclasses.Field[Any]]":
        return {
            name: field
            for name, field in self.items()
            if not is_of_the_hook(field) or (whose(cls, name) is OURS and not slots)
        }

    def __reduce__(self) -> "Any":  # cloudpickle writes somebody's class by value: nothing of ours is in it
        return dict, (dict(self),)


def _prepare_bases(cls: type) -> None:
    # `dataclass` has just asked the patched class, and goes on to what derives from it and has a dict of its own.
    for base in cls.__mro__[1:]:
        fields = vars(base).get("__dataclass_fields__")
        if type(fields) is dict and any(is_of_the_hook(field) for field in fields.values()):
            base.__dataclass_fields__ = FieldsOfClass(fields)  # type: ignore[attr-defined]
