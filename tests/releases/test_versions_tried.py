"""What was tried is declared once, in `releases/versions_tried.py`: the rest reads it, and it is up to date."""

import json
import os
import re
import subprocess
import sys

import pytest
import release_tables
from helpers import DEADLOCK, ROOT

from unsloth_hook.releases import history, versions_tried

SOURCE = ROOT / "unsloth_hook" / "releases" / "versions_tried.py"


def newest_on_the_index(package: str) -> str:
    """Ask pip's index; where there is none, say so (in CI, where nothing is skipped, that is a failure)."""
    command = [sys.executable, "-m", "pip", "index", "versions", package]
    environment = {**os.environ, "PIP_QUIET": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLOCK)
    found = re.search(rf"^{package} \(([^)]+)\)$", done.stdout, re.MULTILINE)
    if not found:
        pytest.skip(f"no package index that answers: {done.stderr.strip().splitlines()[-1:]}")
    return found[1]


def advice(package: str, newest: str) -> str:
    """Which line to change, and how to see whether it may be."""
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    number = next(number for number, line in enumerate(lines, 1) if f'"{package}": ' in line)
    return (
        f"{package} {newest} is newer than all that was tried. Try it (nox -f tests/noxfile.py -s release -- TRL "
        f"TRANSFORMERS), then change this line: unsloth_hook/releases/versions_tried.py:"
        f"{number}: {lines[number - 1].strip()}"
    )


@pytest.mark.parametrize("package", ["trl", "transformers"])
def test_the_newest_release_on_the_index_was_tried(package: str) -> None:
    newest = newest_on_the_index(package)
    assert versions_tried.compare(package, newest) != "newer", advice(package, newest)


def test_the_line_to_change_is_the_one_that_holds_the_newest() -> None:
    for package in ("trl", "transformers"):
        text = advice(package, "999.0")
        assert f'"{package}": "{versions_tried.tried(package)[1]}"' in text
        assert str(versions_tried.TRIED[0]["trl"]) in text


def test_the_first_line_is_the_environment_of_the_constraints() -> None:
    text = (ROOT / "tests" / "constraints.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)", text, re.MULTILINE))
    newest = versions_tried.TRIED[0]
    assert {name: pinned[name] for name in newest if name != "python"} == {
        name: version for name, version in newest.items() if name != "python"
    }


def test_the_environments_with_unsloth_are_those_of_its_tests() -> None:
    folders = {folder.name for folder in (ROOT / "tests" / "unsloth" / "envs").iterdir()}
    assert {each["unsloth"] for each in versions_tried.TRIED if "unsloth" in each} == folders


def test_the_releases_that_were_asked_for_have_a_cell() -> None:
    asked = {"0.18.2": "4.52.4", "0.22.2": "4.56.2", "0.24.0": "4.57.6", "0.27.2": "4.57.6", "0.29.1": "4.57.6"}
    asked |= {
        "1.0.0": "5.5.0",
        "1.8.0": "5.5.0",
        versions_tried.tried("trl")[1]: versions_tried.tried("transformers")[1],
    }
    assert dict(versions_tried.cells()) == asked


def test_the_cells_run_every_file_with_contract_tests() -> None:
    text = (ROOT / "tests" / "noxfile.py").read_text(encoding="utf-8")
    listed = re.findall(r'"(tests/\w+/test_\w+\.py)"', text.partition("CONTRACTS = (")[2].partition(")\n")[0])
    files = (ROOT / "tests").glob("*/test_*.py")
    marked = {file for file in files if "\n@contract\n" in file.read_text(encoding="utf-8")}
    assert sorted(listed) == sorted(file.relative_to(ROOT).as_posix() for file in marked)


def test_the_docs_have_the_tables_as_they_are_made() -> None:
    recorded = json.loads(release_tables.DATA.read_text(encoding="utf-8"))
    page = release_tables.PAGE.read_text(encoding="utf-8")
    assert page == release_tables.with_tables(page, recorded), "run python tests/releases/release_tables.py"
    for trl, transformers in versions_tried.cells():
        assert f"| {trl} | {transformers} | {len(recorded[trl])} |" in page


def test_a_table_that_is_stale_is_seen() -> None:
    recorded = json.loads(release_tables.DATA.read_text(encoding="utf-8"))
    page = release_tables.PAGE.read_text(encoding="utf-8")
    recorded["0.18.2"]["trl.trainer.sft_config.SFTConfig"] = "left"
    assert page != release_tables.with_tables(page, recorded)
    with pytest.raises(ValueError, match="lacks the lines"):
        release_tables.with_tables("", recorded)


def test_what_is_on_record_agrees_with_the_history_of_homes() -> None:
    """`history.py` was read from the wheels, the record was made by importing: two witnesses."""
    recorded = json.loads(release_tables.DATA.read_text(encoding="utf-8"))
    for trl, states in recorded.items():
        this = versions_tried.release(trl)[:2]
        homes = {
            f"{row.module}.{row.name}"
            for row in history.HISTORY
            if versions_tried.release(row.first) <= this
            and (row.last is None or this <= versions_tried.release(row.last))
            if row.name.endswith("Config") and row.module.endswith("_config") and row.name != "BaseConfig"
        }
        assert {name for name, state in states.items()} == homes, f"TRL {trl}"
