"""The built wheel, installed: a Python and the programs beside it, for tests of what users get."""

import functools
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from helpers import ROOT, clean_env, make_venv


def build(target: str, source: Path, folder: Path) -> Path:
    """Build one `sdist` or `wheel` with the backend that is installed here, and return the file."""
    command = [sys.executable, "-m", "build", "--no-isolation", f"--{target}", "--outdir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, env=clean_env(), stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


def pip(*args: str | Path, python: Path, backend: Path | None = None) -> str:
    """Run the tests' own pip on another environment, without an index, and return its output."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "--no-input", *map(str, args)]
    env = clean_env(PYTHONPATH=str(backend) if backend else None, PIP_NO_INDEX="1", PIP_QUIET=None)
    done = subprocess.run(command, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
