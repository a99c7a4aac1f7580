"""Paths as users write them: local files and folders, and whatever fsspec opens (``s3://``, ``hf://``, ``memory://``)."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, Any

CHECKPOINT_NAME = "training_args.bin"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:://|::)")


def is_url(path: str) -> bool:
    """Whether ``path`` has a scheme and so belongs to fsspec."""
    return _URL.match(path) is not None


def file_system(path: str) -> tuple[Any, str]:
    """fsspec's file system for a path with a scheme, and the path within it.

    Raises:
        OSError: fsspec or the driver for this scheme is not installed; the text says what to install.
    """
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]
    except ImportError:
        raise OSError(f"{path}: a path with a scheme needs fsspec (pip install fsspec)") from None
    try:
        system, inside = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise OSError(f"{path}: {error}") from None
    return system, str(inside)


@contextlib.contextmanager
def open_for_reading(path: str) -> Iterator[IO[bytes]]:
    """Open a regular file, local or by fsspec, as a seekable binary stream.

    Raises:
        OSError: missing, unreadable, or no regular file (a folder, a pipe, a device).
    """
    if is_url(path):
        system, inside = file_system(path)
        with system.open(inside, "rb") as stream:
            yield stream
        return
    # Checked on the open file and without blocking: opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        yield stream


def is_folder(path: str) -> bool:
    """Whether ``path`` is a folder, local or by fsspec."""
    if is_url(path):
        system, inside = file_system(path)
        return bool(system.isdir(inside))
    return os.path.isdir(path)


def checkpoints_below(folder: str) -> list[str]:
    """Each ``training_args.bin`` below ``folder``, sorted; links to folders are not followed."""
    if is_url(folder):
        system, inside = file_system(folder)
        found = [name for name in system.find(inside) if name.rpartition("/")[2] == CHECKPOINT_NAME]
        return sorted(str(system.unstrip_protocol(name)) for name in found)
    return sorted(os.path.join(at, CHECKPOINT_NAME) for at, _, names in os.walk(folder) if CHECKPOINT_NAME in names)


def join(folder: str, relative: str) -> str:
    """``relative`` (with the separators of this machine) below ``folder``."""
    return f"{folder.rstrip('/')}/{relative.replace(os.sep, '/')}" if is_url(folder) else os.path.join(folder, relative)


def relative(path: str, folder: str) -> str:
    """``path`` as seen from ``folder``, which contains it."""
    if is_url(path):
        (_, inside), (_, root) = file_system(path), file_system(folder)
        return inside[len(root.rstrip("/")) :].lstrip("/")
    return os.path.relpath(path, folder)


def write_atomically(path: str, content: bytes, mode: int | None = None) -> None:
    """Write a file whole or not at all; a link keeps pointing where it did and its target is replaced.

    Args:
        path: where to, local or by fsspec. Missing folders are made.
        content: the whole file.
        mode: permission bits; None keeps those of an existing file, else those that the umask gives.

    Raises:
        OSError: it could not be written (read-only folder, full disk). Nothing is left behind.
    """
    if is_url(path):
        _write_remote(path, content)
        return
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    if mode is None:
        mode = stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else 0o666 & ~_umask()
    descriptor, staged = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", suffix=".tmp", dir=folder)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        os.chmod(staged, mode)
        os.replace(staged, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(staged)
        raise


def _write_remote(path: str, content: bytes) -> None:
    # An object store shows an object only when it is complete; elsewhere a name of its own and a move do the same.
    system, inside = file_system(path)
    staged = f"{inside}.{os.getpid()}.tmp"
    system.makedirs(system._parent(inside), exist_ok=True)
    try:
        system.pipe_file(staged, content)
        system.mv(staged, inside)
    except BaseException:
        with contextlib.suppress(Exception):
            system.rm_file(staged)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
