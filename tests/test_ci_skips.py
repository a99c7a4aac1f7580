"""CI may skip nothing for want of a piece: `conftest.forbid_skip`."""

from pathlib import Path

import pytest

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
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    here = Path(__file__).parent
    pytester.makeconftest((here / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(helpers=(here / "helpers.py").read_text(encoding="utf-8"))
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
