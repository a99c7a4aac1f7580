"""Compare what one command did stock and hooked: exit code, lines printed, and every file that it wrote.

Both ran in a folder of the same path, one after the other, so that no path needs to be left out. Times are left out.
"""

import dataclasses
import difflib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from helpers import DEADLOCK, clean_env

# Names of metrics that are times, speeds or memory: train_runtime, train_samples_per_second, train_speed(s/it), …
TIMES = re.compile(r"(?:^|_)(?:run)?time\b|per_second|speed|tokens/|/ ?(?:s|sec|second)\b|memory|Time taken")
# A time inside a line, and what it is called.
IN_LINES = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?"), "<time>"),
    (re.compile(r"\b([WIE])\d{4} \d\d:\d\d:\d\d\.\d+ \d+"), r"\1<time>"),  # torch's log: the process's number, too
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds|it/s|s/it)\b"), "<duration>"),
    (re.compile(r"'([^']*)': '?[^',}]*'?"), lambda pair: "<metric>" if TIMES.search(pair[1]) else pair[0]),
    (re.compile(r"(\w*(?:per_second|runtime)) *= *[\d:.]+"), r"\1 = <metric>"),
    (re.compile(r"(\bport |localhost:|127\.0\.0\.1:|\bPID:)\d+"), r"\1<number>"),
)
# Whole lines that come or not by how quick the machine is.
NOT_ALWAYS = re.compile(r"mtime may not be reliable on this filesystem")
# Folders of others' caches, and what the test put there itself.
NOT_WRITTEN = {"cache", "data", "model", "config.yaml", "__pycache__"}
WATCH = "seen.jsonl"


@dataclasses.dataclass
class Run:
    """What a command did. `watched` is what watch/sitecustomize.py noted down of each of its Pythons."""

    folder: Path
    returncode: int
    stdout: str
    stderr: str
    watched: list[dict[str, Any]]


def differences(stock: Run, hooked: Run, *, in_order: bool = True) -> list[str]:
    """Say how two runs differ, a text for each difference.

    Args:
        stock: the run without the hook.
        hooked: the run with it.
        in_order: whether the lines must come in the same order, which those of several processes need not.
    """
    if stock.returncode != hooked.returncode:
        last = "\n".join(hooked.stderr.splitlines()[-30:])
        return [f"exit code {stock.returncode}, hooked {hooked.returncode}:\n{last}"]
    found = []
    for stream in ("stdout", "stderr"):
        before, after = (lines(getattr(run, stream)) for run in (stock, hooked))
        if not in_order:
            before, after = sorted(before), sorted(after)
        if difference := diff(before, after):
            found.append(f"{stream}:\n{difference}")
    before, after = written(stock.folder), written(hooked.folder)
    found += [f"{name}: only {'stock' if name in before else 'hooked'}" for name in sorted({*before} ^ {*after})]
    for name in sorted({*before} & {*after}):
        if before[name].read_bytes() != after[name].read_bytes():
            found += [f"{name}: {text}" for text in explain(before[name], after[name])]
    return found


def lines(text: str) -> list[str]:
    for pattern, instead in IN_LINES:
        text = pattern.sub(instead, text)
    return [line.rstrip() for line in text.splitlines() if line.strip() and not NOT_ALWAYS.search(line)]


def diff(before: list[str], after: list[str]) -> str:
    return "\n".join(difflib.unified_diff(before, after, "stock", "hooked", n=0, lineterm=""))


def written(folder: Path) -> dict[str, Path]:
    """The files that a command wrote, by relative name."""
    files = (file for file in folder.rglob("*") if file.is_file())
    relative = ((file.relative_to(folder), file) for file in files)
    return {name.as_posix(): file for name, file in relative if not NOT_WRITTEN & set(name.parts)}


def explain(before: Path, after: Path) -> Iterator[str]:
    """Say how two files differ beside times."""
    if before.suffix in (".json", ".jsonl"):
        yield from explain_as(as_json, before, after)
    elif before.suffix in (".md", ".txt", ".log", ".yaml"):
        yield from explain_as(lambda file: lines(file.read_text(encoding="utf-8")), before, after)
    elif before.name == "training_args.bin":
        yield f"the bytes differ\n{diff(opened(before), opened(after))}"
    else:
        yield "the bytes differ"


def explain_as(read: Callable[[Path], list[str]], before: Path, after: Path) -> Iterator[str]:
    if difference := diff(read(before), read(after)):
        yield difference


def as_json(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    value = [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else json.loads(text)
    return json.dumps(without_times(value), indent=1).splitlines()


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        # True, False and None are no times, but options about them: skip_memory_metrics.
        kept = {name: one for name, one in value.items() if not TIMES.search(name) or isinstance(one, bool | None)}
        return {name: without_times(one) for name, one in kept.items()}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def opened(file: Path) -> list[str]:
    """The globals and values of a training_args.bin, as a Python where the hook is off reads them."""
    command = [sys.executable, str(Path(__file__).with_name("child_open.py")), str(file)]
    done = subprocess.run(command, env=clean_env(), capture_output=True, text=True, timeout=DEADLOCK)
    return done.stdout.splitlines() if done.returncode == 0 else ["cannot be opened", *done.stderr.splitlines()]
