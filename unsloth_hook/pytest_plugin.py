"""``pytest -p unsloth_hook.pytest_plugin``: the tests run with the hook on.

Switched on when this module is imported, which for ``-p`` is before any conftest file and for ``pytest_plugins`` in a
conftest file is as soon as possible. With pytest-xdist, each worker does the same.
"""

from __future__ import annotations

import os
from typing import Any

from . import activation, status_report

_handle = activation.activate("pytest")


def pytest_report_header(config: Any) -> str:
    """A line for the head of pytest's report.

    Args:
        config: the `pytest.Config`.
    """
    status = status_report.status()
    if not status["active"]:
        return f"unsloth_hook: off, UNSLOTH_HOOK={os.environ.get('UNSLOTH_HOOK')}"
    late = "; TRL was imported before, what took its classes by then has the old ones" if status["late"] else ""
    return f"unsloth_hook: on (route {status['route']}){late}"


def pytest_unconfigure() -> None:
    """Switch off what was switched on here: pytest may have been called by a program that goes on."""
    _handle.__exit__()
