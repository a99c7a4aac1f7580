"""Opens a ``training_args.bin`` as a config object, through the allow-list of `allow_list` and never through pickle."""

from __future__ import annotations

import os
import warnings
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any

from ..releases.history import RENAMED
from ..releases.installed_classes import Home
from . import allow_list, containers, judgement
from .errors import CheckpointError, CheckpointWarning, UnsafeCheckpointError
from .pickle_tree import Built, Global, check_shape

_CONTAINER_TYPES = {
    "list": list,
    "dict": dict,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "complex": complex,
    "bytearray": bytearray,
}


def load_training_args(path: str | os.PathLike[str]) -> Any:
    """Open a ``training_args.bin`` of any TRL or Unsloth release as a config object of the installed TRL.

    Only config dataclasses and enums of trl, transformers and accelerate, ``torch.device``, dtypes and plain
    containers are ever imported; no constructor and no function is called. It makes no difference whether the hook is
    on.

    Args:
        path: a file, local or with a scheme that fsspec opens.

    Returns:
        The config, with every value of the file. A class that TRL has moved or that Unsloth renamed is found; for one
        that this TRL has not got, the nearest class carries the values (``TrainingArguments`` at the end), with a
        `CheckpointWarning`. An enum, or a member of one, that is gone becomes its plain value. Fields that the file
        lacks answer with their defaults.

    Raises:
        UnsafeCheckpointError: the file names anything else, or uses a name in another way than a config does.
        CheckpointError: the file is missing, unreadable, broken, holds no config, or transformers is not installed.
    """
    path = os.fspath(path)
    try:
        container = containers.open_checkpoint(path)
        root = container.pickles[container.main].root
        judgement.refuse(path, container)
        check_shape(root)
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}; no training_args.bin looks like that") from None
    if not judgement.is_config(root):
        holds = root.func if isinstance(root, Built) else f"a {type(root).__name__}"
        raise CheckpointError(f"{path}: holds {holds}, not the training arguments of a trainer")
    verdict = allow_list.classify(root.func)
    if verdict.nearest:
        message = f"{path}: opened {root.func} as {'.'.join(verdict.home or ())}, with all its values: {verdict.note}"
        warnings.warn(message, CheckpointWarning, stacklevel=2)
    return _Maker(path, root).make(root)


class _Maker:
    """Makes objects from nodes whose every name and use `judgement.refuse` has passed."""

    def __init__(self, path: str, root: Built) -> None:
        self.path = path
        self.root = root
        self.made: dict[int, Any] = {}

    def make(self, node: Any) -> Any:
        if isinstance(node, Global):
            return self.named(node)
        if not isinstance(node, (list, tuple, dict, set, frozenset, Built)):
            return node
        if id(node) not in self.made:
            self.made[id(node)] = self.built(node) if isinstance(node, Built) else self.container(node)
        return self.made[id(node)]

    def container(self, node: Any) -> Any:
        if isinstance(node, dict):
            return {self.make(key): self.make(value) for key, value in node.items()}
        return type(node)(self.make(value) for value in node)

    def named(self, name: Global) -> Any:
        if allow_list.classify(name).kind == "dtype":
            found = getattr(import_module("torch"), name.name, None)
            if isinstance(found, import_module("torch").dtype):
                return found
        raise UnsafeCheckpointError(f"{self.path}: has {name} itself as a value; no config holds a class")

    def built(self, node: Built) -> Any:
        verdict = allow_list.classify(node.func)
        if verdict.kind == "gone":
            return node.args[0]
        if verdict.kind == "device":
            return self.device(node)
        if verdict.kind == "container":
            return self.plain(node)
        assert verdict.home is not None
        if verdict.kind == "enum":
            return self.member(self.imported(node.func, verdict.home), node.args[0])
        state = {} if node.state is None else {name: self.make(value) for name, value in node.state.items()}
        if verdict.nearest and node is not self.root:
            return state  # Only the file's own object needs a class; inside it a removed class leaves its values.
        return self.config(self.imported(node.func, verdict.home), state)

    def device(self, node: Built) -> Any:
        try:
            return import_module("torch").device(*node.args)
        except RuntimeError as error:
            raise CheckpointError(f"{self.path}: names a device that torch has not got ({error})") from None

    def plain(self, node: Built) -> Any:
        name, args = node.func.name, [self.make(arg) for arg in node.args if not isinstance(arg, Global)]
        if name in ("OrderedDict", "defaultdict"):
            kind = import_module("collections")
            factory = [_CONTAINER_TYPES[arg.name] for arg in node.args if isinstance(arg, Global)]
            made = kind.defaultdict(*factory) if name == "defaultdict" else kind.OrderedDict(*args)
        else:
            made = _CONTAINER_TYPES[name](*args)
        for key, value in node.items:
            made[self.make(key)] = self.make(value)
        for value in node.members:
            made.append(self.make(value)) if isinstance(made, list) else made.add(self.make(value))
        return made

    def imported(self, name: Global, home: Home) -> Any:
        try:
            found = getattr(import_module(home.module), home.name)
        except Exception as error:
            raise CheckpointError(
                f"{self.path}: {name} is {home.module}.{home.name} here, and that cannot be imported ({error})"
            ) from error
        if isinstance(found, type):
            defined = Home(found.__module__, found.__qualname__)
            if is_dataclass(found) or issubclass(found, Enum) or defined in allow_list.STATE_CLASSES:
                return found
        raise UnsafeCheckpointError(f"{self.path}: {name} is neither a config dataclass nor an enum")

    def member(self, enum: Any, value: Any) -> Any:
        try:
            return enum(value)
        except ValueError:
            return value

    def config(self, cls: Any, state: dict[str, Any]) -> Any:
        try:
            config = object.__new__(cls)
            vars(config).update(state)
        except TypeError as error:
            raise UnsafeCheckpointError(f"{self.path}: {cls.__name__} is no plain config ({error})") from None
        if not is_dataclass(cls):
            return config
        declared = {field.name: field for field in fields(cls)}
        for old, new in RENAMED.items():  # kept under the old name, answers to the new
            if new in declared and new not in state and state.get(old) is not None:
                vars(config)[new] = state[old]
        for name, field in declared.items():
            if name not in vars(config) and field.default is MISSING:
                vars(config)[name] = None if field.default_factory is MISSING else field.default_factory()
        return config
