"""Open a checkpoint that asks for `UnslothSFTTrainer`, and make it portable. The hook need not be on.

    python docs/examples/open_stray_checkpoint.py [training_args.bin]

Without a file, one is made here that names what Unsloth wrote before August 2026. A file of yours is not changed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from unsloth_hook import convert_checkpoint, inspect_checkpoint, load_training_args

# Runs in a Python of its own: the module of this name exists there, as it did beside Unsloth's compiled cache.
WRITE = """
import sys, types, torch
from trl import SFTConfig

module = sys.modules["UnslothSFTTrainer"] = types.ModuleType("UnslothSFTTrainer")
names = {"__module__": module.__name__, "unsloth_num_chunks": 4}
module.UnslothSFTConfig = type("UnslothSFTConfig", (SFTConfig,), names)
config = module.UnslothSFTConfig(output_dir="outputs", learning_rate=3e-4, use_cpu=True, bf16=False)
config.unsloth_num_chunks = 4
torch.save(config, sys.argv[1])
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        source = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder, "training_args.bin")
        if len(sys.argv) < 2:
            subprocess.run([sys.executable, "-c", WRITE, str(source)], check=True)

        try:
            torch.load(source, weights_only=False)
            print("torch.load: opens (the hook is on, or the file is portable)")
        except ModuleNotFoundError as error:
            print(f"torch.load: {error}")

        found = inspect_checkpoint(source)  # runs nothing of the file
        print(f"inspect: {found.verdict}, {found.config_class} opens as {found.opens_as}")

        args = load_training_args(source)
        print(f"load: {type(args).__name__}, learning_rate = {args.learning_rate}, chunks = {args.unsloth_num_chunks}")

        target = Path(folder, "portable.bin")
        print(f"convert: {convert_checkpoint(source, target).status}")
        args = torch.load(target, weights_only=False)
        print(f"torch.load: {type(args).__module__}.{type(args).__name__}")


if __name__ == "__main__":
    main()
