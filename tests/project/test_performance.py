"""Counts, which no noise can touch; and docs/performance.md shows what docs/performance.json holds."""

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import preloaded
import pytest
from helpers import ROOT, run_child

sys.path.insert(0, str(ROOT / "tests" / "benchmarks"))

import page

AT_START = ["", "._bootstrap", ".activation", ".finder", ".switch", ".targets"]
SWAPS = "extras fields identity patched_class patching post_init representation signatures"
WITH_A_SWAP = [f"unsloth_hook.{name}" for name in SWAPS.split()]


def test_the_page_shows_what_was_measured() -> None:
    text, results = page.PAGE.read_text(encoding="utf-8"), json.loads(page.RESULTS.read_text(encoding="utf-8"))
    assert page.render(text, results) == text, "run: python tests/benchmarks --page"
    assert results["quick"] is False
    sections = set(re.findall(r"<!-- from performance\.json: (\w+) -->", text)) - {"machine"}
    assert sections == {row["section"] for row in results["rows"]}
    for plot in re.findall(r"\]\((performance-\w+\.svg)\)", text):
        assert (page.DOCS / plot).stat().st_size < 100_000


def test_what_is_not_reached_is_said_in_words() -> None:
    text, results = page.PAGE.read_text(encoding="utf-8"), json.loads(page.RESULTS.read_text(encoding="utf-8"))
    missed = {row["run"] for row in results["rows"] if page.reached(row) is False}
    assert not missed or "## Not reached" in text


def test_a_row_that_misses_its_figure_is_marked() -> None:
    row = {"section": "s", "what": "w", "against": "a", "unit": "ratio", "value": 1.2, "low": 1.1, "high": 1.3}
    row |= {"samples": 5, "reach": 1.03}
    assert "| w | a | 1.200 | 1.100 to 1.300 | 1.030: **not reached** |" in page.table({"rows": [row]}, "s")
    assert "1.030: reached" in page.table({"rows": [{**row, "value": 1.03}]}, "s")


def test_start_imports_six_modules_of_ours_and_no_other() -> None:
    script = "import json, sys; print(json.dumps(sorted(sys.modules)))"
    off, on = (set(json.loads(run_child(script, env={"UNSLOTH_HOOK": value}).stdout)) for value in ("0", "1"))
    assert on - off == {f"unsloth_hook{name}" for name in AT_START}
    assert not [name for name in off if "unsloth" in name]


@pytest.mark.parametrize(
    "run", [preloaded.run_child, pytest.param(run_child, marks=pytest.mark.whole)], ids=["fork", "process"]
)
def test_what_opens_a_checkpoint_imports_besides_only_what_a_swap_needs(run: Callable[..., Any]) -> None:
    done = run(
        """
        import sys

        def ours():
            return {name for name in sys.modules if "unsloth" in name.lower()}

        before = ours()
        import pickle, torch, trl.trainer.sft_config
        pickle.loads(pickle.dumps(trl.trainer.sft_config.SFTConfig(use_cpu=True, bf16=False)))
        print(len(before), sorted(ours() - before))
        """,
        env={"UNSLOTH_HOOK": "1"},
    )
    assert done.stdout == f"{len(AT_START)} {WITH_A_SWAP}\n"


def test_an_import_asks_our_finders_once_each_at_most() -> None:
    done = run_child(
        """
        import sys
        from unsloth_hook import activation, finder

        asked = []
        for cls in (finder.PostImportFinder, activation.AliasFinder):
            def counting(self, name, path=None, target=None, find_spec=cls.find_spec, cls=cls):
                asked.append((cls.__name__, name))
                return find_spec(self, name, path, target)
            cls.find_spec = counting

        import colorsys, wsgiref.util
        try:
            import no_module_of_this_name
        except ModuleNotFoundError:
            pass
        ours = ("colorsys", "wsgiref", "wsgiref.util", "no_module_of_this_name")
        print(sorted(each for each in asked if each[1] in ours))
        """,
        env={"UNSLOTH_HOOK": "1"},
    )
    front = [("PostImportFinder", name) for name in ("colorsys", "no_module_of_this_name", "wsgiref", "wsgiref.util")]
    assert done.stdout == f"{[('AliasFinder', 'no_module_of_this_name'), *front]}\n"
