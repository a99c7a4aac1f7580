"""For the tests of files: the program in this process, and what a second of the contract is on this machine."""

import gc
import time
from collections.abc import Callable

import pytest
from preloaded import Done

from unsloth_hook.command.program import app


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """`unsloth-hook ...` in this process, which saves its start. How a process of its own ends is tried, too."""

    def run(*words: object) -> Done:
        capsys.readouterr()
        try:
            with pytest.raises(SystemExit) as end:
                app([str(word) for word in words], prog_name="unsloth-hook")
        finally:
            gc.enable()  # inspect switches it off, as its process ends soon
        return Done(int(end.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def a_second() -> float:
    """Seconds of processor time in which this machine does what the one that was measured on does in one.

    The contract's bounds are multiples of this: what takes 0.06 s there may take 0.6 s on a slow machine.
    """
    started, total = time.process_time(), 0
    for number in range(2_000_000):
        total += number % 7
    return max(1.0, (time.process_time() - started) / 0.05)
