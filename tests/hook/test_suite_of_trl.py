"""Other people's tests under the hook: what TRL documents of its parser, command line and configs."""

import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import pytest
import stock
from helpers import run_child

SUITE = Path(__file__).with_name("suite_of_trl.py")


def outcomes(folder: Path, hook: str) -> dict[str, str]:
    """Run the suite in one process: what became of each test."""
    report = folder / f"{hook}.xml"
    arguments = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--noconftest",
        f"--junit-xml={report}",
        str(SUITE),
    ]
    env = {"UNSLOTH_HOOK": hook, "CI": None, "TRL_EXPERIMENTAL_SILENCE": "1"}
    done = run_child(args=arguments, env=env, check=False, cwd=folder)
    assert report.exists(), done.stdout + done.stderr
    cases = xml.etree.ElementTree.parse(report).iter("testcase")
    return {
        case.attrib["name"]: ", ".join(f"{part.tag}: {part.attrib.get('message')}" for part in case) for case in cases
    }


@pytest.mark.whole
def test_each_test_has_the_same_outcome(tmp_path: Path) -> None:
    seen: dict[str, Any] = stock.at_once(
        stock=lambda: outcomes(tmp_path, "0"),
        hooked=lambda: outcomes(tmp_path, "1"),
    )
    assert len(seen["stock"]) >= 70
    assert seen["hooked"] == seen["stock"]
    assert not {name: what for name, what in seen["stock"].items() if what}
