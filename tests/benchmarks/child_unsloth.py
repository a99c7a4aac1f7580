"""Prints what the real Unsloth takes to patch each of TRL's trainers, or what the swaps of TRL's configs take there."""

import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "unsloth"))


def generating() -> list[float]:
    """Seconds of processor time for each trainer: Unsloth writes and compiles a source, and binds the two classes."""
    import probes

    probes.import_unsloth()
    import unsloth.models.rl as rl

    found: list[float] = []
    generate = rl._patch_trl_rl_trainers

    def timed(*args: str, **keywords: str) -> object:
        started = time.process_time()
        try:
            return generate(*args, **keywords)
        finally:
            found.append(time.process_time() - started)

    rl._patch_trl_rl_trainers = timed
    probes.patch_trainers()
    return found


def swapping() -> list[float]:
    """Seconds for each config, in a process without Unsloth."""
    import child_trl

    return [seconds for _, swapped in child_trl.swaps(6).values() for seconds in swapped]


if __name__ == "__main__":
    print(json.dumps(generating() if sys.argv[1] == "generating" else swapping()))
