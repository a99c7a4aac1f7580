"""Lets `HfArgumentParser`, and TRL's parsers, parse as on stock wherever an option of somebody else's is meant."""

import argparse
import sys
from functools import wraps

from . import extras, targets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_taught: "set[type]" = set()


def teach_loaded() -> None:
    """Teach the parsers that have been imported."""
    for name in targets.PARSERS:
        module = sys.modules.get(name)
        if module is not None:
            teach(module)


def teach(module: "ModuleType") -> None:
    """Let the parser of a module know an extra's option from all others, which win.

    Args:
        module: one of `targets.PARSERS`. If it has no parser, or not yet, nothing is done.
    """
    cls: Any = vars(module).get("HfArgumentParser")
    if not isinstance(cls, type) or cls in _taught or not hasattr(cls, "parse_dict"):
        return
    _taught.add(cls)
    for name, made in METHODS.items():
        setattr(cls, name, made(getattr(cls, name)))


class _Group(argparse._ArgumentGroup):
    """A group of a parser's options. One that is added takes its names from an extra's, if that has them."""

    def _add_action(self, action: "Any") -> "Any":
        found: set[Any] = {self._option_string_actions.get(option) for option in action.option_strings}
        if action.dest in extras.NAMES:
            found.update(other for other in self._actions if other.dest == action.dest)
        for other in filter(_is_extra, found):
            for option in other.option_strings:
                self._option_string_actions.pop(option, None)
            other.container._remove_action(other)
        return super()._add_action(action)


class _Narrowed:
    """A config class less the extras whose names are somebody else's in one parser."""

    def __init__(self, cls: "Any", names: "list[str]") -> None:
        self._cls = cls
        fields = cls.__dataclass_fields__
        self.__dataclass_fields__ = {name: field for name, field in fields.items() if name not in names}

    def __call__(self, **values: "Any") -> "Any":
        return self._cls(**values)


def _is_extra(action: "Any") -> bool:
    return hasattr(action, "_unsloth_hook")


def _add_argument_group(stock: "Any") -> "Any":
    @wraps(stock)
    def add_argument_group(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        group = stock(self, *args, **kwargs)
        if type(group) is argparse._ArgumentGroup:
            group.__class__ = _Group
        return group

    return add_argument_group


def _parse_dataclass_field(stock: "Any") -> "Any":
    @wraps(stock)
    def parse_dataclass_field(parser: "Any", field: "Any") -> None:
        if not extras.is_of_the_hook(field):
            return stock(parser, field)  # type: ignore[no-any-return]
        options = {f"--{field.name}", f"--{field.name.replace('_', '-')}"}
        if any(action.dest == field.name for action in parser._actions) or options & set(parser._option_string_actions):
            return None
        before = len(parser._actions)
        stock(parser, field)
        for action in parser._actions[before:]:
            action._unsloth_hook = True
        return None

    return staticmethod(parse_dataclass_field)


def _get_option_tuples(stock: "Any") -> "Any":
    @wraps(stock)
    def get_option_tuples(self: "Any", option_string: str) -> "list[Any]":
        found: list[Any] = stock(self, option_string)
        return [entry for entry in found if not _is_extra(entry[0])] or found  # an abbreviation means TRL's own

    return get_option_tuples


def _with_narrowed_types(stock: "Any") -> "Callable[..., Any]":
    @wraps(stock)
    def parse(self: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        types = self.dataclass_types
        narrowed = [_narrowed(self, cls) for cls in types]
        if narrowed == list(types):
            return stock(self, *args, **kwargs)
        self.dataclass_types = narrowed
        try:
            return stock(self, *args, **kwargs)
        finally:
            self.dataclass_types = types

    return parse


def _narrowed(parser: "Any", cls: "Any") -> "Any":
    if type(parser._optionals) is not _Group:  # made before its class was taught
        return cls
    kept = {action.dest for action in parser._actions if _is_extra(action)}
    fields = getattr(cls, "__dataclass_fields__", {})
    lost = [name for name, field in fields.items() if extras.is_of_the_hook(field) and name not in kept]
    return _Narrowed(cls, lost) if lost else cls


METHODS: "dict[str, Callable[[Any], Any]]" = {
    "add_argument_group": _add_argument_group,
    "_parse_dataclass_field": _parse_dataclass_field,
    "_get_option_tuples": _get_option_tuples,
    "parse_args_into_dataclasses": _with_narrowed_types,
    "parse_dict": _with_narrowed_types,
}
