"""What a pickle says, as a tree: plain values, names (`Global`), and what would be called or made (`Built`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 60
MAX_VALUES = 200_000


@dataclass(frozen=True)
class Global:
    """A class or function that a pickle names, as written there."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


# `copyreg._reconstructor(cls, object, None)` is another way to write `cls.__new__(cls)`: pickle protocols 0 and 1 do,
# and Unsloth's own reducer for displaced classes (August 2026 and later). Any other call of it stays a call.
RECONSTRUCTOR = (Global("copyreg", "_reconstructor"), Global("copy_reg", "_reconstructor"))
OBJECT = (Global("builtins", "object"), Global("__builtin__", "object"))


@dataclass(eq=False)
class Built:
    """What an unpickler would make: by a call (REDUCE, INST, OBJ) or by ``cls.__new__`` (NEWOBJ, NEWOBJ_EX)."""

    func: Any
    args: tuple[Any, ...]
    called: bool
    kwargs: dict[str, Any] = field(default_factory=dict)
    state: Any = None
    items: list[tuple[Any, Any]] = field(default_factory=list)
    members: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Opaque:
    """Something that only the unpickler's owner could supply: a persistent id, an extension code, a buffer."""

    what: str


@dataclass
class Pickle:
    """One pickle: its root, what it names and makes (even if it drops it), and what no config does (``alarms``)."""

    root: Any = None
    built: list[Built] = field(default_factory=list)
    globals: dict[Global, Global] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)
    protocol: int = 0
    end: int = 0


def is_texts(values: Iterable[Any]) -> bool:
    """Whether all of ``values`` are texts."""
    return set(map(type, values)) <= {str}


def parts(node: Any) -> list[Any]:
    """The nodes directly below ``node``; none for a plain value or a name."""
    if isinstance(node, (list, tuple, set, frozenset)):
        return list(node)
    if isinstance(node, dict):
        return [*node.keys(), *node.values()]
    if isinstance(node, Built):
        pairs = [part for item in node.items for part in item]
        return [node.func, node.args, node.state, *node.kwargs.values(), *node.members, *pairs]
    return []


_PLAIN = frozenset({str, int, float, bool, type(None), bytes, bytearray, Global, Opaque})


def check_shape(root: Any) -> None:
    """Refuse a tree that would explode when it is shown or copied.

    Raises:
        ValueError: a value contains itself, is nested deeper than ``MAX_DEPTH``, or shares its parts so often that
            written out it has more than ``MAX_VALUES`` values ("billion laughs").
    """
    sizes: dict[int, int] = {}

    def size(node: Any, depth: int) -> int:
        if (known := sizes.get(id(node))) is not None:
            if known == 0:
                raise ValueError("a value that contains itself")
            return known
        if depth > MAX_DEPTH:
            raise ValueError(f"values nested more than {MAX_DEPTH} deep")
        sizes[id(node)] = 0
        below = parts(node)
        total = 1 + len(below) + sum(size(part, depth + 1) for part in below if type(part) not in _PLAIN)
        sizes[id(node)] = total
        if total > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES:,} values when shared ones are written out")
        return total

    size(root, 0)
