"""Scripts against the real TRL for the price of a fork: torch and what else TRL imports are imported once, in a server.

Each script runs in a fork of the server, in a namespace of its own, with the hook switched on by the start-up code or
not at all. What start-up itself does, interpreter options, and workers that are spawned need a real child (`helpers`).
"""

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import helpers
import pytest

SERVER = """
import json, os, signal, sys, time

import accelerate, datasets, torch, transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
assert not any(name.split(".")[0] in ("trl", "unsloth_hook") for name in sys.modules)
root = sys.argv[1]

def run(asked):
    import os, sys, traceback, types  # as locals: pdb empties `__main__`

    os.chdir(asked["cwd"])
    for number, stream in ((1, "out"), (2, "err")):
        os.dup2(os.open(asked[stream], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin, sys.stdout, sys.stderr = (open(n, "r" if n == 0 else "w", closefd=False) for n in range(3))
    os.environ.clear()
    os.environ.update(asked["env"])
    script = asked["script"]
    sys.argv[:] = [script, *asked["args"]]
    sys.path[0] = os.path.dirname(script)
    sys.path[1:1] = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), root]
    if os.environ.get("UNSLOTH_HOOK", "").strip().lower() not in ("", "0", "false", "no", "off"):
        from unsloth_hook._bootstrap import start  # what the .pth line does
        start()
    main = types.ModuleType("__main__")
    main.__file__, code = script, 0
    server, sys.modules["__main__"] = sys.modules["__main__"], main
    try:
        with open(script, encoding="utf-8") as file:
            source = file.read()
        exec(compile(source, script, "exec"), vars(main))
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the script closed it
            pass
    os._exit(code)

for line in sys.stdin:
    asked = json.loads(line)
    pid = os.fork()
    if pid == 0:
        run(asked)
    end, status = time.monotonic() + asked["timeout"], None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(code)
        else:
            time.sleep(0.005)
    if status is None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    print(json.dumps(status), flush=True)
"""


@dataclass(frozen=True)
class Done:
    """What one script did; the return code is ``"timeout"`` if it was ended."""

    returncode: "int | str"
    stdout: str
    stderr: str

    def json(self) -> Any:
        """The last line of its output, which must be JSON; fails, showing all that it wrote, if it did not end well."""
        assert self.returncode == 0, f"exit code {self.returncode}\n{self.stdout}\n{self.stderr}"
        return json.loads(self.stdout.splitlines()[-1])


class Server:
    """The process that has imported torch, and what it needs to be asked one thing at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="preloaded-")
        source = Path(self._folder.name, "server.py")
        source.write_text(SERVER, encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, str(source), str(helpers.ROOT)],
            env=helpers.clean_env(),
            cwd=self._folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.close)

    def close(self) -> None:
        self._process.communicate()  # closes its standard input, which ends it
        self._folder.cleanup()

    def ask(self, script: Path, env: Mapping[str, str], args: Sequence[str], cwd: str, timeout: float) -> Done:
        assert self._process.stdin and self._process.stdout
        out, err = script.with_suffix(".out"), script.with_suffix(".err")
        asked = {"script": str(script), "env": dict(env), "args": list(args), "cwd": cwd, "timeout": timeout}
        with self._lock:
            self._process.stdin.write(json.dumps({**asked, "out": str(out), "err": str(err)}) + "\n")
            self._process.stdin.flush()
            status = json.loads(self._process.stdout.readline())
        texts = [file.read_text(encoding="utf-8", errors="replace") for file in (out, err)]
        return Done("timeout" if status is None else status, *texts)


_STARTING = Lock()


def server() -> Server:
    """The one server of this process, whichever thread comes first (`stock.at_once`)."""
    with _STARTING:
        return _server()


@functools.cache
def _server() -> Server:
    return Server()


def run_child(
    script: str,
    *,
    env: "Mapping[str, str | None] | None" = None,
    args: Sequence[str] = (),
    cwd: "str | os.PathLike[str] | None" = None,
    check: bool = True,
    timeout: float = helpers.DEADLOCK,
) -> Done:
    """As `helpers.run_child`, in a fork that has torch and transformers already.

    Args:
        script: Python source, dedented and run from ``child.py`` in a fresh folder.
        env: variables to set; ``UNSLOTH_HOOK`` decides about the hook as in a real start-up.
        args: arguments after the script.
        cwd: the working directory; by default the fresh folder.
        check: fail the test, showing both streams, unless the script exits with 0.
        timeout: seconds.
    """
    with tempfile.TemporaryDirectory(prefix="fork-") as folder:
        file = Path(folder, "child.py")
        file.write_text(textwrap.dedent(script), encoding="utf-8")
        done = server().ask(file, helpers.clean_env(**dict(env or {})), args, os.fspath(cwd or folder), timeout)
    if done.returncode == "timeout":
        pytest.fail(helpers.deadlocked(timeout, "fork", done.stdout + done.stderr), pytrace=False)
    if check and done.returncode != 0:
        pytest.fail(f"exit code {done.returncode}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}", pytrace=False)
    return done


def run_scripts(
    folder: Path, scripts: Mapping[str, tuple[str, bool]], timeout: float = helpers.DEADLOCK
) -> dict[str, Done]:
    """Run scripts, each in a fork of its own.

    Args:
        folder: an empty one; their working directory, and the first entry of their ``sys.path``.
        scripts: Python source (dedented here) and whether the hook is on, by a name.
        timeout: seconds that each may take; the return code is ``"timeout"`` afterwards.

    Returns:
        What each did, by the same names.
    """
    file, results = folder / "script.py", {}
    for name, (source, hooked) in scripts.items():
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        env = helpers.clean_env(UNSLOTH_HOOK="1" if hooked else None)
        results[name] = server().ask(file, env, (), str(folder), timeout)
    return results


def with_and_without(folder: Path, scripts: Mapping[str, str]) -> dict[str, tuple[Done, Done]]:
    """Run each script twice; return what it did without the hook (first) and with it."""
    stock, hooked = (
        run_scripts(folder, {name: (source, on) for name, source in scripts.items()}) for on in (False, True)
    )
    return {name: (stock[name], hooked[name]) for name in scripts}
