"""`pytest -p unsloth_hook.pytest_plugin`: on before any conftest, in xdist's workers too (issue 5, item 5)."""

from pathlib import Path
from typing import Any

import pytest
import stand_in
from helpers import run_child

CONFTEST = "from trl import SFTConfig as Early\n"
TEST = """
import os
import unsloth_hook
from conftest import Early

def test_the_class_that_conftest_took_is_patched():
    assert unsloth_hook.is_patched(Early)
    assert unsloth_hook.status()["route"] == "pytest"
    assert not unsloth_hook.status()["late"]
    assert "PYTEST_XDIST_WORKER" in os.environ
"""
ROUTE = "import unsloth_hook\n\ndef test_it_is_on():\n    assert unsloth_hook.status()['active']\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """With a stand-in for TRL: what is tested is when the plugin comes, and the real one takes seconds."""
    stand_in.make(tmp_path, {"trl/trainer/sft_config.py": stand_in.CONFIG.format(name="SFTConfig")})
    (tmp_path / "trl" / "__init__.py").write_text("from .trainer.sft_config import SFTConfig\n")
    (tmp_path / "test_it.py").write_text(ROUTE)
    return tmp_path


def run_pytest(project: Path, *args: str, check: bool = True, **env: str | None) -> Any:
    command = ["-m", "pytest", "-p", "no:cacheprovider", *args]
    done = run_child(args=command, cwd=project, check=False, env=env)
    assert (done.returncode == 0) == check, done.stdout + done.stderr
    return done


def test_it_is_early_enough_for_a_conftest_that_imports_trl(project: Path) -> None:
    (project / "conftest.py").write_text(CONFTEST)
    (project / "test_it.py").write_text(TEST)
    shown = run_pytest(project, "-p", "unsloth_hook.pytest_plugin", "-n", "1").stdout
    assert "\nunsloth_hook: on (route pytest)\n" in shown


def test_the_header_says_how_it_is(project: Path) -> None:
    plugin = ["-p", "unsloth_hook.pytest_plugin"]
    assert "\nunsloth_hook: off, UNSLOTH_HOOK=0\n" in run_pytest(project, *plugin, check=False, UNSLOTH_HOOK="0").stdout
    assert "\nunsloth_hook: on (route env)\n" in run_pytest(project, *plugin, UNSLOTH_HOOK="1").stdout
    assert "unsloth_hook: " not in run_pytest(project, check=False).stdout


def test_a_conftest_can_name_it_and_is_told_when_it_was_late(project: Path) -> None:
    (project / "conftest.py").write_text(
        "import trl.trainer.sft_config\npytest_plugins = ['unsloth_hook.pytest_plugin']\n"
    )
    assert "\nunsloth_hook: on (route pytest); TRL was imported before" in run_pytest(project).stdout


def test_a_program_that_calls_pytest_is_left_as_it_was(project: Path) -> None:
    script = f"""
        import pytest, sys
        before = list(sys.meta_path)
        assert pytest.main(["-q", "-p", "no:cacheprovider", "-p", "unsloth_hook.pytest_plugin", {str(project)!r}]) == 0
        assert [f for f in sys.meta_path if type(f).__module__.startswith("unsloth_hook")] == []
    """
    run_child(script)
