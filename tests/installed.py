"""The built wheel, installed: a Python and the programs beside it, for tests of what users get."""

import functools
import sysconfig
import tempfile
from pathlib import Path

from helpers import ROOT, make_venv
from test_packaging import build, pip


@functools.cache
def installed_python() -> Path:
    """Return a ``python`` with the wheel installed, and with the libraries of the tests' own Python.

    The programs torchrun, accelerate and trl are beside it, as they would be had they been installed there.
    """
    temporary = tempfile.TemporaryDirectory(prefix="installed-")
    installed_python.temporary = temporary  # type: ignore[attr-defined]  # removed when the tests end
    folder = Path(temporary.name)
    python = make_venv(folder / "venv", *dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]))
    pip("install", "--no-deps", build("wheel", ROOT, folder / "wheel"), python=python)
    for name in ("torchrun", "accelerate", "trl"):
        _, _, text = Path(sysconfig.get_path("scripts"), name).read_text().partition("\n")
        (python.parent / name).write_text(f"#!{python}\n{text}")
        (python.parent / name).chmod(0o755)
    return python


def installed_program() -> Path:
    """Return the ``unsloth-hook`` program of `installed_python()`."""
    return installed_python().parent / "unsloth-hook"
