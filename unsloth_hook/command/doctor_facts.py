"""The facts about a Python, as a freshly started one has them. `doctor_checks` judges; nothing is judged here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple
from urllib.parse import urlparse
from urllib.request import url2pathname

import importlib_metadata

from .. import switch

PTH, START = "unsloth_hook.pth", "unsloth_hook.start"
ENABLED = "unsloth_hook_enabled.pth"
SITECUSTOMIZE = "sitecustomize.py"
HOOK = "unsloth-hook"
DISTRIBUTIONS = ("torch", "transformers", "trl", "accelerate", "unsloth", HOOK)

# How far the working directory is searched.
MOST_ENTRIES, DEEPEST, MOST_CHECKPOINTS, LARGEST_CHECKPOINT = 5000, 3, 20, 1 << 20
NOT_SEARCHED = {"node_modules", "site-packages", "dist-packages", "__pycache__"}
CACHE = "unsloth_compiled_cache"
UNSAFE = "unsafe"  # as inspection says


class NoAnswer(Exception):
    """The Python in question cannot be started; the text says what it answered."""


class StartFile(NamedTuple):
    """A start-up file: is it ours, does Python read it, and in a few words what became of it."""

    name: str
    path: str
    ours: bool
    read: bool
    fate: str

    @property
    def ran(self) -> bool:
        """Did it run, whatever it decided?"""
        return self.fate.startswith("ran")


class Installed(NamedTuple):
    """An installed distribution. ``editable`` is the folder of an editable install, "" otherwise."""

    name: str
    version: str
    places: tuple[str, ...]
    editable: str = ""


@dataclass(frozen=True)
class Facts:
    """Everything that `doctor_checks` looks at."""

    command: tuple[str, ...]
    python: dict[str, Any]
    without_options: dict[str, Any]  # the same Python without its options; the same dict where it has none
    stderr: str
    installed: dict[str, Installed]
    files: tuple[StartFile, ...]
    copies: tuple[str, ...]  # folders that have a package unsloth_hook, as imports would search them
    dangling: tuple[tuple[str, str], ...] = ()  # (.pth file of an editable install, folder that is gone)
    checkpoints: tuple[tuple[str, str], ...] = ()  # (training_args.bin, first stray name or reason not to open it)
    caches: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        """Is the hook on in that Python?"""
        return _is_active(self.python)

    @property
    def route(self) -> str:
        """The route that switched it on, "" while it is off."""
        return ((self.python["hook"]["status"] or {}).get("route") or "") if self.active else ""

    @property
    def options_switch_it_off(self) -> bool:
        """Is it off, and would be on without this Python's options (-S, -I, -E)?"""
        return not self.active and _is_active(self.without_options)

    @property
    def value(self) -> str:
        """UNSLOTH_HOOK, as the hook reads it."""
        return str(self.python["variables"].get("UNSLOTH_HOOK", "")).strip().lower()


def _is_active(python: dict[str, Any]) -> bool:
    return any(name.startswith("unsloth_hook.") for name in python["meta_path"])


def own_command() -> list[str]:
    """This Python with the options it was started with, as far as they decide what start-up code runs."""
    flags = sys.flags
    options = ["-I"] if flags.isolated else ["-E"] * flags.ignore_environment + ["-s"] * flags.no_user_site
    return [sys.executable, *(["-S"] * flags.no_site), *options]


def examine(command: Sequence[str] = (), cwd: str = ".") -> Facts:
    """Start a Python in the environment of this process, ask it what it is like, and look at the files around it.

    Args:
        command: an interpreter and its options, as they would be typed; by default this one, with its own options.
        cwd: the folder to start it in and to search for stray files.

    Returns:
        The `Facts`. torch, transformers and TRL are not imported, here or there.

    Raises:
        NoAnswer: that Python cannot be started or does not answer.
    """
    command = list(command) or own_command()
    python, stderr = _ask(command, cwd)
    plain = _ask(_without_options(command), cwd)[0] if python["flags"] else python
    path = python["path"]
    checkpoints, caches = _search(cwd)
    return Facts(
        command=tuple(command),
        python=python,
        without_options=plain,
        stderr=stderr,
        installed={item.name: item for name in DISTRIBUTIONS for item in _installed(name, path)},
        files=(*_start_files(python, plain), *_sitecustomizes(python)),
        copies=tuple(_unique(folder for folder in path if _has(folder, "unsloth_hook", "__init__.py"))),
        dangling=tuple(_dangling(python["site_folders"])),
        checkpoints=checkpoints,
        caches=caches,
        read_only=tuple(
            folder for folder in python["site_folders"][:1] if os.path.isdir(folder) and not os.access(folder, os.W_OK)
        ),
    )


def _without_options(command: list[str]) -> list[str]:
    words = list(command)
    while len(words) > 1 and words[-1].startswith("-"):
        words.pop()
    return words


def _ask(command: list[str], cwd: str) -> tuple[dict[str, Any], str]:
    source = resources.files("unsloth_hook").joinpath("command/doctor_probe.py").read_text(encoding="utf-8")
    shown = " ".join(command)
    try:
        done = subprocess.run(
            [*command, "-c", source],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAnswer(f"{shown} cannot be started: {error}") from None
    parts = done.stdout.split("\x1e")
    if len(parts) < 3:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise NoAnswer(f"{shown} does not answer as a Python does (exit code {done.returncode}): {last}")
    return dict(json.loads(parts[-2])), done.stderr.strip()


def _has(*parts: str) -> bool:
    return os.path.isfile(os.path.join(*parts))


def _unique(paths: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(os.path.realpath(path) for path in paths))


def _installed(name: str, path: list[str]) -> Iterator[Installed]:
    found = list(importlib_metadata.distributions(name=name, path=path))
    if found:
        places = tuple(dict.fromkeys(str(each.locate_file("")) for each in found))
        yield Installed(name, found[0].version or "", places, _editable_folder(found[0]))


def _editable_folder(distribution: Any) -> str:
    try:  # PEP 610
        url = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        return ""
    if not url.get("dir_info", {}).get("editable"):
        return ""
    return url2pathname(urlparse(url.get("url", "")).path)


def _start_files(python: dict[str, Any], plain: dict[str, Any]) -> Iterator[StartFile]:
    """Our own files, wherever Python or a plain Python would look for modules."""
    read_in = {os.path.realpath(folder) for folder in python["site_folders"]}
    folders = _unique(iter([*plain["site_folders"], *python["path"], *plain["path"]]))
    for name, route in ((PTH, "env"), (START, "env"), (ENABLED, "enable")):
        for folder in folders:
            if _has(folder, name):
                read = folder in read_in and not (name == START and _before_start_files(python))
                yield StartFile(name, os.path.join(folder, name), True, read, _fate(python, route, name, read))


def _sitecustomizes(python: dict[str, Any]) -> Iterator[StartFile]:
    """Each ``sitecustomize.py`` in the order of the search, then those on a PYTHONPATH that is ignored."""
    searched = _unique(iter(python["path"]))
    last = os.path.realpath(python["sitecustomize"] or "")
    first = True
    for folder in _unique(iter([*searched, *filter(None, python["pythonpath"].split(os.pathsep))])):
        path = os.path.join(folder, SITECUSTOMIZE)
        if not os.path.isfile(path):
            continue
        ours, read = is_our_sitecustomize(path), folder in searched and "-S" not in python["flags"]
        ran = read and (first or path == last or (ours and bool({"sitecustomize", "run"} & {*python["hook"]["asked"]})))
        yield StartFile(SITECUSTOMIZE, path, ours, read, "ran" if ran else "did not run" if read else "not read")
        first = first and not read


def _before_start_files(python: dict[str, Any]) -> bool:
    return tuple(int(number) for number in python["version"].split(".")[:2]) < (3, 15)


def _fate(python: dict[str, Any], route: str, name: str, read: bool) -> str:
    if not read:
        if "-S" in python["flags"]:
            return "not read: -S"
        if name == START and _before_start_files(python):
            return "not read before Python 3.15"
        return "not read in this folder"
    if route in python["hook"]["asked"]:
        return "ran"
    value = python["variables"].get("UNSLOTH_HOOK", "").strip().lower()
    if value in switch.OFF or (value not in switch.ON and bool(value) == (route == "enable")):
        return "ran, and left the hook off"
    return "failed"


def is_our_sitecustomize(path: str) -> bool:
    """Does this ``sitecustomize.py`` switch the hook on?"""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return "unsloth_hook" in stream.read(1 << 16)
    except OSError:
        return False


def _dangling(folders: list[str]) -> Iterator[tuple[str, str]]:
    """The folders that ``.pth`` files of editable installs name and that are gone."""
    for folder in folders:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if not re.match(r"(?:__editable__|_+|easy-install).*\.pth$", name):
                continue
            path = os.path.join(folder, name)
            try:
                with open(path, encoding="utf-8", errors="replace") as stream:
                    lines = stream.read(1 << 16).splitlines()
            except OSError:
                continue
            for line in lines:
                if os.path.isabs(line) and not os.path.exists(line):
                    yield path, line


def _search(cwd: str) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Stray checkpoints and compiled caches in a folder, looked for within the limits above."""
    files: list[str] = []
    caches: list[str] = []
    left, todo = MOST_ENTRIES, [(cwd, 0)]
    while todo and left > 0:
        folder, depth = todo.pop(0)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries[:left]:
            if entry.name == "training_args.bin" and entry.is_file():
                files.append(entry.path)
            elif re.fullmatch(r"Unsloth\w+Trainer\.py", entry.name) and folder == cwd:
                caches.append(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                if entry.name == CACHE:
                    caches.append(entry.path)
                elif depth < DEEPEST and not entry.name.startswith(".") and entry.name not in NOT_SEARCHED:
                    todo.append((entry.path, depth + 1))
        left -= len(entries)
    judged = ((path, _trouble(path)) for path in files[:MOST_CHECKPOINTS])
    return tuple((path, trouble) for path, trouble in judged if trouble), tuple(caches)


def _trouble(path: str) -> str:
    from ..checkpoints.errors import CheckpointError
    from ..checkpoints.inspection import inspect_checkpoint

    try:
        if os.path.getsize(path) > LARGEST_CHECKPOINT:
            return ""
        found = inspect_checkpoint(path)
    except (CheckpointError, OSError):
        return ""
    if found.verdict == UNSAFE:
        return UNSAFE
    return next((each.name for each in found.globals if each.verdict == "stray"), "")
