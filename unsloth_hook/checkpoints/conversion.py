"""Writes a ``training_args.bin`` under the names that TRL uses today, and only after a stock Python has opened it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass
from typing import Any

from . import allow_list, containers, judgement, paths, pickle_writer
from .errors import CheckpointError, VerifierError
from .pickle_tree import Built, Global, Pickle, check_shape
from .stock_python import Verifier

CONVERTED, WOULD_CONVERT, COPIED, ALREADY = "converted", "would convert", "copied", "already portable"


@dataclass(frozen=True)
class NotCarried:
    """A value that was left out: ``where`` as Python would write it, and what it ``was``. None stands there now."""

    where: str
    was: str


@dataclass(frozen=True)
class Conversion:
    """What `convert_checkpoint` did.

    Attributes:
        source: the file that was read.
        target: the file that was written, or would be.
        status: "converted", "would convert" (dry run), "copied" (portable already, other target), "already portable".
        was: the class that the file named.
        now: the class that it names now.
        not_carried: the values that no portable file can hold.
        notes: what else changed, one sentence each.
    """

    source: str
    target: str
    status: str
    was: str
    now: str
    not_carried: tuple[NotCarried, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for JSON."""
        return asdict(self)


def convert_checkpoint(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    verifier: Verifier | None = None,
) -> Conversion:
    """Write a ``training_args.bin`` that opens with only transformers and TRL, under the names that they use.

    Every value is kept, under the class that `load_training_args` would choose. Before anything is replaced, a child
    Python without the hook opens the new file. The target is written atomically and keeps the source's permission bits.

    Args:
        source: a file, local or with a scheme that fsspec opens.
        target: where to write; may be ``source`` itself. Missing folders are made, an existing file is replaced.
        dry_run: decide and report, write nothing (and start no child).
        verifier: a `Verifier` to share between many calls; None starts and ends one for this call.

    Returns:
        The `Conversion`. A portable file is left alone (copied as it is if the target is another).

    Raises:
        UnsafeCheckpointError: the file names what no config needs, apart from objects that can be left out.
        CheckpointError: it cannot be read, a stock Python does not open the result, or the target cannot be written.
    """
    source, target = os.fspath(source), os.fspath(target)
    try:
        with paths.open_for_reading(source) as stream:
            container = containers.read(stream)
            return _convert(source, target, stream, container, dry_run, verifier)
    except VerifierError as error:
        reason = f"a stock Python does not open the result, so {target} was left alone ({error})"
        raise CheckpointError(f"{source}: {reason}") from None
    except OSError as error:
        name = getattr(error, "filename", None) or source
        raise CheckpointError(f"{source}: not converted; {name}: {error.strerror or error}") from None
    except ValueError as error:
        raise CheckpointError(f"{source}: {error}") from None


def _convert(
    source: str, target: str, stream: Any, container: containers.Container, dry_run: bool, verifier: Verifier | None
) -> Conversion:
    pickle = container.pickles[container.main]
    foreign = frozenset(name for name in pickle.globals if allow_list.classify(name).kind == "foreign")
    judgement.refuse(source, container, ignoring=foreign)
    check_shape(pickle.root)
    if not judgement.is_config(pickle.root):
        raise CheckpointError(f"{source}: holds no training arguments")
    translator = _Translator(pickle, foreign)
    root = translator.translate(pickle.root, "")
    was, now = str(pickle.root.func), str(root.func)
    if not translator.changed:
        return _leave(source, target, stream, was, dry_run)
    verdict = allow_list.classify(pickle.root.func)
    notes = ([verdict.note] if verdict.nearest else []) + translator.notes
    status = WOULD_CONVERT
    if not dry_run:
        with contextlib.nullcontext(verifier) if verifier else Verifier() as checked_by:
            content = _verified(root, pickle.protocol, stream, container, checked_by)
        paths.write_atomically(target, content, _mode(source))
        status = CONVERTED
    return Conversion(source, target, status, was, now, tuple(translator.not_carried), tuple(notes))


def _leave(source: str, target: str, stream: Any, name: str, dry_run: bool) -> Conversion:
    same = source == target or (
        not paths.is_url(target) and os.path.exists(target) and os.path.samefile(source, target)
    )
    if same:
        return Conversion(source, target, ALREADY, name, name)
    if not dry_run:
        stream.seek(0)
        paths.write_atomically(target, stream.read(), _mode(source))
    return Conversion(source, target, COPIED, name, name)


def _mode(source: str) -> int | None:
    return None if paths.is_url(source) else os.stat(source).st_mode & 0o7777


def _verified(root: Built, protocol: int, stream: Any, container: containers.Container, verifier: Verifier) -> bytes:
    for last_try in (False, True):
        content = containers.replace_pickle(stream, container, pickle_writer.write(root, max(protocol, 2)))
        found = verifier.open(content, bare=container.format == "pickle")
        if found["class"] != str(root.func) or not set(root.state or {}) <= set(found["fields"]):
            raise VerifierError(f"it opens as {found['class']} with {len(found['fields'])} fields")
        if last_try or not found["lacks"]:
            break
        # Fields that are younger than the file and have no plain default: without them repr() fails in a stock Python.
        root.state = {**(root.state or {}), **found["lacks"]}
    return content


class _Translator:
    """Rebuilds a tree under today's names, noting what changed and what had to be left out."""

    def __init__(self, pickle: Pickle, foreign: frozenset[Global]) -> None:
        self.lost = judgement.missing_members(pickle)
        self.foreign = foreign
        self.changed = False
        self.notes: list[str] = []
        self.not_carried: list[NotCarried] = []
        self.done: dict[int, Any] = {}
        self.names: dict[Global, Global] = {}

    def translate(self, node: Any, where: str) -> Any:
        if not isinstance(node, (list, tuple, dict, set, frozenset, Built, Global)):
            return node
        if isinstance(node, Global):
            return self.left_out(node, where) if node in self.foreign else node
        if id(node) not in self.done:
            self.done[id(node)] = self.built(node, where) if isinstance(node, Built) else self.container(node, where)
        return self.done[id(node)]

    def container(self, node: Any, where: str) -> Any:
        if isinstance(node, dict):
            return {
                self.translate(key, where): self.translate(value, _below(where, key)) for key, value in node.items()
            }
        return type(node)([self.translate(value, f"{where}[{index}]") for index, value in enumerate(node)])

    def left_out(self, name: Global, where: str) -> None:
        self.changed = True
        self.not_carried.append(NotCarried(where or "the object", str(name)))

    def built(self, node: Built, where: str) -> Any:
        name = node.func
        if name in self.foreign:
            return self.left_out(name, where)
        verdict = allow_list.classify(name)
        if verdict.kind in ("enum", "gone"):
            return self.enum(node, verdict)
        state = self.translate(node.state, where)
        if verdict.kind != "config" or verdict.home is None:
            items = [
                (self.translate(key, where), self.translate(value, _below(where, key))) for key, value in node.items
            ]
            members = [self.translate(value, where) for value in node.members]
            args = tuple(self.translate(arg, where) for arg in node.args)
            return Built(name, args, node.called, {}, state, items, members)
        if verdict.nearest and where:
            self.changed = True
            self.notes.append(f"{where}: {name} is gone, its values are kept in a dict")
            return state or {}
        return Built(self.renamed(name, verdict), (), False, {}, state)

    def enum(self, node: Built, verdict: allow_list.Verdict) -> Any:
        value, name = node.args[0], node.func
        if verdict.home is None or value in self.lost.get(name, []):
            self.changed = True
            self.notes.append(f"{name}({value!r}) is gone; the plain value {value!r} is kept")
            return value
        return Built(self.renamed(name, verdict), node.args, True)

    def renamed(self, name: Global, verdict: allow_list.Verdict) -> Global:
        assert verdict.home is not None
        now = Global(*verdict.home)
        self.changed = self.changed or now != name
        return self.names.setdefault(now, now)  # one object per name: the writer's memo goes by identity


def _below(where: str, key: Any) -> str:
    return f"{where}[{key!r}]" if where else str(key)
