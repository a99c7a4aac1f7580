"""What the tests here look at: child scripts run with the hook and without, each once in a session.

Importing Unsloth costs a quarter of a minute of computing, so that a child tries many things and writes down what it
saw; the tests then ask one question each.
"""

import dataclasses
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import helpers
import probes
import pytest
from filelock import FileLock

HERE = Path(__file__).parent
WHICH = ("stock", "hooked")
TRAINERS = 14 if probes.FIXED else 15


@dataclasses.dataclass
class Run:
    """One child that has ended: what it wrote down, printed, and left in its folders."""

    folder: Path
    returncode: int
    stdout: str
    stderr: str

    @property
    def facts(self) -> dict[str, Any]:
        if self.returncode:
            pytest.fail(f"child exited with {self.returncode}\n{self.stdout}\n{self.stderr}", pytrace=False)
        return json.loads((self.folder / "facts.json").read_text())  # type: ignore[no-any-return]

    def lines(self) -> "Counter[str]":
        """Everything it printed, less what differs from process to process.

        The old release runs `ldconfig`, which complains if another process does so just then.
        """
        text = f"{self.stdout}\n{self.stderr}".replace(str(self.folder), "FOLDER")
        text = re.sub(r"0x[0-9a-f]+|(?<=\.py\.)\w{8}(?=\.tmp)", "RANDOM", text)
        return Counter(line for line in text.splitlines() if not line.startswith("ldconfig: "))

    def files(self, name: str) -> dict[str, str]:
        """A digest of each file in one of its folders, less Python's bytecode and Unsloth's lock files."""
        return {
            str(file.relative_to(self.folder / name)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted((self.folder / name).rglob("*"))
            if file.is_file() and file.suffix != ".pyc" and ".lock" not in str(file)
        }


class Observer:
    """Runs each pair of children once, also where pytest-xdist has several workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: dict[str, dict[str, Run]] = {}

    def once(self, name: str, produce: Callable[[Path], None]) -> Path:
        """The folder that `produce` has filled."""
        folder = self.folder / name
        with FileLock(self.folder / f"{name}.lock"):
            if not (folder / "done").exists():
                folder.mkdir(parents=True)
                produce(folder)
                (folder / "done").touch()
        return folder

    def pair(self, name: str, script: str, args: Sequence[str] = (), **options: Any) -> dict[str, Run]:
        """Run a child script of this folder twice at once.

        Args:
            name: of the pair.
            script: the script's file name; its arguments are `args` and its own folder, where it writes `facts.json`.
            options: `hook` (the value of UNSLOTH_HOOK; None: unset, for a script that calls `install()`); `env`
                (more variables) and `prepare` (something to do before) are called with the child's folder.

        Returns:
            `{"stock": ..., "hooked": ...}`.
        """
        if name not in self._seen:
            helpers.hooked_python()  # made once, before the threads ask for it

            def produce(folder: Path) -> None:
                with ThreadPoolExecutor(2) as pool:
                    list(pool.map(lambda which: run(folder / which, which, script, args, **options), WHICH))

            folder = self.once(name, produce)
            self._seen[name] = {which: load(folder / which) for which in WHICH}
        return self._seen[name]

    def one(self, name: str, which: str, script: str, args: Sequence[str] = (), **options: Any) -> Run:
        """The same for one child alone."""
        return load(self.once(name, lambda folder: run(folder, which, script, args, **options)))

    def order(self, name: str) -> dict[str, Run]:
        """The pair for one import order; see `child_order.py`."""
        if name == "late":  # without the hook, that is no other order
            hooked = self.one("order-late", "hooked", "child_order.py", ["late"], hook=None)
            return {"stock": self.order("unsloth")["stock"], "hooked": hooked}
        return self.pair(f"order-{name}", "child_order.py", [name])


def run(
    folder: Path,
    which: str,
    script: str,
    args: Sequence[str],
    *,
    hook: "str | None" = "1",
    env: "Callable[[Path], dict[str, str | None]]" = lambda folder: {},
    prepare: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Run a child script and keep what it printed."""
    (folder / "cwd").mkdir(parents=True)
    prepare(folder)
    done = helpers.run_child(
        args=[str(HERE / script), *args, str(folder)],
        env={
            "UNSLOTH_HOOK": "0" if which == "stock" else hook,
            "UNSLOTH_ALLOW_CPU": "1" if probes.FIXED else None,
            "UNSLOTH_COMPILE_LOCATION": str(folder / "cache"),
            "UNSLOTH_ENABLE_LOGGING": "1",
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
            **env(folder),
        },
        cwd=folder / "cwd",
        check=False,
    )
    (folder / "run.json").write_text(json.dumps([done.returncode, done.stdout, done.stderr]))


def load(folder: Path) -> Run:
    return Run(folder, *json.loads((folder / "run.json").read_text()))
