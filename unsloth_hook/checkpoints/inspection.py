"""Says what is in a ``training_args.bin`` without running anything of it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from . import allow_list, containers, judgement
from .errors import CheckpointError, PickleError
from .pickle_tree import MAX_DEPTH, MAX_VALUES, Built, Global, Opaque, Pickle

PORTABLE, NOT_PORTABLE, UNSAFE = "portable", "not portable", "unsafe"

# transformers hides every "*_token" that it prints, special tokens of the tokenizer included; those are no secrets.
_SECRET = re.compile(r"(?:^|_)(?:token|password|secret|api_key|access_key|credentials?)$", re.IGNORECASE)
_NO_SECRET = re.compile(r"^(?:pad|eos|bos|unk|sep|cls|mask|image|video|audio|response|special|end|start)_token$")
_LOOKS_SECRET = re.compile(r"\bhf_[A-Za-z0-9]{16,}")


@dataclass(frozen=True)
class GlobalReport:
    """One name in the pickle. ``now`` is what it is called today ("" if nothing); ``note`` says why."""

    name: str
    verdict: str
    now: str = ""
    note: str = ""


@dataclass(frozen=True)
class Inspection:
    """What `inspect_checkpoint` found.

    Attributes:
        path: the file.
        format: "zip" or "legacy" (``torch.save``), or "pickle".
        verdict: "portable", "not portable" or "unsafe".
        config_class: the class of the object as the file names it, "" if the object is no instance of a class.
        opens_as: the class that `load_training_args` gives it, "" if it refuses.
        globals: every name in the pickle with its verdict: portable, stray, moved, removed or unsafe.
        fields: the object's values by name: plain values, an enum as its value, secrets as ``<NAME>``.
        notes: anything else worth knowing, one sentence each.
    """

    path: str
    format: str
    verdict: str
    config_class: str = ""
    opens_as: str = ""
    globals: tuple[GlobalReport, ...] = ()
    fields: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, ready for strict JSON (inf and nan become texts)."""
        reports = [vars(report) for report in self.globals]
        return {**vars(self), "globals": reports, "fields": _finite(self.fields), "notes": list(self.notes)}


def inspect_checkpoint(path: str | os.PathLike[str], fields: Collection[str] | None = None) -> Inspection:
    """Say what is in a ``training_args.bin``: its format, its class, every global that it names, its values, a verdict.

    Nothing of the file is run and neither torch nor transformers is imported: opcodes are read with ``pickletools``,
    names are looked up in the sources of the installed packages.

    Args:
        path: a file, local or with a scheme that fsspec opens.
        fields: the names of the values to report; None for all.

    Returns:
        The `Inspection`.

    Raises:
        CheckpointError: the file is missing, unreadable, empty, truncated, no pickle, or holds no config. A broken
            file that names something unsafe before the break is reported as unsafe instead.
    """
    path = os.fspath(path)
    try:
        container = containers.open_checkpoint(path)
    except PickleError as error:
        reports = _reports(error.partial)
        if bad := judgement.pickle_problems(error.partial):
            notes = (*_without_names(bad, reports), str(error))
            return Inspection(path, "broken", UNSAFE, globals=reports, notes=notes)
        raise CheckpointError(f"{path}: {error}; the file is no training_args.bin, or only part of one") from None
    return _describe(path, container, fields)


def _describe(path: str, container: containers.Container, wanted: Collection[str] | None) -> Inspection:
    pickle = container.pickles[container.main]
    root = pickle.root
    reports = tuple(dict.fromkeys(report for each in container.pickles for report in _reports(each)))
    bad = judgement.problems(container)
    notes = (*(_without_names(bad, reports)), *container.notes)
    config = root.func if isinstance(root, Built) and isinstance(root.func, Global) else None
    try:
        fields = _fields(root, wanted)
    except ValueError as error:
        if not bad:
            raise CheckpointError(f"{path}: {error}; no config looks like that") from None
        fields, notes = {}, (*notes, f"values not shown: {error}")
    if not bad and (config is None or allow_list.classify(config).kind != "config"):
        holds = config or (f"a {type(root).__name__}" if root is not None else "None")
        raise CheckpointError(f"{path}: holds {holds}, not the training arguments of a trainer")
    verdict = UNSAFE if bad else PORTABLE if all(r.verdict == allow_list.PORTABLE for r in reports) else NOT_PORTABLE
    home = allow_list.classify(config).home if config and not bad else None
    return Inspection(
        path, container.format, verdict, str(config or ""), ".".join(home or ()), reports, fields, tuple(notes)
    )


def _reports(pickle: Pickle) -> tuple[GlobalReport, ...]:
    lost = judgement.missing_members(pickle)
    return tuple(_lost_report(name, lost[name]) if name in lost else _report(name) for name in pickle.globals)


@cache
def _report(name: Global) -> GlobalReport:
    found = allow_list.classify(name)
    return GlobalReport(str(name), found.verdict, ".".join(found.home or ()), found.note)


def _lost_report(name: Global, lost: list[object]) -> GlobalReport:
    note = f"it has no member {', '.join(map(repr, lost))} any more; the plain value is kept"
    return GlobalReport(str(name), allow_list.REMOVED, _report(name).now, note)


def _without_names(bad: list[str], reports: tuple[GlobalReport, ...]) -> list[str]:
    said = {f"{report.name}: {report.note}" for report in reports}
    return [sentence for sentence in bad if sentence not in said]


def _fields(root: Any, wanted: Collection[str] | None) -> dict[str, Any]:
    """The values of an object, plain, or ValueError where writing them out would explode (as `check_shape`)."""
    state = root.state if isinstance(root, Built) else root
    if not isinstance(state, dict):
        return {}
    if wanted is not None:
        state = {name: value for name, value in state.items() if name in wanted}
    shown: dict[str, Any] = _Plain().show(state, 0)
    return shown


@cache
def _is_secret(name: str) -> bool:
    return bool(_SECRET.search(name)) and not _NO_SECRET.match(name)


_AS_IT_IS = frozenset({bool, int, float, type(None)})


class _Plain:
    """Turns the nodes of a pickle into values that JSON knows, each shared value as often as it is met."""

    def __init__(self) -> None:
        self.shown = 0

    def show(self, value: Any, depth: int) -> Any:
        if type(value) in _AS_IT_IS:
            return value
        if type(value) is str:
            return _LOOKS_SECRET.sub("<TOKEN>", value) if "hf_" in value else value
        if isinstance(value, (bytes, bytearray)):
            return f"<{len(value):,} bytes>"
        if depth > MAX_DEPTH:
            raise ValueError(f"values nested more than {MAX_DEPTH} deep")
        if isinstance(value, dict):
            self.count(len(value))
            return dict([self.item(key, item, depth + 1) for key, item in value.items()])
        if isinstance(value, (list, tuple, set, frozenset)):
            self.count(len(value))
            return [self.show(item, depth + 1) for item in value]
        if isinstance(value, Built):
            return self.built(value, depth)
        return f"<{value.what}>" if isinstance(value, Opaque) else str(value)

    def count(self, more: int) -> None:
        self.shown += more + 1
        if self.shown > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES:,} values when shared ones are written out")

    def item(self, key: Any, value: Any, depth: int) -> tuple[str, Any]:
        name = key if type(key) is str else str(self.show(key, depth))
        if value is None or type(value) is bool:
            return name, value
        if _is_secret(name):
            return name, f"<{name.upper()}>"
        return name, self.show(value, depth)

    def built(self, built: Built, depth: int) -> Any:
        kind = allow_list.classify(built.func).kind if isinstance(built.func, Global) else "unsafe"
        self.count(len(built.args))
        if kind in ("enum", "gone") and len(built.args) == 1:
            return self.show(built.args[0], depth + 1)
        if kind == "device":
            return ":".join(str(self.show(arg, depth + 1)) for arg in built.args)
        if kind == "config" and isinstance(built.state, dict):
            return self.show(built.state, depth + 1)
        if kind == "container":
            content = [self.show(arg, depth + 1) for arg in built.args] if not built.items else []
            content += [self.show(built.members, depth + 1)] if built.members else []
            return dict(self.item(*item, depth + 1) for item in built.items) or (content[0] if content else [])
        return f"<{built.func}>" if isinstance(built.func, Global) else "<the result of a call>"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
