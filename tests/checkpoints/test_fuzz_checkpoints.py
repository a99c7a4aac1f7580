"""Mutations of the real files: no crash, no hang, and nothing imported that is not on the list.

1,000 of them, 20,000 in CI, and any number by the variable ``FUZZ_EXAMPLES`` with ``-m whole``.
"""

import os
from pathlib import Path
from typing import Any

import helpers
import pytest
from preloaded import run_child

SCRIPT = """
import sys
import child_fuzz
child_fuzz.main(sys.argv[1], int(sys.argv[2]))
"""
HERE = Path(__file__).resolve().parent
FEW, MANY = 1_000, pytest.param(int(os.environ.get("FUZZ_EXAMPLES", "20000")), marks=pytest.mark.whole)


def mutate(what: str, examples: int, a_second: float) -> dict[str, int]:
    """Try mutations in a process of its own, and return how many had each outcome."""
    path = os.pathsep.join([str(HERE), str(helpers.ROOT / "tests" / "support")])
    seen: dict[str, Any] = run_child(SCRIPT, args=[what, str(examples)], env={"PYTHONPATH": path}).json()
    outcomes: dict[str, int] = seen["outcomes"]
    assert sum(outcomes.values()) >= examples
    assert "crashed" not in outcomes
    assert seen["events"] == []
    allowed = {"torch", "collections", "trl", "transformers", "accelerate"}
    assert {name.partition(".")[0] for name in seen["imported"]} <= allowed, seen["imported"]
    assert seen["slowest"] < 2 * a_second
    return outcomes


@pytest.mark.parametrize("examples", [FEW, MANY])
def test_mutated_pickles(examples: int, a_second: float) -> None:
    outcomes = mutate("pickles", examples * 9 // 10, a_second)
    # The mutations are worth something: some still open, some are caught, some are broken.
    for outcome in ("opened, portable", "opened, not portable", "unsafe", "unreadable"):
        assert outcomes.get(outcome, 0) > examples // 200, outcomes


@pytest.mark.parametrize("examples", [FEW, MANY])
def test_mutated_archives(examples: int, a_second: float) -> None:
    outcomes = mutate("archives", examples - examples * 9 // 10, a_second)
    assert outcomes.get("unreadable", 0) > examples // 200, outcomes
