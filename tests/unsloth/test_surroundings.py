"""Stale and hostile surroundings: the hook writes nothing there and changes no outcome."""

from pathlib import Path
from typing import Any

import observe
import probes
import pytest
from observe import TRAINERS, Observer

pytestmark = pytest.mark.unsloth
CASES = ("stale", "read-only", "deleted")
each_case = pytest.mark.parametrize("case", CASES)
IN_CWD: dict[str, Any] = {"UNSLOTH_COMPILE_LOCATION": None}  # Unsloth's default is a folder in the working directory


def surroundings(observer: Observer, case: str) -> dict[str, observe.Run]:
    written = observer.order("unsloth")["stock"].folder / "cache" if case == "stale" else Path()

    def prepare(folder: Path) -> None:
        (folder / "tmp").mkdir()
        if case == "stale":
            leave_stale_cache(written, folder / "cwd" / "unsloth_compiled_cache")

    def env(folder: Path) -> dict[str, Any]:
        return {"TMPDIR": str(folder / "tmp"), **({} if case == "deleted" else IN_CWD)}

    return observer.pair(case, "child_surroundings.py", [case], prepare=prepare, env=env)


def leave_stale_cache(written: Path, folder: Path) -> None:
    """What another release left: its version numbers in the header, and sources that this one cannot use."""
    folder.mkdir()
    files = sorted(written.glob("Unsloth*Trainer.py"))
    assert len(files) == TRAINERS
    for file in files:
        header, mark, _ = file.read_text(encoding="utf-8").partition("__UNSLOTH_VERSIONING__")
        assert mark and probes.RELEASE in header
        older = header.replace(probes.RELEASE, "2025.3.1")
        stale = f'{older}{mark}\n"""\nraise RuntimeError("a stale file was used")\n'
        (folder / file.name).write_text(stale, encoding="utf-8")


@each_case
def test_the_outcome_is_the_same(observer: Observer, case: str) -> None:
    stock, hooked = (run.facts for run in surroundings(observer, case).values())
    for what in ("trainers", "modules", "places", "bindings"):
        assert hooked[what] == stock[what]


@each_case
def test_what_unsloth_does_there_is_what_the_test_is_about(observer: Observer, case: str) -> None:
    facts = surroundings(observer, case)["stock"].facts
    assert len(facts["trainers"]) == TRAINERS
    places = set(facts["places"].values())
    if case == "stale":
        assert places == {"cwd"}
    elif case == "read-only":
        assert places == {"temporary"}
    else:
        assert "cache" in places


@each_case
def test_the_hook_writes_nothing(observer: Observer, case: str) -> None:
    stock, hooked = surroundings(observer, case).values()
    for folder in ("cwd", "cache", "tmp"):
        names = [sorted(Path(name).name for name in run.files(folder)) for run in (stock, hooked)]
        assert names[0] == names[1]
        assert not [name for name in names[1] if "hook" in name]
    if case == "stale":
        assert hooked.files("cwd") == stock.files("cwd")


@each_case
def test_the_same_is_printed(observer: Observer, case: str) -> None:
    stock, hooked = surroundings(observer, case).values()
    assert hooked.lines() == stock.lines()


@each_case
def test_all_configs_pickle_under_trls_names(observer: Observer, case: str) -> None:
    for label, pickled in surroundings(observer, case)["hooked"].facts["pickles"].items():
        assert "error" not in pickled, (label, pickled)
        assert not [name for name in pickled["globals"] if "unsloth" in name.lower()], label


def test_two_processes_at_once_come_to_the_same(observer: Observer) -> None:
    for run in surroundings(observer, "stale").values():
        second = observe.Run(run.folder / "second", run.returncode, "", "")
        assert second.facts["trainers"] == run.facts["trainers"]
        assert second.facts["bindings"] == run.facts["bindings"]
        assert {name: seen.get("globals") for name, seen in second.facts["pickles"].items()} == {
            name: seen.get("globals") for name, seen in run.facts["pickles"].items()
        }
