"""Pairs of functions timed in turns, so that whatever else the machine does meets both alike."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

BLOCK = 0.002  # seconds that one block should take, so that a block is long for the clock and short for the scheduler


def calibrate(function: Callable[[], Any], block: float, clock: Callable[[], float]) -> int:
    """How many calls of a function take about `block` seconds."""
    loops = 1
    while loops < 1_000_000:
        taken = _time(function, loops, clock)
        if taken >= block / 2:
            return max(1, round(loops * block / taken))
        loops *= 4
    return loops


def in_turns(
    functions: Sequence[Callable[[], Any]],
    rounds: int,
    block: float = BLOCK,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Time functions in turns: forwards, then backwards, and so on (ABBA), which cancels a drift of the machine.

    Args:
        functions: each without arguments.
        rounds: how often each is timed.
        block: seconds that one timing should take.
        clock: `time.thread_time` where nothing but the processor is waited for: what others run is not in it then.

    Returns:
        For each function, seconds a call, one number a round.
    """
    loops = [calibrate(function, block, clock) for function in functions]
    seconds: list[list[float]] = [[] for _ in functions]
    gc.collect()
    gc.freeze()  # torch and transformers are half a million objects; the garbage of a run is none of theirs
    gc.disable()
    try:
        for turn in range(rounds):
            order = range(len(functions)) if turn % 2 == 0 else range(len(functions) - 1, -1, -1)
            for index in order:
                seconds[index].append(_time(functions[index], loops[index], clock) / loops[index])
            if turn % 8 == 7:
                gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    return seconds


def _time(function: Callable[[], Any], loops: int, clock: Callable[[], float]) -> float:
    repeat = range(loops)
    started = clock()
    for _ in repeat:
        function()
    return clock() - started


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ours over theirs, round by round."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def differences(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Ours less theirs, round by round."""
    return [a - b for a, b in zip(ours, theirs, strict=True)]


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Median and quartiles of paired values."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return {"value": middle, "low": low, "high": high, "samples": len(values)}
