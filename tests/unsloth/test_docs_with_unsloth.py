"""What the docs show of the real Unsloth before August 2026, run as it stands there. The later releases do not fail.

On a machine without a GPU a `sitecustomize` answers for one while Unsloth is imported, as `probes.one_card` does.
"""

import os
import subprocess
from pathlib import Path

import pages
import pytest
from helpers import ROOT, clean_env, hooked_python

pytestmark = pytest.mark.unsloth

PAGE = ROOT / "docs" / "living-with-unsloth.md"
CARD = """
import sys

class Card:
    def find_spec(self, name, path=None, target=None):
        if name == "unsloth":
            sys.meta_path.remove(self)
            import probes
            self.card = probes.one_card()
            self.card.__enter__()

sys.card = Card()
sys.meta_path.insert(0, sys.card)
"""


def test_the_fault_and_its_end_are_as_shown(tmp_path: Path) -> None:
    fences = pages.fences(PAGE)
    for fence in fences:
        if "title" in fence.attributes:
            (tmp_path / fence.attributes["title"]).write_text(fence.text, encoding="utf-8")
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "sitecustomize.py").write_text(CARD, encoding="utf-8")
    env = clean_env(
        PATH=os.pathsep.join([str(hooked_python().parent), os.environ["PATH"]]),
        PYTHONPATH=os.pathsep.join([str(tmp_path / "card"), str(Path(__file__).parent)]),
    )
    (shown,) = [fence.text for fence in fences if fence.attributes.get("not_run") == "unsloth"]
    for command, output in pages.sessions(shown):
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True)
        printed = done.stdout + (done.stderr if done.returncode else "")
        assert pages.matches(output, printed), f"{command}\n--- shown\n{output}\n--- printed\n{printed}\n{done.stderr}"
