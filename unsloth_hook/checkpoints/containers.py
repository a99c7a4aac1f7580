"""The three shapes that ``torch.save`` and ``pickle`` give a file, and how to swap the pickle inside one."""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import IO

from . import paths, pickle_reader
from .errors import CheckpointError, ContainerError, PickleError
from .pickle_tree import Pickle

# A real data.pkl has about 6 kB. More than this is no config, whatever the file claims.
MAX_PICKLE_BYTES = 8 * 2**20
MAX_DIRECTORY_BYTES = 2**20
MAX_SIDE_BYTES = 2**20
_ZIP_START, _ZIP_END = b"PK\x03\x04", b"PK\x05\x06"
_SMALL, _CACHED_BYTES = 2**16, 10_000
# torch/serialization.py: a legacy file is magic number, protocol, system info, the object, the storage keys.
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_OBJECT = 3
_LEGACY_PICKLES = 5


@dataclass(frozen=True)
class Container:
    """``format`` is "zip", "legacy" or "pickle"; ``data[offsets[main]:]`` starts the pickle of the object."""

    format: str
    data: bytes
    pickles: tuple[Pickle, ...]
    offsets: tuple[int, ...]
    main: int
    entry: str = ""
    notes: tuple[str, ...] = ()


def open_checkpoint(path: str | os.PathLike[str]) -> Container:
    """The pickle of a file, as a tree. Nothing is run.

    Args:
        path: a file, local or with a scheme that fsspec knows.

    Raises:
        CheckpointError: missing, unreadable, empty, truncated, too large, or no pickle.
        PickleError: malformed, with what it had named up to there.
    """
    path = os.fspath(path)
    if not isinstance(path, str):
        raise TypeError(f"path must be a str or an os.PathLike of str, not {type(path).__name__}")
    try:
        with paths.open_for_reading(path) as stream:
            return read(stream)
    except ContainerError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except PickleError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CheckpointError(f"{path}: cannot be read ({reason})") from None


def read(file: IO[bytes]) -> Container:
    """Find and read the pickle in an open file, whose size and content are not trusted.

    Args:
        file: a seekable binary file, at its start.

    Returns:
        The `Container`. At most ``MAX_PICKLE_BYTES`` are read into memory.

    Raises:
        ContainerError: empty, or neither a zip of ``torch.save`` nor a pickle, or too large.
        PickleError: the pickle inside is truncated or malformed.
    """
    start = file.read(_SMALL)
    if not start:
        raise ContainerError("the file is empty")
    file.seek(0)
    if len(start) < _SMALL:
        file = io.BytesIO(start)  # zipfile seeks to and fro, which costs a system call each time
    # By the first bytes, as torch decides it: a zip at the end of a pickle is a pickle.
    if start.startswith(_ZIP_START):
        return _read_zip(file)
    return _read_pickles(file.read(MAX_PICKLE_BYTES + 1))


def replace_pickle(file: IO[bytes], container: Container, pickle: bytes) -> bytes:
    """The file's bytes with the object's pickle replaced, the container and its side records kept.

    Args:
        file: the file that ``container`` was read from.
        container: what `read` returned for it.
        pickle: the new pickle.

    Raises:
        ContainerError: the archive holds more than a config's side records (tensors, say).
    """
    if container.format != "zip":
        start, end = container.offsets[container.main], container.pickles[container.main].end
        return container.data[:start] + pickle + container.data[end:]
    file.seek(0)
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        infos = old.infolist()
        if sum(info.file_size for info in infos if info.filename != container.entry) > MAX_SIDE_BYTES:
            raise ContainerError("the archive holds more than a config; only training arguments can be converted")
        for info in infos:
            content = pickle if info.filename == container.entry else old.read(info)
            new.writestr(zipfile.ZipInfo(info.filename), content)
    return out.getvalue()


def _read_zip(file: IO[bytes]) -> Container:
    _check_directory(file)
    try:
        with zipfile.ZipFile(file) as archive:
            entry = _pickle_entry(archive.namelist())
            info = archive.getinfo(entry)
            if info.file_size > MAX_PICKLE_BYTES:
                raise ContainerError(
                    f"{entry} claims {info.file_size:,} bytes; a config never has more than {MAX_PICKLE_BYTES:,}"
                )
            with archive.open(info) as stream:
                data = stream.read(MAX_PICKLE_BYTES + 1)
    except ContainerError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise ContainerError(f"truncated or damaged zip ({error})") from None
    except (RuntimeError, NotImplementedError, ValueError, struct.error, OverflowError, LookupError) as error:
        raise ContainerError(f"a zip that torch.save did not write ({error})") from None
    return Container("zip", data, (_walk(data),), (0,), 0, entry)


def _walk(data: bytes) -> Pickle:
    # The checkpoints of one run hold the same arguments, byte for byte. (Nobody changes a tree that was read.)
    return _walk_small(data) if len(data) <= _CACHED_BYTES else pickle_reader.read(data)


@lru_cache(maxsize=128)
def _walk_small(data: bytes) -> Pickle:
    return pickle_reader.read(data)


def _check_directory(file: IO[bytes]) -> None:
    # zipfile reads the whole directory whatever its size: millions of entries would cost gigabytes.
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 22))
    tail = file.read()
    if not tail.startswith(_ZIP_END):
        file.seek(max(0, size - 65_557))
        tail = file.read()
    at = tail.rfind(_ZIP_END)
    if at < 0 or len(tail) < at + 22:
        raise ContainerError("truncated zip: it has no directory at its end")
    directory_bytes = struct.unpack_from("<L", tail, at + 12)[0]
    if directory_bytes > MAX_DIRECTORY_BYTES:
        raise ContainerError(
            f"a zip with a directory of {directory_bytes:,} bytes; training arguments have six entries"
        )


def _pickle_entry(names: list[str]) -> str:
    lowered = [name.lower() for name in names]
    if any(name.endswith("/constants.pkl") for name in lowered):
        raise ContainerError("a TorchScript archive, not training arguments")
    # Of two entries of one name torch takes the first, in any case of letters, zipfile the last: one would be hidden.
    found = [name for name in names if name.lower().rpartition("/")[2] == "data.pkl"]
    if len(found) != 1:
        raise ContainerError(f"a zip with {len(found) or 'no'} data.pkl, so torch.save did not write it")
    return found[0]


def _read_pickles(data: bytes) -> Container:
    first = pickle_reader.read(data)
    if first.root != _LEGACY_MAGIC:
        return _with_trailing(data, first)
    found, offsets = [first], [0]
    while len(found) < _LEGACY_PICKLES:
        offsets.append(found[-1].end)
        try:
            found.append(pickle_reader.read(data, offsets[-1]))
        except PickleError as error:
            for earlier in found:
                error.partial.globals.update(earlier.globals)
            raise
    return Container("legacy", data, tuple(found), tuple(offsets), _LEGACY_OBJECT)


def _with_trailing(data: bytes, first: Pickle) -> Container:
    if first.end == len(data):
        return Container("pickle", data, (first,), (0,), 0)
    note = f"{len(data) - first.end:,} bytes after the pickle; a reader of the first object ignores them"
    found, offsets = [first], [0]
    # A program may load a second object from the same file, so its names count too.
    while found[-1].end < len(data) and len(found) < _LEGACY_PICKLES:
        offsets.append(found[-1].end)
        try:
            found.append(pickle_reader.read(data, offsets[-1]))
        except PickleError as error:
            found.append(error.partial)
            break
    return Container("pickle", data, tuple(found), tuple(offsets), 0, notes=(note,))
