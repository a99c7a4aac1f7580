"""Reads a pickle into a tree (`pickle_tree`) without running it.

Opcodes are walked with ``pickletools.genops`` alone. Nothing that the stream names is imported, nothing is called: a
global becomes a `Global`, whatever would be called or made becomes a `Built`.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Callable
from itertools import islice
from typing import Any

from .errors import PickleError
from .pickle_tree import OBJECT, RECONSTRUCTOR, Built, Global, Opaque, Pickle, is_texts

# A real training_args.bin has about 1,100 opcodes; these bounds keep a hostile one under a second and a few MiB.
MAX_OPCODES = 100_000
MAX_INT_BITS = 4_096
# Numbers can be chosen to collide in a dict (their hash is no secret), texts cannot.
MAX_ODD_KEYS = 2_000
MAX_ALARMS = 100


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
        self.at = 0  # where the opcode in hand begins
        self.odd_keys = 0
        self.stopped = False

    def walk(self, stream: io.BytesIO) -> None:
        for opcode, arg, position in islice(pickletools.genops(stream), MAX_OPCODES):
            name = opcode.name
            # Nine of ten opcodes are of these three kinds; the rest go by the table.
            if name == "BINPUT":
                self.memo[arg] = self.stack[-1]  # type: ignore[index]
            elif name in _LITERALS:
                self.stack.append(arg)
            elif name in _CONSTANTS:
                self.stack.append(_CONSTANTS[name])
            else:
                self.at = position or 0
                _HANDLERS[name](self, arg)
        if not self.stopped:
            raise ValueError(f"more than {MAX_OPCODES:,} opcodes")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self, count: int) -> list[Any]:
        """The last values, the one that was pushed first at the beginning."""
        if len(self.stack) < count:
            raise IndexError("stack underflow")
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def pop_mark(self) -> list[Any]:
        values = self.stack
        self.stack = self.marks.pop()
        return values

    def put(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def protocol(self, number: int) -> None:
        if number > pickle.HIGHEST_PROTOCOL:
            raise ValueError(f"pickle protocol {number}, which Python has not got")
        self.out.protocol = number

    def stop(self) -> None:
        (self.out.root,) = self.pop(1)
        self.stopped = True

    def alarm(self, what: str) -> None:
        if what not in self.out.alarms and len(self.out.alarms) < MAX_ALARMS:
            self.out.alarms.append(what)

    def opaque(self, what: str, *used: Any) -> None:
        self.alarm(what)
        self.push(Opaque(what))

    def integer(self, value: int) -> None:
        if value.bit_length() > MAX_INT_BITS:
            raise ValueError(f"an integer of {value.bit_length():,} bits")
        self.push(value)

    def lines(self) -> tuple[str, str]:
        # Not genops' argument: it joins the two lines with a space and undoes escapes, which the unpickler does not.
        middle = self.data.index(b"\n", self.at)
        end = self.data.index(b"\n", middle + 1)
        return self.data[self.at + 1 : middle].decode(), self.data[middle + 1 : end].decode()

    def name(self, module: Any, name: Any) -> Global:
        if not (isinstance(module, str) and isinstance(name, str)):
            self.alarm("a global whose name is computed while unpickling")
            module, name = _text(module), _text(name)
        found = Global(module, name)
        return self.out.globals.setdefault(found, found)

    def build(self, func: Any, args: Any, kwargs: Any = None, *, called: bool) -> None:
        reconstructs = func in RECONSTRUCTOR and called and isinstance(args, tuple)
        if reconstructs and args[1:] in [(base, None) for base in OBJECT]:
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
        self.push(made)

    def call(self, func: Any, *args: Any) -> None:
        self.build(func, args, called=True)

    def instance(self, args: list[Any]) -> None:
        self.call(self.name(*self.lines()), *args)

    def set_state(self, state: Any) -> None:
        target = self.stack[-1]
        if not isinstance(target, Built):
            self.alarm(f"BUILD on something that is no instance: {_text(target)}")
        elif target.state is not None:
            self.alarm(f"a second BUILD on one instance of {_text(target.func)}")
        else:
            target.state = state

    def keys(self, keys: list[Any]) -> list[Any]:
        if not is_texts(keys):
            self.odd_keys += sum(type(key) is not str for key in keys)
            if self.odd_keys > MAX_ODD_KEYS:
                raise ValueError(f"more than {MAX_ODD_KEYS:,} keys that are no text")
        return keys

    def dictionary(self, pairs: list[Any]) -> None:
        self.push({})
        self.set_items(pairs)

    def set_items(self, pairs: list[Any]) -> None:
        target = self.stack[-1]
        items = zip(self.keys(pairs[::2]), pairs[1::2], strict=True)
        if isinstance(target, dict):
            target.update(items)
        elif isinstance(target, Built):
            target.items.extend(items)
        else:
            self.alarm(f"items set on something that is no dict: {_text(target)}")

    def put_into(self, kind: type[Any], values: list[Any]) -> None:
        target: Any = self.stack[-1]
        if isinstance(target, Built):
            target.members.extend(values)
        elif not isinstance(target, kind):
            self.alarm(f"values put into something that is no {kind.__name__}: {_text(target)}")
        elif kind is set:
            target.update(self.keys(values))
        else:
            target += values


def _text(value: Any) -> str:
    if isinstance(value, Built):
        return f"the result of {_text(value.func)}" if not isinstance(value.func, Built) else "the result of a result"
    if isinstance(value, (Global, Opaque, str)):
        return str(value)[:200]
    return f"a {type(value).__name__}"


# What each opcode does beside those that `walk` does itself; ``arg`` is its argument as genops reads it.
_HANDLERS: dict[str, Callable[[_Walker, Any], object]] = {
    "PROTO": lambda w, arg: w.protocol(arg),
    "FRAME": lambda w, arg: None,
    "STOP": lambda w, arg: w.stop(),
    "MARK": lambda w, arg: w.mark(),
    "POP": lambda w, arg: w.stack.pop() if w.stack else w.pop_mark(),
    "POP_MARK": lambda w, arg: w.pop_mark(),
    "DUP": lambda w, arg: w.push(w.stack[-1]),
    "PUT": lambda w, arg: w.put(int(arg)),
    "LONG_BINPUT": lambda w, arg: w.put(arg),
    "MEMOIZE": lambda w, arg: w.put(len(w.memo)),
    "GET": lambda w, arg: w.push(w.memo[int(arg)]),
    "BINGET": lambda w, arg: w.push(w.memo[arg]),
    "LONG_BINGET": lambda w, arg: w.push(w.memo[arg]),
    "INT": lambda w, arg: w.integer(arg),
    "LONG": lambda w, arg: w.integer(arg),
    "LONG1": lambda w, arg: w.integer(arg),
    "LONG4": lambda w, arg: w.integer(arg),
    "EMPTY_LIST": lambda w, arg: w.push([]),
    "EMPTY_DICT": lambda w, arg: w.push({}),
    "EMPTY_SET": lambda w, arg: w.push(set()),
    "LIST": lambda w, arg: w.push(w.pop_mark()),
    "DICT": lambda w, arg: w.dictionary(w.pop_mark()),
    "FROZENSET": lambda w, arg: w.push(frozenset(w.keys(w.pop_mark()))),
    "TUPLE": lambda w, arg: w.push(tuple(w.pop_mark())),
    "TUPLE1": lambda w, arg: w.push(tuple(w.pop(1))),
    "TUPLE2": lambda w, arg: w.push(tuple(w.pop(2))),
    "TUPLE3": lambda w, arg: w.push(tuple(w.pop(3))),
    "APPEND": lambda w, arg: w.put_into(list, w.pop(1)),
    "APPENDS": lambda w, arg: w.put_into(list, w.pop_mark()),
    "SETITEM": lambda w, arg: w.set_items(w.pop(2)),
    "SETITEMS": lambda w, arg: w.set_items(w.pop_mark()),
    "ADDITEMS": lambda w, arg: w.put_into(set, w.pop_mark()),
    "GLOBAL": lambda w, arg: w.push(w.name(*w.lines())),
    "STACK_GLOBAL": lambda w, arg: w.push(w.name(*w.pop(2))),
    "REDUCE": lambda w, arg: w.build(*w.pop(2), called=True),
    "NEWOBJ": lambda w, arg: w.build(*w.pop(2), called=False),
    "NEWOBJ_EX": lambda w, arg: w.build(*w.pop(3), called=False),
    "INST": lambda w, arg: w.instance(w.pop_mark()),
    "OBJ": lambda w, arg: w.call(*w.pop_mark()),
    "BUILD": lambda w, arg: w.set_state(*w.pop(1)),
    "EXT1": lambda w, arg: w.opaque(f"extension code {arg}"),
    "EXT2": lambda w, arg: w.opaque(f"extension code {arg}"),
    "EXT4": lambda w, arg: w.opaque(f"extension code {arg}"),
    "PERSID": lambda w, arg: w.opaque("a persistent id"),
    "BINPERSID": lambda w, arg: w.opaque("a persistent id", *w.pop(1)),
    "NEXT_BUFFER": lambda w, arg: w.opaque("an out-of-band buffer"),
    "READONLY_BUFFER": lambda w, arg: None,
}
