"""Old checkpoints: look into a ``training_args.bin``, open it, make it portable. The public names, and their errors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from unsloth_hook import containers, paths, pickles

if TYPE_CHECKING:
    from unsloth_hook.conversion import Conversion as Conversion
    from unsloth_hook.conversion import convert_checkpoint as convert_checkpoint
    from unsloth_hook.inspection import Inspection as Inspection
    from unsloth_hook.inspection import inspect_checkpoint as inspect_checkpoint
    from unsloth_hook.loading import load_training_args as load_training_args

_HOMES = {
    "Conversion": "conversion",
    "convert_checkpoint": "conversion",
    "Inspection": "inspection",
    "inspect_checkpoint": "inspection",
    "load_training_args": "loading",
}


class CheckpointError(Exception):
    """A file that cannot be read, opened or converted; the text names the file, the reason and the way out."""


class UnsafeCheckpointError(CheckpointError):
    """A file that names something that no config needs. Nothing of it was imported or called."""


class CheckpointWarning(UserWarning):
    """A file was opened under another class than the one it names."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"unsloth_hook.{_HOMES[name]}"), name)


def read_container(path: str | os.PathLike[str]) -> containers.Container:
    """The pickle of a file, as a tree. Nothing is run.

    Args:
        path: a file, local or with a scheme that fsspec knows.

    Raises:
        CheckpointError: missing, unreadable, empty, truncated, too large, or no pickle.
        pickles.PickleError: malformed, with what it had named up to there.
    """
    path = os.fspath(path)
    if not isinstance(path, str):
        raise TypeError(f"path must be a str or an os.PathLike of str, not {type(path).__name__}")
    try:
        with paths.open_for_reading(path) as stream:
            return containers.read(stream)
    except containers.ContainerError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except pickles.PickleError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CheckpointError(f"{path}: cannot be read ({reason})") from None
