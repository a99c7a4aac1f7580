"""Fixtures for the tests with the real Unsloth."""

import os

import observe
import probes
import pytest

# Shows the fault that the later releases have not.
collect_ignore = ["test_docs_with_unsloth.py"] if probes.FIXED else []


@pytest.fixture(scope="session")
def observer(tmp_path_factory: pytest.TempPathFactory) -> observe.Observer:
    """What is run once in a session; under pytest-xdist the workers share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "observed"
    folder.mkdir(exist_ok=True)
    return observe.Observer(folder)
