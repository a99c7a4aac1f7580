"""Fixtures for all tests, and three rules: CI skips nothing, what broke for many fails once, a file has one worker."""

import copyreg
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import helpers
import pytest
from helpers import run_child

__all__ = ["run_child"]

# These run in environments of their own (CONTRIBUTING.md); .ci/run makes them.
collect_ignore = ["frameworks", *([] if importlib.util.find_spec("unsloth_zoo") else ["unsloth"])]


@pytest.fixture(name="run_child")
def run_child_fixture() -> Callable[..., Any]:
    """`helpers.run_child`, for tests that would rather ask than import."""
    return run_child


@pytest.fixture
def hooked_python() -> str:
    """A ``python`` in which ``UNSLOTH_HOOK=1`` switches the hook on."""
    return str(helpers.hooked_python())


@pytest.fixture
def import_state() -> Iterator[None]:
    """Put back, after the test, everything that a hook or an import changes in this process."""
    lists = [(owner, list(owner)) for owner in (sys.meta_path, sys.path, sys.path_hooks)]
    tables = [(owner, dict(owner)) for owner in (sys.modules, copyreg.dispatch_table, os.environ)]
    yield
    for owner, before in lists:
        owner[:] = before
    for owner, before in tables:
        for name in set(owner) - set(before):
            del owner[name]
        owner.update(before)
    sys.path_importer_cache.clear()


def forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure under ``CI=true``, unless its reason begins with ``platform:``."""
    if not report.skipped or hasattr(report, "wasxfail") or os.environ.get("CI", "").lower() != "true":
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if reason.removeprefix("Skipped: ").startswith("platform:"):
        return
    report.outcome = "failed"
    report.longrepr = f"skipped in CI, where only 'platform:' may skip: {reason}"


broke: dict[int, tuple[BaseException, str]] = {}  # by identity: what a test or fixture raised, and the first to meet it


def fail_once(report: pytest.TestReport, error: BaseException, test: str) -> None:
    """What many tests share (a child, a fixture) fails one of them; the others name that one and count as not run."""
    _, first = broke.setdefault(id(error), (error, test))
    if report.failed and first != test:
        report.outcome = "skipped"
        report.longrepr = (*report.location[:1], report.location[1] or 0, f"Skipped: not run: see {first}")


# Files whose tests look at the same children (`stock.observe`).
OBSERVED = ("test_fields", "test_patched_classes", "test_pickles")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file go to one worker, and so do files that share a child: it runs once."""
    from xdist.scheduler import LoadScopeScheduling

    class OneWorkerForAFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "observed" if file.rpartition("/")[2].removesuffix(".py") in OBSERVED else file

    return OneWorkerForAFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    forbid_skip(report)
    if call.excinfo is not None:
        fail_once(report, call.excinfo.value, item.nodeid)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Any:
    report = yield
    forbid_skip(report)
    return report
