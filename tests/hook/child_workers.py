"""What runs in the workers of test_children.py. They import it, so it is a file beside the script."""

import copy
import os
import pickle
import sys


def exchange(config, label):
    """In a worker: compare the class with the one that is imported here, save the config, send a changed one back."""
    import torch
    from trl import SFTConfig

    import unsloth_hook

    torch.save(config, f"{label}.bin")
    seen = {
        "pid": os.getpid(),
        "same class": type(config) is SFTConfig,
        "patched": unsloth_hook.is_patched(SFTConfig),
        "route": unsloth_hook.status()["route"],
        "value": (config.unsloth_num_chunks, config.max_length, config.vllm_sampling_params),
    }
    changed = copy.copy(config)
    changed.unsloth_num_chunks += 1
    return seen, changed


def map_row(row, config, label):
    """`exchange` for a row of `datasets.map`, whose columns take no objects."""
    return {"answer": pickle.dumps(exchange(config, f"{label}-{row['number']}"))}


class Rows:
    """A dataset for `DataLoader` that does `exchange` in its workers."""

    def __init__(self, config, label):
        self.config = config
        self.label = label

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return exchange(self.config, f"{self.label}-{index}")


def first(batch):
    """A `collate_fn` that leaves objects alone."""
    return batch[0]


if __name__ == "__main__":  # the child of `subprocess`
    config, label = pickle.load(sys.stdin.buffer)
    answer = pickle.dumps(exchange(config, label))
    sys.stdout.buffer.write(answer)
