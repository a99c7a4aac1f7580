"""The parent of all the workers of test_children.py: prints a JSON list, an item for each config that came back."""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys

from child_workers import Rows, exchange, first, map_row

SENT = {"unsloth_num_chunks": 4, "max_seq_length": 64, "vllm_sampling_params": {"top_p": 0.9}}


def by_subprocess(config):
    command = [sys.executable, "child_workers.py"]
    done = subprocess.run(command, input=pickle.dumps((config, "subprocess")), stdout=subprocess.PIPE, check=True)
    return [pickle.loads(done.stdout)]


def by_multiprocessing(method):
    def run(config):
        with multiprocessing.get_context(method).Pool(1) as pool:
            return [pool.apply(exchange, (config, method))]

    return run


def by_joblib(config):
    import joblib

    return joblib.Parallel(n_jobs=2, backend="loky")([joblib.delayed(exchange)(config, "loky")])


def by_map(num_proc):
    def run(config):
        from datasets import Dataset

        rows = Dataset.from_dict({"number": [0, 1]})
        arguments = {"config": config, "label": f"map-{num_proc}"}
        return [pickle.loads(row["answer"]) for row in rows.map(map_row, fn_kwargs=arguments, num_proc=num_proc)]

    return run


def by_data_loader(method):
    def run(config):
        from torch.utils.data import DataLoader

        rows = Rows(config, f"DataLoader-{method}")
        workers = 2 if method == "fork" else 1
        return list(DataLoader(rows, num_workers=workers, multiprocessing_context=method, collate_fn=first))

    return run


WAYS = {
    "fork": by_multiprocessing("fork"),
    "map None": by_map(None),
    "map 1": by_map(1),
    "map 2": by_map(2),
    "DataLoader fork": by_data_loader("fork"),
    "subprocess": by_subprocess,
    "spawn": by_multiprocessing("spawn"),
    "forkserver": by_multiprocessing("forkserver"),
    "loky": by_joblib,
    "DataLoader spawn": by_data_loader("spawn"),
}


def main():
    import torch
    from trl import SFTConfig

    torch.set_num_threads(1)  # a fork after torch has used its threads would hang
    results = []
    for way, run in WAYS.items():
        config = SFTConfig(output_dir="out", use_cpu=True, report_to="none", **SENT)
        for seen, back in run(config):
            results.append(
                {
                    "way": way,
                    **seen,
                    "pid": seen["pid"] == os.getpid(),
                    "back": type(back) is SFTConfig and back.unsloth_num_chunks,
                    "rest": back.to_dict() | {"unsloth_num_chunks": 4} == config.to_dict() | {"unsloth_num_chunks": 4},
                }
            )
    print(json.dumps(results))


if __name__ == "__main__":
    main()
