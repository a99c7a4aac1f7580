"""Many short scripts against the real TRL for the price of one import of torch and transformers.

A child Python (without the hook) imports what TRL imports, but not TRL; then each script runs in a fork of it, with the
hook switched on by the start-up code or not at all. What start-up itself does is tested elsewhere, in real start-ups.
"""

import json
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import helpers

SERVER = """
import json, os, pathlib, signal, sys, time, traceback

folder, root, timeout = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
scripts = json.loads((folder / "scripts.json").read_text())

import accelerate, datasets, torch, transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
assert not any(name.split(".")[0] in ("trl", "unsloth_hook") for name in sys.modules)

def run(name, source, hooked):
    import os, sys, traceback, types  # as locals: pdb empties `__main__`

    os.chdir(folder)
    for number, stream in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / f"{name}.{stream}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)
    sys.argv[:] = [str(folder / "script.py")]
    sys.path[0] = str(folder)
    if hooked:
        os.environ["UNSLOTH_HOOK"] = "1"
        sys.path.append(root)
        from unsloth_hook._bootstrap import start
        start()
    code, script, server = 0, folder / "script.py", sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(source, str(script), "exec"), vars(sys.modules["__main__"]))
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)

results = {}
sys.stdout.flush()
for name, (source, hooked) in scripts.items():
    pid = os.fork()
    if pid == 0:
        run(name, source, hooked)
    end, status = time.monotonic() + timeout, None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(code)
        else:
            time.sleep(0.02)
    if status is None:
        os.kill(pid, signal.SIGABRT if os.environ.get("DUMP") else signal.SIGKILL)
        os.waitpid(pid, 0)
        status = "timeout"
    results[name] = [status, (folder / f"{name}.out").read_text(), (folder / f"{name}.err").read_text()]
(folder / "results.json").write_text(json.dumps(results))
"""


@dataclass(frozen=True)
class Done:
    """What one script did."""

    returncode: "int | str"
    stdout: str
    stderr: str

    def json(self) -> Any:
        """The last line of its output, which must be JSON; fails, showing all that it wrote, if it did not end well."""
        assert self.returncode == 0, f"exit code {self.returncode}\n{self.stdout}\n{self.stderr}"
        return json.loads(self.stdout.splitlines()[-1])


def run_scripts(folder: Path, scripts: Mapping[str, tuple[str, bool]], timeout: float = 180) -> dict[str, Done]:
    """Run scripts, each in a fork of its own.

    Args:
        folder: an empty one; their working directory, and the first entry of their ``sys.path``.
        scripts: Python source (dedented here) and whether the hook is on, by a name.
        timeout: seconds that each may take; the return code is ``"timeout"`` afterwards.

    Returns:
        What each did, by the same names.
    """
    plain = {name: (textwrap.dedent(source), hooked) for name, (source, hooked) in scripts.items()}
    (folder / "scripts.json").write_text(json.dumps(plain), encoding="utf-8")
    helpers.run_child(
        SERVER,
        args=[str(folder), str(helpers.ROOT), str(timeout)],
        python=sys.executable,
        timeout=120 + timeout * len(plain),
    )
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return {name: Done(*result) for name, result in results.items()}


def with_and_without(folder: Path, scripts: Mapping[str, str], timeout: float = 60) -> dict[str, tuple[Done, Done]]:
    """Run each script twice; return what it did without the hook (first) and with it."""
    names = {name: (f"{number}-stock", f"{number}-hooked") for number, name in enumerate(scripts)}
    both = {key: (scripts[name], key.endswith("hooked")) for name, keys in names.items() for key in keys}
    done = run_scripts(folder, both, timeout)
    return {name: (done[stock], done[hooked]) for name, (stock, hooked) in names.items()}
