"""Prints what reading checkpoints costs, file by file and in one process: ours, a bare scan, torch.load."""

import itertools
import json
import pickletools
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pairs

DATA = Path(__file__).resolve().parents[1] / "data"
CLOCK = time.thread_time


def scan(path: str) -> int:
    """The least that can be done to a file without running it: find its pickle and walk through the opcodes."""
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        return sum(1 for _ in pickletools.genops(archive.read(name)))


def load(path: str) -> object:
    """What a user would call."""
    import torch

    return torch.load(path, weights_only=False)


def main(rounds: int) -> dict[str, Any]:
    from unsloth_hook import inspect_checkpoint
    from unsloth_hook.checkpoints import containers

    files = [str(path) for path in sorted(DATA.glob("*/*.bin"))]
    same = str(DATA / "trl-1.16.0/trainer-sft_config.bin")
    found: dict[str, Any] = {"files": len(files)}
    for file in files:  # a class is looked up in TRL's sources once in a process
        inspect_checkpoint(file)
    functions = [lambda: scan(same), lambda: inspect_checkpoint(same)]
    found["same"] = pairs.in_turns(functions, rounds, clock=CLOCK)
    ours, theirs = itertools.cycle(files), itertools.cycle(files)

    def inspect_another() -> None:
        containers._walk_small.cache_clear()  # as if no two files of the run had the same content
        inspect_checkpoint(next(ours))

    found["others"] = pairs.in_turns([lambda: scan(next(theirs)), inspect_another], rounds, 0.05, CLOCK)

    warnings.simplefilter("ignore")
    import torch

    from unsloth_hook import convert_checkpoint, load_training_args
    from unsloth_hook.checkpoints.stock_python import Verifier

    functions = [lambda: torch.load(same, weights_only=False), lambda: load_training_args(same)]
    found["opening"] = pairs.in_turns(functions, rounds, clock=CLOCK)
    source = str(DATA / "unsloth-2026.7.1/sft_training_args.bin")
    verifier = Verifier()
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder, "training_args.bin"))
        functions = [
            lambda: torch.load(same, weights_only=False),
            lambda: convert_checkpoint(source, target, verifier=verifier),
        ]
        found["converting"] = pairs.in_turns(functions, max(4, rounds // 4))
    verifier.close()
    return found


if __name__ == "__main__":
    if read := {"scan": scan, "load": load}.get(sys.argv[1]):  # a program that does nothing else
        warnings.simplefilter("ignore")
        for file in sorted(Path(sys.argv[2]).rglob("training_args.bin")):
            read(str(file))
    else:
        print(json.dumps(main(int(sys.argv[1]))))
