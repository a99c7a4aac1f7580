"""What the other tests rely on: CI skips nothing, what is shared fails once, state is put back, a child says why."""

from pathlib import Path

import pytest
from helpers import run_child

pytest_plugins = ["pytester"]

MODULE = """
    import pytest

    def test_missing():
        pytest.skip("no such library")

    def test_platform():
        pytest.skip("platform: no fork on Windows")

    @pytest.mark.xfail(reason="known", strict=True)
    def test_known():
        assert False
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # each would be imported anew for each test
    here = Path(__file__).resolve().parents[1]
    pytester.makeconftest((here / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(helpers=(here / "support" / "helpers.py").read_text(encoding="utf-8"))
    return pytester


def test_a_skip_fails_in_ci_unless_the_platform_is_why(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.makepyfile(MODULE)
    monkeypatch.setenv("CI", "true")
    result = project.runpytest("-p", "no:cacheprovider", "-p", "no:randomly")
    result.assert_outcomes(failed=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(["*skipped in CI*no such library*"])


def test_a_skip_is_a_skip_elsewhere(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    project.makepyfile(MODULE)
    monkeypatch.delenv("CI", raising=False)
    project.runpytest("-p", "no:cacheprovider").assert_outcomes(skipped=2, xfailed=1)


def test_a_module_that_skips_itself_fails_in_ci(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    project.makepyfile("import pytest\npytest.importorskip('no_such_module_anywhere')\n")
    monkeypatch.setenv("CI", "true")
    project.runpytest("-p", "no:cacheprovider").assert_outcomes(errors=1)


@pytest.mark.parametrize("shared", ['@pytest.fixture(scope="module")', "@pytest.fixture\n@once"])
def test_what_many_tests_share_fails_one_of_them_and_the_others_name_it(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, shared: str
) -> None:
    """A fixture that pytest remembers, and `helpers.once`; in CI too, where one failure is enough."""
    once = "import pytest\nfrom helpers import once\n"
    tests = "".join(f"def test_{name}(child):\n    pass\n" for name in ("one", "two", "three"))
    project.makepyfile(test_sharing=f"{once}{shared}\ndef child():\n    raise OSError('no child')\n{tests}")
    monkeypatch.setenv("CI", "true")
    result = project.runpytest("-p", "no:cacheprovider", "-rs")
    result.assert_outcomes(errors=1, skipped=2)
    result.stdout.fnmatch_lines(["*not run: see test_sharing.py::test_one*"])


def test_import_state_puts_everything_back(project: pytest.Pytester) -> None:
    project.makepyfile("""
        import copyreg, os, sys

        class Thing:
            pass

        def test_change(import_state):
            sys.meta_path.insert(0, Thing())
            sys.path.append("/nowhere")
            sys.path_hooks.append(Thing)
            sys.modules["something"] = sys
            sys.modules["json"] = sys
            copyreg.dispatch_table[Thing] = str
            os.environ["SOMETHING"] = "1"
            os.environ.pop("HOME", None)

        def test_changed_nothing():
            assert not any(isinstance(finder, Thing) for finder in sys.meta_path)
            assert "/nowhere" not in sys.path and Thing not in sys.path_hooks
            assert "something" not in sys.modules and sys.modules.get("json") is not sys
            assert Thing not in copyreg.dispatch_table
            assert "SOMETHING" not in os.environ and "HOME" in os.environ
    """)
    # In a process of its own, or what is being tested would be put back by pytester.
    project.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_a_child_that_fails_fails_the_test_with_both_streams() -> None:
    script = "import sys; print('said this'); sys.exit('and that')"
    with pytest.raises(pytest.fail.Exception, match=r"(?s)exited with 1.*said this.*and that"):
        run_child(script)
    assert run_child(script, check=False).returncode == 1


def test_a_child_that_hangs_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="did not end within 0.5 s"):
        run_child("import time; time.sleep(60)", timeout=0.5)


def test_a_child_inherits_no_switch_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSLOTH_HOOK", "1")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    script = "import os; print([name for name in os.environ if name.startswith(('UNSLOTH', 'PYTHON'))])"
    assert run_child(script).stdout == "[]\n"
