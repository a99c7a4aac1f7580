"""A child script: mutations of the real files, each inspected and opened; prints as JSON what was seen.

Hypothesis draws the numbers with a fixed seed, so every run tries the same ones; a number makes a batch of mutations.
"""

import json
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import checkpoint_files as files
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from unsloth_hook.checkpoints import loading
from unsloth_hook.checkpoints.errors import CheckpointError, UnsafeCheckpointError
from unsloth_hook.checkpoints.inspection import inspect_checkpoint
from unsloth_hook.checkpoints.loading import load_training_args as load

PICKLES = [files.pickle_of(files.DATA / name) for name in files.ALL]
WHOLE = [(files.DATA / name).read_bytes() for name in files.ALL]
# Every opcode, and pieces that a mutation by chance would seldom make.
PIECES = [bytes([code]) for code in range(256)] + [
    b"cos\nmkdir\n",
    b"ctorch\nload\n",
    b"ctorch\ndevice\n",
    b"ctransformers.trainer_utils\nset_seed\n",
    b"ctransformers.training_args\nTrainingArguments\n",
    b"cUnslothPPOTrainer\nUnslothPPOConfig\n",
    b"cbuiltins\nset\n",
    b"X\x03\x00\x00\x00abc",
    b"K\x01",
    b"\x85R",
    b")\x81",
    b"}b",
    b"N}b",
    b"(ios\nmkdir\n",
    b"\x93",
    b"\x8a\x01\x05",
]
HOW = ["replace", "insert", "delete", "cut", "repeat", "name"]
# Mutations per example: hypothesis's own work for each example would otherwise be most of the run.
BATCH = 20
NAMES = [
    b"SFTConfig",
    b"IntervalStrategy",
    b"trainer_utils",
    b"PartialState",
    b"device",
    b"accelerate.state",
    b"trl.trainer",
]


def mutate(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 3)):
        how, piece, length = chance.choice(HOW), chance.choice(PIECES), chance.randint(1, 40)
        at = chance.randrange(len(data) + 1)
        if how == "replace":
            data = data[:at] + piece + data[at + len(piece) :]
        elif how == "insert":
            data = data[:at] + piece + data[at:]
        elif how == "delete":
            data = data[:at] + data[at + length :]
        elif how == "cut":
            data = data[: max(at, len(data) - length)]
        elif how == "repeat":
            data = data[:at] + data[at : at + length] * 2 + data[at + length :]
        else:
            name = chance.choice(NAMES)
            data = data.replace(name, name[: length % len(name)] + piece + name[length % len(name) + 1 :], 1)
    return data


class Watch:
    """What the run saw: what was opened, refused, imported, and the slowest example."""

    def __init__(self) -> None:
        self.imported: set[str] = set()
        self.outcomes: dict[str, int] = {}
        self.slowest = 0.0
        self.events: list[str] = []
        self.on = False

    def importing(self, name: str) -> Any:
        self.imported.add(name)
        return __import__("importlib").import_module(name)

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self.on and event.startswith(
            ("os.system", "os.mkdir", "os.exec", "os.spawn", "subprocess.", "socket.", "pickle.")
        ):
            self.events.append(event)


def watch() -> Watch:
    """Begin to watch this process, for good."""
    watching = Watch()
    sys.addaudithook(watching.audit)
    for name in files.ALL:  # every import that the real files need is behind us
        load(files.DATA / name)
    loading.import_module = watching.importing
    return watching


def look(path: Path, watching: Watch) -> None:
    started = time.process_time()
    watching.on = True
    outcome = "crashed"
    try:
        outcome = inspect_checkpoint(path).verdict
        config = load(path)
        assert outcome != "unsafe", "inspect calls it unsafe and load opens it"
        if sum(watching.outcomes.values()) % 10 == 0:
            repr(config)
            config.to_dict()
        outcome = f"opened, {outcome}"
    except UnsafeCheckpointError:
        assert outcome == "unsafe" or "itself as a value" in str(sys.exc_info()[1]), sys.exc_info()[1]
    except CheckpointError:
        outcome = f"refused after {outcome}" if outcome != "crashed" else "unreadable"
    finally:
        watching.on = False
    watching.outcomes[outcome] = watching.outcomes.get(outcome, 0) + 1
    watching.slowest = max(watching.slowest, time.process_time() - started)


def run(watching: Watch, folder: Path, originals: list[bytes], examples: int) -> None:
    path = folder / "training_args.bin"
    watching.outcomes.clear()

    @seed(20_260)
    @settings(
        max_examples=max(1, examples // BATCH),
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**64))
    def batch(number: int) -> None:
        chance = random.Random(number)
        for _ in range(BATCH):
            path.write_bytes(mutate(chance.choice(originals), chance))
            look(path, watching)

    batch()


def main(what: str, examples: int) -> None:
    """Try mutations of one kind, "pickles" or "archives"."""
    warnings.simplefilter("ignore")
    watching = watch()
    with tempfile.TemporaryDirectory() as folder:
        run(watching, Path(folder), {"pickles": PICKLES, "archives": WHOLE}[what], examples)
    seen = {**vars(watching), "imported": sorted(watching.imported)}
    print(json.dumps(seen))
