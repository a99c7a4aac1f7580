"""Child Pythons for tests: every start-up test is a script that runs in a process of its own."""

import contextlib
import functools
import os
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import threading
import venv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "unsloth_hook"

# Seconds. Nothing takes as long, however slow the machine: whoever is waited for so long waits for somebody himself.
DEADLOCK = 1200

QUIET = {
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "2",
    "PYTEST_ADDOPTS": "-p no:ddtrace",  # its plugin puts an import hook into the process
    "TOKENIZERS_PARALLELISM": "false",
    "TQDM_DISABLE": "1",
}


def site_packages(python: str | os.PathLike[str]) -> Path:
    """Return the site-packages folder of a virtual environment, given its ``python``."""
    prefix = Path(python).parent.parent
    scheme = "nt" if os.name == "nt" else "posix_prefix"
    return Path(sysconfig.get_path("purelib", scheme, {"base": str(prefix), "installed_base": str(prefix)}))


def make_venv(folder: Path, *paths: str | os.PathLike[str]) -> Path:
    """Make a virtual environment without pip that also imports from other folders.

    Args:
        folder: where to make it.
        paths: folders to add to its ``sys.path``, after its own site-packages; their ``.pth`` files are not read.

    Returns:
        Its ``python``.
    """
    venv.EnvBuilder(symlinks=os.name != "nt", with_pip=False).create(folder)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    lines = ["# not empty: for a file with text, Python 3.13 imports one codec more", *paths]
    (site_packages(python) / "_paths.pth").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return python


def libraries() -> list[str]:
    """The folders with the libraries of the tests' own Python: its site-packages, and what its ``.pth`` files share."""
    own = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return list(
        dict.fromkeys(own + [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")])
    )


@functools.cache
def hooked_python() -> Path:
    """Return a ``python`` that has the package, its start-up files, and the libraries of the tests' own Python.

    It is the same whether or not the package is installed where the tests run, and makes no copy of torch.
    """
    temporary = tempfile.TemporaryDirectory(prefix="hooked-python-")
    hooked_python.temporary = temporary  # type: ignore[attr-defined]  # removed when the tests end
    python = make_venv(Path(temporary.name), ROOT, *libraries())
    for name in ("unsloth_hook.pth", "unsloth_hook.start"):
        (site_packages(python) / name).write_bytes((PACKAGE / name).read_bytes())
    return python


def clean_env(**changes: str | None) -> dict[str, str]:
    """Return this process's environment without ``UNSLOTH*`` and ``PYTHON*``, offline and quiet; None removes one."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UNSLOTH", "PYTHON"))}
    merged: dict[str, str | None] = {**env, **QUIET, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def deadlocked(seconds: float, what: object, output: str) -> str:
    """What to say of a child that was ended."""
    return f"a deadlock? child did not end within {seconds} s: {what}\n{output}"


def run_child(
    script: str | None = None,
    *,
    env: Mapping[str, str | None] | None = None,
    args: Sequence[str] = (),
    options: Sequence[str] = (),
    python: str | os.PathLike[str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    check: bool = True,
    timeout: float = DEADLOCK,
    input: str | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run a child Python with a clean environment and return what it did.

    Args:
        script: Python source, dedented and run from ``child.py`` in a fresh folder. None: ``args`` say what to run.
        env: variables to set; None as a value removes one. Nothing of ``UNSLOTH*`` or ``PYTHON*`` is inherited.
        args: arguments after the script.
        options: interpreter options before the script, such as ``["-W", "error"]``.
        python: the interpreter; by default `hooked_python()`, where ``env={"UNSLOTH_HOOK": "1"}`` switches the hook on.
        cwd: the working directory; by default a fresh folder.
        check: fail the test, showing both streams, unless the child exits with 0.
        timeout: seconds; not to hurry it, but to end a deadlock.
        input: text for standard input; by default there is none.

    Returns:
        The finished process, with ``returncode``, ``stdout`` and ``stderr``.
    """
    with tempfile.TemporaryDirectory(prefix="child-") as folder:
        command = [os.fspath(python or hooked_python()), *options]
        if script is not None:
            file = Path(folder, "child.py")
            file.write_text(textwrap.dedent(script), encoding="utf-8")
            command.append(str(file))
        command.extend(args)
        streams = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        try:
            done = subprocess.run(
                command,
                env=clean_env(**dict(env or {})),
                cwd=cwd or folder,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=timeout,
                **streams,
            )
        except subprocess.TimeoutExpired as late:
            streams_so_far = "".join(part.decode(errors="replace") for part in (late.stdout, late.stderr) if part)
            pytest.fail(deadlocked(timeout, command, streams_so_far), pytrace=False)
    if check and done.returncode != 0:
        pytest.fail(
            f"child exited with {done.returncode}: {command}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}",
            pytrace=False,
        )
    return done


@contextlib.contextmanager
def deadlock_ends(process: "subprocess.Popen[Any]") -> Iterator[None]:
    """While a test talks to a process: if that takes `DEADLOCK` seconds, it is killed and the test says so."""
    late = threading.Event()
    timer = threading.Timer(DEADLOCK, lambda: (late.set(), process.kill()))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if process.poll() is None:  # of a test that failed
            process.kill()
            process.wait()
        if late.is_set():
            pytest.fail(deadlocked(DEADLOCK, process.args, ""), pytrace=False)


def once(function: Callable[[], Any]) -> Callable[[], Any]:
    """Call a function once in a session and remember what it returned or raised: a broken child is not run again.

    The error is the same object each time, so that it fails one test (`conftest.fail_once`).
    """
    outcome: list[Any] = []

    @functools.wraps(function)
    def remembered() -> Any:
        if not outcome:
            try:
                outcome.append((function(), None))
            except BaseException as error:
                outcome.append((None, error))
        result, error = outcome[0]
        if error is not None:
            raise error
        return result

    return remembered
