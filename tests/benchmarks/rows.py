"""The rows: what is measured in each section, against what, and the figure to reach."""

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import helpers
import pairs
import processes
from processes import Command

Row = dict[str, Any]
SFT = helpers.ROOT / "tests" / "data" / "trl-1.16.0" / "trainer-sft_config.bin"


def row(
    section: str,
    what: str,
    against: str,
    ours: Sequence[float],
    theirs: Sequence[float],
    unit: str = "ratio",
    reach: float | None = None,
) -> Row:
    """One row: the paired ratio (or, with a unit of time, the paired difference) of two lists of seconds."""
    scale = {"ratio": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    values = pairs.ratios(ours, theirs) if unit == "ratio" else pairs.differences(ours, theirs)
    numbers = pairs.summary([value * scale for value in values])
    seconds = {"ours": statistics.median(ours), "theirs": statistics.median(theirs)}
    return {"section": section, "what": what, "against": against, "unit": unit, **numbers, **seconds, "reach": reach}


def single(section: str, what: str, values: Sequence[float], unit: str, reach: float | None = None) -> Row:
    """One row that is compared with nothing: seconds, or numbers that have another unit."""
    scale = {"ms": 1e3, "us": 1e6, "ns": 1e9}.get(unit, 1)
    numbers = pairs.summary([value * scale for value in values])
    return {"section": section, "what": what, "against": "", "unit": unit, **numbers, "reach": reach}


def start(quick: bool, unsloth: str) -> list[Row]:
    """Starting an interpreter, in environments that differ in one thing."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        bare = processes.environment(place / "bare")
        again = processes.environment(place / "again")
        hook = processes.environment(place / "hook", processes.put_hook)
        tool = {
            name: processes.environment(place / name, processes.put_distribution(name, *tops))
            for name, tops in {
                "setuptools": ("_distutils_hack", "distutils-precedence.pth"),
                "coverage": ("coverage", "a1_coverage.pth"),
                "wrapt": ("wrapt",),
            }.items()
        }
        libraries = [entry for entry in sys.path if entry.endswith("site-packages")]
        traced = processes.environment(place / "ddtrace", lambda site: None, *libraries)
        bootstrap = processes.home("ddtrace") / "bootstrap"
        silent = {"DD_INSTRUMENTATION_TELEMETRY_ENABLED": "0", "DD_REMOTE_CONFIGURATION_ENABLED": "0"}
        silent |= {"DD_TRACE_ENABLED": "0", "PYTHONPATH": str(bootstrap)}
        nothing = ["-c", "pass"]
        commands = {
            "no .pth": Command([bare, *nothing]),
            "no .pth, a second time (the noise)": Command([again, *nothing]),
            "ours, off": Command([hook, *nothing]),
            "ours, on": Command([hook, *nothing], {"UNSLOTH_HOOK": "1"}),
            "setuptools' distutils-precedence.pth": Command([tool["setuptools"], *nothing]),
            "coverage's .pth": Command([tool["coverage"], *nothing]),
            "import wrapt": Command([tool["wrapt"], "-c", "import wrapt"]),
            "ddtrace's sitecustomize": Command([traced, *nothing], silent),
        }
        slow = {name: commands[name] for name in ("no .pth", "import wrapt", "ddtrace's sitecustomize")}
        quickly = {name: command for name, command in commands.items() if name == "no .pth" or name not in slow}
        times = processes.starts_in_turns(quickly, 10 if quick else 300)
        slowly = processes.starts_in_turns(slow, 2 if quick else 5)
    reach = {"ours, on": 1.5}
    found = [
        row("start", name, "no .pth", times[name], times["no .pth"], "ms", reach.get(name))
        for name in quickly
        if name != "no .pth"
    ]
    noise, off = found[0], found[1]
    off["reach"] = max(abs(noise["low"]), abs(noise["high"]))  # a quarter of the bare starts differ by more
    found += [
        row("start", name, "no .pth", slowly[name], slowly["no .pth"], "ms") for name in slow if name != "no .pth"
    ]
    return found


def imports(quick: bool, unsloth: str) -> list[Row]:
    """An import that is none of TRL's: finders asked for one name, whole imports, and many names."""
    told = processes.child("child_finders.py", "10" if quick else "300")
    finders = told["finders"]
    rivals = [name for name in ("wrapt", "typeguard", "ddtrace") if name in finders]
    quickest = min(rivals, key=lambda name: statistics.median(finders[name]))
    found = [
        single("imports", f"find_spec: {name}", seconds, "ns", 120 if name == "unsloth_hook" else None)
        for name, seconds in finders.items()
    ]
    found.append(
        row(
            "imports",
            "find_spec: ours",
            f"the quickest ({quickest})",
            finders["unsloth_hook"],
            finders[quickest],
            reach=0.25,
        )
    )
    found.append(
        single("imports", "find_spec: ours, a name that begins with t or u", told["like ours"]["unsloth_hook"], "ns")
    )
    plain = told["imports"]["no hook"]
    found += [
        row("imports", f"a whole import (an empty file): {name}", "no hook", seconds, plain, "us")
        for name, seconds in told["imports"].items()
        if name != "no hook"
    ]
    found += [
        single("growth", f"an import, of {int(count):,}", [one / int(count) for one in seconds], "ns")
        for count, seconds in told["growth"].items()
    ]
    return found


def trl(quick: bool, unsloth: str) -> list[Row]:
    """TRL's classes with the hook and without."""
    rounds = "10" if quick else "30"
    told = processes.child("child_trl.py", rounds, "swaps", "displaced")
    # Where a process happens to have its objects in memory makes 4 per cent and more: the median is of many processes.
    uses = [processes.child("child_trl.py", rounds, "uses")["uses"] for _ in range(1 if quick else 15)]
    bounded = {"constructing": 1.03, "pickle.dumps": 1.03, "torch.save": 1.03, "copy.deepcopy": 1.03}
    found = []
    for name, (created, swapped) in told["swaps"].items():
        found.append(row("swap", name, "TRL's own creation", swapped, created, reach=1.0))
    for config, whats in uses[0].items():
        for what in whats:
            plain, ours = ([one for used in uses for one in used[config][what][side]] for side in (0, 1))
            found.append(row("use", f"{config}: {what}", "pristine", ours, plain, reach=bounded.get(what)))
    for count, both in told["displaced"].items():
        found.append(single("growth", f"pickling, with {int(count):,} displaced classes", both["pickling"], "us"))
        found.append(
            single("growth", f"registering one of {int(count):,} displaced classes", both["registering"], "us")
        )
    return found


def commands(quick: bool, unsloth: str) -> list[Row]:
    """Whole programs: importing TRL, the command line."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        libraries = [entry for entry in sys.path if entry.endswith("site-packages")]
        python = processes.environment(place / "hook", processes.put_hook, *libraries)
        many = _checkpoints(place / "many", "*/*.bin", 1_000)
        inspect = [python, "-m", "unsloth_hook", "inspect"]
        scan = [python, Path(__file__).with_name("child_files.py"), "scan"]
        paths = {"PYTHONPATH": str(Path(__file__).parent)}
        train = [python, "-c", "from trl import SFTConfig, SFTTrainer"]
        pair = {
            "--help": (
                Command([python, "-m", "unsloth_hook", "--help"]),
                "import typer, rich.console",
                Command([python, "-c", "import typer, rich.console"]),
                2.0,
            ),
            "inspect, one file, from cold": (
                Command([*inspect, SFT]),
                "import torch",
                Command([python, "-c", "import torch"]),
                1 / 3,
            ),
            "inspect, 1,000 files": (
                Command([python, "-c", QUIETLY, *inspect[1:], many]),
                "1,000 bare scans",
                Command([*scan, many], paths),
                2.0,
            ),
            "from trl import SFTConfig, SFTTrainer": (
                Command(train, {"UNSLOTH_HOOK": "1"}),
                "stock",
                Command(train, {"UNSLOTH_HOOK": "0"}),
                1.01,
            ),
        }
        found = []
        for what, (ours, name, theirs, reach) in pair.items():
            if quick and what.startswith("from trl"):
                continue
            rounds = 2 if quick else 12 if what.startswith("from trl") else 3
            times = processes.in_turns_by_pyperf({"ours": ours, "theirs": theirs}, rounds)
            found.append(row("programs", what, name, times["ours"], times["theirs"], reach=reach))
        found += [
            each for count in (1, 10, 100, 1_000, 10_000)[: 3 if quick else 5] for each in _many(place, python, count)
        ]
    return found


def _checkpoints(folder: Path, pattern: str, count: int) -> Path:
    """Fill a folder with so many checkpoints, by turns those of the tests' data that the pattern names."""
    files = sorted((helpers.ROOT / "tests" / "data").glob(pattern))
    for number in range(count):
        (folder / f"run-{number}").mkdir(parents=True)
        (folder / f"run-{number}" / "training_args.bin").write_bytes(files[number % len(files)].read_bytes())
    return folder


def _many(place: Path, python: Path, count: int) -> list[Row]:
    """So many files in one call: inspected, converted, and opened by torch."""
    folder = _checkpoints(place / f"many-{count}", "unsloth-202[56].[79].1/*.bin", count)  # these have stray names
    script = Path(__file__).with_name("child_files.py")
    hook = [python, "-c", QUIETLY, "-m", "unsloth_hook"]
    found = []
    for what, argv in (
        ("inspect", [*hook, "inspect", folder]),
        ("convert", [*hook, "convert", folder, "-o", place / f"converted-{count}"]),
        ("torch.load of what was converted", [python, script, "load", place / f"converted-{count}"]),
    ):
        seconds, memory = processes.time_and_memory(Command(argv, {"PYTHONPATH": str(script.parent)}))
        found.append(single("growth", f"{what}, {count:,} files", [count / seconds], "files a second"))
        found.append(single("growth", f"{what}, memory for {count:,} files", [memory], "MiB"))
    return found


# `inspect` ends with the code of its verdict, 1 or 2 for these files; and its table goes nowhere.
QUIETLY = (
    "import subprocess, sys; "
    "sys.exit(subprocess.run([sys.executable, *sys.argv[1:]], stdout=subprocess.DEVNULL).returncode not in (0, 1, 2))"
)


def files(quick: bool, unsloth: str) -> list[Row]:
    """Reading files in one process."""
    told = processes.child("child_files.py", "8" if quick else "30")
    found = []
    for key, what, against, reach in (
        ("same", "inspect_checkpoint, a file of known content", "a bare scan", 2.0),
        ("others", f"inspect_checkpoint, {told['files']} files, each as if new", "a bare scan", 2.0),
        ("opening", "load_training_args", "torch.load", None),
        ("converting", "convert_checkpoint, with its check in a child", "torch.load", None),
    ):
        theirs, ours = told[key]
        found.append(row("files", what, against, ours, theirs, reach=reach))
    return found


def generating(quick: bool, unsloth: str) -> list[Row]:
    """Against what the real Unsloth takes to write, compile and bind a trainer and its config."""
    if not unsloth:
        return []
    with tempfile.TemporaryDirectory() as cache:
        env = {"UNSLOTH_ALLOW_CPU": "1", "UNSLOTH_COMPILE_LOCATION": cache}
        generated = processes.child("child_unsloth.py", "generating", python=unsloth, env=env)
        swapped = processes.child("child_unsloth.py", "swapping", python=unsloth, env=env)
    ours, theirs = statistics.median(swapped), statistics.median(generated)
    return [row("swap", "one config", f"Unsloth's generating a trainer ({theirs:.2g} s)", [ours], [theirs])]


SECTIONS: dict[str, Callable[[bool, str], list[Row]]] = {
    "start": start,
    "imports": imports,
    "trl": trl,
    "programs": commands,
    "files": files,
    "unsloth": generating,
}
