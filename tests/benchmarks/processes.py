"""Whole processes, and the environments in which they start."""

import compileall
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import helpers
import pyperf


class Command(NamedTuple):
    """A program with arguments, and the variables that it gets besides a clean environment."""

    argv: Sequence[str | Path]
    env: Mapping[str, str] = {}


def starts_in_turns(commands: Mapping[str, Command], rounds: int) -> dict[str, list[float]]:
    """Start programs in turns: seconds of processor time (user and system) by name, one number a round.

    For short programs: `in_turns_by_pyperf` starts others between two of them, which would part the pairs. A start
    waits for nothing but the processor, and what other programs take of that is not in this time.
    """
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    ready = {name: ([*map(str, argv)], helpers.clean_env(**env)) for name, (argv, env) in commands.items()}
    for turn in range(rounds + 1):
        for name in list(ready) if turn % 2 else reversed(ready):
            argv, env = ready[name]
            _, status, used = os.wait4(os.posix_spawn(argv[0], argv, env), 0)
            if status:
                raise RuntimeError(f"{argv} ended with status {status}")
            if turn:  # the first round warms the caches
                seconds[name].append(used.ru_utime + used.ru_stime)
    return seconds


def in_turns_by_pyperf(commands: Mapping[str, Command], rounds: int, values: int = 1) -> dict[str, list[float]]:
    """Run programs in turns with ``pyperf command``: seconds by name, the median of `values` runs for each round."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for name in list(commands) if turn % 2 == 0 else reversed(commands):
                argv, env = commands[name]
                file = Path(folder, f"{name}-{turn}.json".replace(" ", "-").replace("/", "-"))
                options = ["--processes=1", f"--warmups={int(turn == 0)}", f"--values={values}", "--loops=1", "--quiet"]
                whole = helpers.clean_env(**env)
                subprocess.run(
                    [sys.executable, "-m", "pyperf", "command", *options, f"--inherit-environ={','.join(whole)}"]
                    + ["-o", str(file), "--", *map(str, argv)],
                    env=whole,
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
                seconds[name].append(pyperf.Benchmark.load(str(file)).median())
    return seconds


def time_and_memory(command: Command) -> tuple[float, float]:
    """The seconds that a program took, and the most memory that it or a process of its had, in MiB."""
    started = pyperf.perf_counter()
    child = os.posix_spawn(str(command.argv[0]), [*map(str, command.argv)], helpers.clean_env(**command.env))
    _, status, used = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"{command.argv} ended with status {status}")
    return pyperf.perf_counter() - started, used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def child(script: str, *args: str, python: str = sys.executable, env: Mapping[str, str] | None = None) -> Any:
    """Run a script of this folder, which prints JSON last, and return that."""
    file = Path(__file__).with_name(script)
    paths = os.pathsep.join(map(str, (helpers.ROOT, file.parent, helpers.ROOT / "tests" / "support")))
    whole = helpers.clean_env(PYTHONPATH=paths, TRL_EXPERIMENTAL_SILENCE="1", **dict(env or {}))
    done = subprocess.run([python, str(file), *args], env=whole, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def environment(folder: Path, fill: Callable[[Path], None] = lambda site: None, *paths: str | Path) -> Path:
    """Make a virtual environment that has what `fill` puts into its site-packages; return its ``python``."""
    python = helpers.make_venv(folder, *paths)
    site = helpers.site_packages(python)
    if not paths:
        (site / "_paths.pth").unlink()
    fill(site)
    compileall.compile_dir(site, quiet=2)
    return python


def put_hook(site: Path) -> None:
    """Copy the package and its start-up files into a folder, as its wheel would."""
    shutil.copytree(helpers.PACKAGE, site / "unsloth_hook", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("unsloth_hook.pth", "unsloth_hook.start"):
        shutil.move(site / "unsloth_hook" / name, site / name)


def put_distribution(name: str, *tops: str) -> Callable[[Path], None]:
    """Something that links top-level files and folders of an installed distribution into a folder."""

    def fill(site: Path) -> None:
        distribution = importlib.metadata.distribution(name)
        for top in tops:
            os.symlink(distribution.locate_file(top), site / top)

    return fill


def home(package: str) -> Path:
    """The folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])
