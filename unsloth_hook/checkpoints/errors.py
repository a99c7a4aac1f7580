"""What can be wrong with a file. The first three are for users; the others are turned into them on the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pickle_tree import Pickle


class CheckpointError(Exception):
    """A file that cannot be read, opened or converted; the text names the file, the reason and the way out."""


class UnsafeCheckpointError(CheckpointError):
    """A file that names something that no config needs. Nothing of it was imported or called."""


class CheckpointWarning(UserWarning):
    """A file was opened under another class than the one it names."""


class ContainerError(ValueError):
    """Bytes that hold no pickle of ours, with the reason."""


class PickleError(ValueError):
    """A stream that cannot be read. ``partial`` is what it had named up to there: an unpickler would have run that."""

    def __init__(self, message: str, partial: Pickle) -> None:
        super().__init__(message)
        self.partial = partial


class VerifierError(RuntimeError):
    """A stock Python could not open a file, or could not be run; the text is its own error."""
