"""Reads a pickle into a tree without running it, and writes such a tree back as a pickle.

Opcodes are walked with ``pickletools.genops`` alone. Nothing that the stream names is imported, nothing is called: a
global becomes a `Global`, whatever would be called or made becomes a `Built`.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

# A real training_args.bin has about 1,100 opcodes; these bounds keep a hostile one under a second and a few MiB.
MAX_OPCODES = 100_000
MAX_INT_BITS = 4_096
# Numbers can be chosen to collide in a dict (their hash is no secret), texts cannot.
MAX_ODD_KEYS = 2_000
MAX_DEPTH = 60
MAX_VALUES = 200_000


class PickleError(ValueError):
    """A stream that cannot be read. ``partial`` is what it had named up to there: an unpickler would have run that."""

    def __init__(self, message: str, partial: Pickle) -> None:
        super().__init__(message)
        self.partial = partial


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


def read(data: bytes, start: int = 0) -> Pickle:
    """Read one pickle from ``data`` at byte ``start``.

    Args:
        data: the bytes of the pickle, and perhaps of others after it.
        start: where it begins, in bytes.

    Returns:
        The `Pickle`; ``end`` is the offset of the first byte after it.

    Raises:
        PickleError: the stream is truncated, malformed, or larger than any config (see ``MAX_OPCODES``).
    """
    walker = _Walker(data)
    stream = io.BytesIO(data)
    stream.seek(start)
    try:
        walker.walk(stream)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise PickleError(f"malformed pickle ({type(error).__name__}: {error})", walker.out) from None
    except UnicodeDecodeError as error:
        if error.encoding == "ascii":
            walker.alarm("a name that is not ASCII")  # pickletools does not read those; the unpickler would
        raise PickleError(f"malformed pickle ({error})", walker.out) from None
    except (ValueError, OverflowError, MemoryError) as error:  # genops' own complaints are ValueErrors
        raise PickleError(f"malformed or truncated pickle ({error})", walker.out) from None
    walker.out.end = stream.tell()
    return walker.out


_LITERALS = frozenset(
    {"BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"}
    | {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
    | {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"}
)
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


class _Walker:
    """The pickle machine with every action replaced by a note of it (opcodes: CPython's ``pickletools``)."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.out = Pickle()
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.odd_keys = 0
        self.stopped = False

    def walk(self, stream: io.BytesIO) -> None:
        memo, stack, push = self.memo, self.stack, self.stack.append
        for opcode, arg, position in islice(pickletools.genops(stream), MAX_OPCODES):
            name = opcode.name
            # Nine of ten opcodes are of these three kinds; the rest go by the table.
            if name == "BINPUT":
                memo[arg] = stack[-1]  # type: ignore[index]
            elif name in _LITERALS:
                push(arg)
            elif name in _CONSTANTS:
                push(_CONSTANTS[name])
            else:
                _HANDLERS[name](self, arg, position or 0)
                stack = self.stack
                push = stack.append
        if not self.stopped:
            raise ValueError(f"more than {MAX_OPCODES:,} opcodes")

    def pop_mark(self) -> list[Any]:
        values = self.stack
        self.stack = self.marks.pop()
        return values

    def integer(self, value: int) -> None:
        if value.bit_length() > MAX_INT_BITS:
            raise ValueError(f"an integer of {value.bit_length():,} bits")
        self.stack.append(value)

    def name(self, module: Any, name: Any) -> None:
        if not (isinstance(module, str) and isinstance(name, str)):
            self.alarm("a global whose name is computed while unpickling")
            module, name = _text(module), _text(name)
        found = Global(module, name)
        self.stack.append(self.out.globals.setdefault(found, found))

    def alarm(self, what: str) -> None:
        if what not in self.out.alarms and len(self.out.alarms) < 100:
            self.out.alarms.append(what)

    def lines(self, position: int) -> tuple[str, str]:
        # Not genops' argument: it joins the two lines with a space and undoes escapes, which the unpickler does not.
        middle = self.data.index(b"\n", position)
        end = self.data.index(b"\n", middle + 1)
        return self.data[position + 1 : middle].decode(), self.data[middle + 1 : end].decode()

    def opaque(self, what: str) -> None:
        self.alarm(what)
        self.stack.append(Opaque(what))

    def build(self, func: Any, args: Any, called: bool, kwargs: Any = None) -> None:
        if (
            func in RECONSTRUCTOR
            and called
            and isinstance(args, tuple)
            and args[1:] in [(base, None) for base in OBJECT]
        ):
            func, args, called = args[0], (), False
        if not isinstance(func, Global):
            self.alarm(f"a call of something that is no global: {_text(func)}")
        if not isinstance(args, tuple):
            self.alarm(f"a call with arguments that are no tuple: {_text(args)}")
            args = (args,)
        if not isinstance(kwargs or {}, dict):
            raise ValueError("NEWOBJ_EX without a dict of arguments")
        made = Built(func, args, called, kwargs or {})
        self.out.built.append(made)
        self.stack.append(made)

    def keys(self, keys: list[Any]) -> list[Any]:
        if not is_texts(keys):
            self.odd_keys += sum(type(key) is not str for key in keys)
            if self.odd_keys > MAX_ODD_KEYS:
                raise ValueError(f"more than {MAX_ODD_KEYS:,} keys that are no text")
        return keys

    def set_state(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if not isinstance(target, Built):
            self.alarm(f"BUILD on something that is no instance: {_text(target)}")
        elif target.state is not None:
            self.alarm(f"a second BUILD on one instance of {_text(target.func)}")
        else:
            target.state = state

    def set_items(self, pairs: list[Any]) -> None:
        target = self.stack[-1]
        items = zip(self.keys(pairs[::2]), pairs[1::2], strict=True)
        if isinstance(target, dict):
            target.update(items)
        elif isinstance(target, Built):
            target.items.extend(items)
        else:
            self.alarm(f"items set on something that is no dict: {_text(target)}")

    def extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(values)
        elif isinstance(target, Built):
            target.members.extend(values)
        else:
            self.alarm(f"values appended to something that is no list: {_text(target)}")

    def add(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, set):
            target.update(self.keys(values))
        elif isinstance(target, Built):
            target.members.extend(values)
        else:
            self.alarm(f"values added to something that is no set: {_text(target)}")


def is_texts(values: Iterable[Any]) -> bool:
    """Whether all of ``values`` are texts."""
    return set(map(type, values)) <= {str}


def _text(value: Any) -> str:
    if isinstance(value, Built):
        return f"the result of {_text(value.func)}" if not isinstance(value.func, Built) else "the result of a result"
    if isinstance(value, (Global, Opaque, str)):
        return str(value)[:200]
    return f"a {type(value).__name__}"


def _proto(w: _Walker, arg: Any, position: int) -> None:
    if arg > pickle.HIGHEST_PROTOCOL:
        raise ValueError(f"pickle protocol {arg}, which Python has not got")
    w.out.protocol = arg


def _stop(w: _Walker, arg: Any, position: int) -> None:
    w.out.root = w.stack.pop()
    w.stopped = True


def _mark(w: _Walker, arg: Any, position: int) -> None:
    w.marks.append(w.stack)
    w.stack = []


def _pop(w: _Walker, arg: Any, position: int) -> None:
    if w.stack:
        w.stack.pop()
    else:
        w.pop_mark()


def _put(w: _Walker, arg: Any, position: int) -> None:
    w.memo[int(arg)] = w.stack[-1]


def _get(w: _Walker, arg: Any, position: int) -> None:
    w.stack.append(w.memo[int(arg)])


def _memoize(w: _Walker, arg: Any, position: int) -> None:
    w.memo[len(w.memo)] = w.stack[-1]


def _stack_global(w: _Walker, arg: Any, position: int) -> None:
    name, module = w.stack.pop(), w.stack.pop()
    w.name(module, name)


def _reduce(w: _Walker, arg: Any, position: int) -> None:
    args, func = w.stack.pop(), w.stack.pop()
    w.build(func, args, called=True)


def _newobj(w: _Walker, arg: Any, position: int) -> None:
    args, func = w.stack.pop(), w.stack.pop()
    w.build(func, args, called=False)


def _newobj_ex(w: _Walker, arg: Any, position: int) -> None:
    kwargs, args, func = w.stack.pop(), w.stack.pop(), w.stack.pop()
    w.build(func, args, called=False, kwargs=kwargs)


def _inst(w: _Walker, arg: Any, position: int) -> None:
    args = tuple(w.pop_mark())
    w.name(*w.lines(position))
    w.build(w.stack.pop(), args, called=True)


def _obj(w: _Walker, arg: Any, position: int) -> None:
    func, *args = w.pop_mark()
    w.build(func, tuple(args), called=True)


def _binpersid(w: _Walker) -> None:
    w.stack.pop()
    w.opaque("a persistent id")


def _dict(w: _Walker, arg: Any, position: int) -> None:
    pairs = w.pop_mark()
    w.stack.append({})
    w.set_items(pairs)


def _tuple(count: int) -> Callable[[_Walker, Any, int], None]:
    def make(w: _Walker, arg: Any, position: int) -> None:
        if len(w.stack) < count:
            raise IndexError("stack underflow")
        w.stack[-count:] = [tuple(w.stack[-count:])]

    return make


def _pair(w: _Walker) -> list[Any]:
    value, key = w.stack.pop(), w.stack.pop()
    return [key, value]


_HANDLERS: dict[str, Callable[[_Walker, Any, int], None]] = {
    "PROTO": _proto,
    "FRAME": lambda w, arg, at: None,
    "INT": lambda w, arg, at: w.integer(arg),
    "LONG": lambda w, arg, at: w.integer(arg),
    "LONG1": lambda w, arg, at: w.integer(arg),
    "LONG4": lambda w, arg, at: w.integer(arg),
    "STOP": _stop,
    "MARK": _mark,
    "POP": _pop,
    "POP_MARK": lambda w, arg, at: (w.pop_mark(), None)[1],
    "DUP": lambda w, arg, at: w.stack.append(w.stack[-1]),
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "GET": _get,
    "BINGET": _get,
    "LONG_BINGET": _get,
    "MEMOIZE": _memoize,
    "GLOBAL": lambda w, arg, at: w.name(*w.lines(at)),
    "STACK_GLOBAL": _stack_global,
    "INST": _inst,
    "OBJ": _obj,
    "REDUCE": _reduce,
    "NEWOBJ": _newobj,
    "NEWOBJ_EX": _newobj_ex,
    "BUILD": lambda w, arg, at: w.set_state(),
    "EXT1": lambda w, arg, at: w.opaque(f"extension code {arg}"),
    "EXT2": lambda w, arg, at: w.opaque(f"extension code {arg}"),
    "EXT4": lambda w, arg, at: w.opaque(f"extension code {arg}"),
    "PERSID": lambda w, arg, at: w.opaque("a persistent id"),
    "BINPERSID": lambda w, arg, at: _binpersid(w),
    "NEXT_BUFFER": lambda w, arg, at: w.opaque("an out-of-band buffer"),
    "READONLY_BUFFER": lambda w, arg, at: None,
    "EMPTY_LIST": lambda w, arg, at: w.stack.append([]),
    "EMPTY_DICT": lambda w, arg, at: w.stack.append({}),
    "EMPTY_SET": lambda w, arg, at: w.stack.append(set()),
    "LIST": lambda w, arg, at: _append(w, w.pop_mark()),
    "TUPLE": lambda w, arg, at: _append(w, tuple(w.pop_mark())),
    "FROZENSET": lambda w, arg, at: _append(w, frozenset(w.keys(w.pop_mark()))),
    "DICT": _dict,
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "APPEND": lambda w, arg, at: w.extend([w.stack.pop()]),
    "APPENDS": lambda w, arg, at: w.extend(w.pop_mark()),
    "SETITEM": lambda w, arg, at: w.set_items(_pair(w)),
    "SETITEMS": lambda w, arg, at: w.set_items(w.pop_mark()),
    "ADDITEMS": lambda w, arg, at: w.add(w.pop_mark()),
}


def _append(w: _Walker, value: Any) -> None:
    # After the mark was popped: w.stack is another list by then.
    w.stack.append(value)


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


class _Writer(pickle._Pickler):
    """The standard library's pickler, taught the two nodes that stand for a name and for an instance."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_name(self, node: Global) -> None:
        self.write(pickle.GLOBAL + f"{node.module}\n{node.name}\n".encode())  # type: ignore[attr-defined]
        self.memoize(node)  # type: ignore[attr-defined]

    def save_built(self, node: Built) -> None:
        self.save(node.func)  # type: ignore[attr-defined]
        self.save(node.args)  # type: ignore[attr-defined]
        self.write(pickle.REDUCE if node.called else pickle.NEWOBJ)  # type: ignore[attr-defined]
        self.memoize(node)  # type: ignore[attr-defined]
        for opening, values, closing in (
            (pickle.MARK, node.members, pickle.APPENDS),
            (pickle.MARK, [part for item in node.items for part in item], pickle.SETITEMS),
            (b"", [] if node.state is None else [node.state], pickle.BUILD),
        ):
            if values:
                self.write(opening)  # type: ignore[attr-defined]
                for value in values:
                    self.save(value)  # type: ignore[attr-defined]
                self.write(closing)  # type: ignore[attr-defined]

    dispatch[Global] = save_name  # type: ignore[assignment]
    dispatch[Built] = save_built  # type: ignore[assignment]


def write(root: Any, protocol: int = 2) -> bytes:
    """Write a tree as a pickle.

    Args:
        root: plain values, `Global` and `Built` nodes (without ``kwargs``).
        protocol: pickle protocol, 2 or more (2 is what ``torch.save`` writes).

    Returns:
        The pickle, naming exactly the globals of the tree (protocol 2 also names ``set`` and ``_codecs.encode`` for
        sets and bytes).
    """
    out = io.BytesIO()
    _Writer(out, protocol).dump(root)
    return out.getvalue()
