"""The real files of tests/data, and ways to make others from them."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from unsloth_hook.checkpoints import containers, pickle_reader, pickle_writer
from unsloth_hook.checkpoints.pickle_tree import Built

DATA = Path(__file__).resolve().parents[1] / "data"
# Relative path to what the manifest beside the file says of it.
MANIFEST: dict[str, dict[str, Any]] = {
    f"{folder.parent.name}/{name}": values
    for folder in sorted(DATA.glob("*/manifest.json"))
    for name, values in json.loads(folder.read_text())["files"].items()
}
ALL = sorted(MANIFEST)
SFT = DATA / "unsloth-2026.7.1/sft_training_args.bin"
SFT_PORTABLE = DATA / "trl-1.16.0/trainer-sft_config.bin"
DPO = DATA / "trl-0.24.0/trainer-dpo_config.bin"


def values(name: str) -> dict[str, Any]:
    """The field values that the manifest gives for a file."""
    return {key: value for key, value in MANIFEST[name].items() if key not in ("class", "n_state")}


def pickle_of(path: Path) -> bytes:
    """The pickle inside a file written by torch."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))


def tree(path: Path = SFT) -> Built:
    """A file's object as a tree, to change and write back with `zipped`."""
    root = pickle_reader.read(pickle_of(path)).root
    assert isinstance(root, Built)
    return root


def zipped(data: bytes, like: Path = SFT, compress: int = zipfile.ZIP_STORED) -> bytes:
    """A torch archive around the bytes of a pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(like) as old, zipfile.ZipFile(out, "w", compress) as new:
        for info in old.infolist():
            new.writestr(info.filename, data if info.filename.endswith("/data.pkl") else old.read(info))
    return out.getvalue()


def write(folder: Path, root: Any, name: str = "training_args.bin") -> Path:
    """A torch archive of a tree, on disk."""
    path = folder / name
    path.write_bytes(zipped(pickle_writer.write(root)))
    return path


def names_in(path: Path) -> set[str]:
    """Every global that a file names, as dotted names."""
    with path.open("rb") as stream:
        return {str(name) for pickle in containers.read(stream).pickles for name in pickle.globals}
