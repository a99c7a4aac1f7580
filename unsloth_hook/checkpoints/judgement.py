"""May this file be opened? What its names (`allow_list`), and what it does with them, come to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from ..releases import installed_classes
from .allow_list import UNSAFE, classify
from .containers import Container
from .errors import UnsafeCheckpointError
from .pickle_tree import Built, Global, Pickle, is_texts


def is_config(root: Any) -> bool:
    """Whether a pickle's root is an instance of a config class."""
    return isinstance(root, Built) and isinstance(root.func, Global) and classify(root.func).kind == "config"


def problems(container: Container) -> list[str]:
    """Why this file must not be opened, one sentence each; empty if it may."""
    return list(dict.fromkeys(problem for pickle in container.pickles for problem in pickle_problems(pickle)))


def pickle_problems(pickle: Pickle) -> list[str]:
    judged = [(name, classify(name)) for name in pickle.globals]
    unsafe = [f"{name}: {verdict.note}" for name, verdict in judged if verdict.verdict == UNSAFE]
    return [*pickle.alarms, *unsafe, *misuses(pickle)]


def refuse(path: str, container: Container, ignoring: frozenset[Global] = frozenset()) -> None:
    """Raise UnsafeCheckpointError if the file names or does what no config does, apart from naming ``ignoring``."""
    bad = [problem for problem in problems(container) if not problem.startswith(_starts(ignoring))]
    if bad:
        raise UnsafeCheckpointError(
            f"{path}: not opened. It names what no training arguments need: {'; '.join(bad[:5])}. Nothing of it was "
            f"imported or run. If you trust its author, torch.load(path, weights_only=False) opens it, and runs it."
        )


def _starts(names: frozenset[Global]) -> tuple[str, ...]:
    return tuple(f"{name}: " for name in names)


def missing_members(pickle: Pickle) -> dict[Global, list[object]]:
    """The values that a pickle looks up in an enum and that the enum lacks today, by the enum's name in the pickle."""
    lost: dict[Global, list[object]] = {}
    for built in pickle.built:
        values = _members(built.func) if built.called and isinstance(built.func, Global) else None
        if values is not None and len(built.args) == 1 and isinstance(built.args[0], (str, int)):
            value = built.args[0]
            if value not in values and value not in lost.setdefault(built.func, []):
                lost[built.func].append(value)
    return {name: values for name, values in lost.items() if values}


@cache
def _members(name: Global) -> frozenset[object] | None:
    found = classify(name)
    return installed_classes.enum_values(found.home) if found.kind == "enum" and found.home else None


def misuses(pickle: Pickle) -> Iterator[str]:
    """What a pickle does with the names on the list that no config needs, one sentence each; nothing if all is well.

    A class on the list is not enough: called with arguments of a stranger's choice, ``TrainingArguments.__post_init__``
    runs; BUILD on an enum's member would change the enum for the whole process.
    """
    for built in pickle.built:
        if isinstance(built.func, Global) and (reason := _misuse(built, classify(built.func).kind)):
            yield f"{built.func}: {reason}"


def _misuse(built: Built, kind: str) -> str:
    bare = not (built.kwargs or built.items or built.members)
    plain = built.called and built.state is None and bare
    if kind == "config":
        if built.called or built.args or not bare:
            return "a config class is called with arguments; real files only make it and set its fields"
        return "" if built.state is None or _is_state(built.state) else "its fields are no dict with text keys"
    if kind in ("enum", "gone"):
        one = len(built.args) == 1 and type(built.args[0]) in (str, int)
        return "" if plain and one else "not the value of an enum"
    if kind == "device":
        shapes = ([str], [str, int])
        return "" if plain and [type(arg) for arg in built.args] in shapes else "not a device such as 'cuda', 0"
    if kind == "container":
        return _container_misuse(built)
    if kind == "dtype":
        return "a dtype is called"
    if kind == "maker":
        return "called in another way than pickle and Unsloth do"
    return ""


def _is_state(state: object) -> bool:
    return isinstance(state, dict) and is_texts(state)


def _container_misuse(built: Built) -> str:
    name = built.func.name
    if built.state is not None or built.kwargs or not built.called:
        return "a plain container with more than its content"
    if name == "defaultdict":
        factory = built.args[0] if len(built.args) == 1 else None
        known = isinstance(factory, Global) and classify(factory).kind == "container"
        return "" if factory is None or known else "a defaultdict with a factory that is no container"
    if name == "complex":
        numbers = len(built.args) == 2 and all(type(arg) in (int, float) for arg in built.args)
        return "" if numbers else "not the two parts of a complex number"
    fits = not built.args or (len(built.args) == 1 and isinstance(built.args[0], (list, tuple, bytes, dict)))
    pairs = name not in ("dict", "OrderedDict") or not built.args or _is_pairs(built.args[0])
    return "" if fits and pairs else "a container made of something that is no container"


def _is_pairs(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, (list, tuple)) and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value)
    )
