"""The child-process matrix, on the built wheel: everything that a hooked process starts is hooked (issue 5, item 6)."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import DEADLOCK, ROOT, clean_env, run_child
from installed import installed_program, installed_python

# Each takes ten seconds and more. What is in every run: workers in `test_pickles`, children of a command in `test_run`.
pytestmark = pytest.mark.whole

EXTRAS = ["vllm_sampling_params", "unsloth_num_chunks", "unsloth_logit_chunk_multiplier", "unsloth_grpo_mini_batch"]

# Opens files where the hook is blocked and Unsloth is not to be found.
STOCK = """
    import json, sys
    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.lower().startswith("unsloth"):
                raise ModuleNotFoundError(name, name=name)
    sys.meta_path.insert(0, Blocked())
    import torch
    shown = {}
    for file in sys.argv[1:]:
        config = torch.load(file, weights_only=False)
        shown[file] = [type(config).__module__, config.unsloth_num_chunks, config.max_length]
    print(json.dumps([shown, [name for name in sys.modules if "unsloth" in name]]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("child_workers.py", "child_parent.py", "child_ranks.py"):
        shutil.copy(Path(__file__).with_name(name), tmp_path)
    return tmp_path


def run(*command: Any, cwd: Path, check: bool = True, **env: str | None) -> "subprocess.CompletedProcess[str]":
    """Run a command by `unsloth-hook run`, with the programs of the Python that it is installed in on PATH."""
    return start([installed_program(), "run", *command], cwd, check, env)


def start(
    command: list[Any], cwd: Path, check: bool = True, env: dict[str, str | None] | None = None
) -> "subprocess.CompletedProcess[str]":
    environ = clean_env(OMP_NUM_THREADS="1", ACCELERATE_USE_CPU="true", CUDA_VISIBLE_DEVICES="", **dict(env or {}))
    environ["PATH"] = f"{installed_python().parent}:{environ['PATH']}"
    options: dict[str, Any] = {"env": environ, "cwd": cwd, "capture_output": True, "text": True, "timeout": DEADLOCK}
    done = subprocess.run([str(part) for part in command], **options)
    assert done.returncode == 0 or not check, f"{command}\n{done.stdout}\n{done.stderr[-6000:]}"
    return done


def opened_without_the_hook(folder: Path) -> dict[str, list[Any]]:
    """What the files in the folder are to a Python without the hook."""
    files = sorted(file.name for file in folder.rglob("*.bin"))
    paths = [str(file) for file in sorted(folder.rglob("*.bin"), key=lambda file: file.name)]
    shown, stray = json.loads(run_child(STOCK, python=installed_python(), args=paths).stdout)
    assert stray == []
    assert len(files) == len(shown)
    return {Path(path).name: seen for path, seen in shown.items()}


def test_workers_of_every_kind(folder: Path) -> None:
    results = json.loads(run("child_parent.py", cwd=folder).stdout)
    ways = [each["way"] for each in results]
    assert sorted(set(ways)) == sorted(
        ["fork", "spawn", "forkserver", "subprocess", "loky", "map None", "map 1", "map 2"]
        + ["DataLoader fork", "DataLoader spawn"]
    )
    for each in results:
        assert each == {
            "way": each["way"],
            "pid": each["pid"] if each["way"] == "map 1" else each["way"] == "map None",  # in the parent itself
            "same class": True,
            "patched": True,
            "route": "run",
            "value": [4, 64, {"top_p": 0.9}],
            "back": 5,
            "rest": True,
        }
    opened = opened_without_the_hook(folder)
    assert len(opened) == len(results)
    assert set(map(tuple, opened.values())) == {("trl.trainer.sft_config", 4, 64)}


LAUNCHERS = {
    "torchrun": ["torchrun", "--standalone", "--nproc-per-node", "2"],
    "accelerate": ["accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"],
}


def test_two_ranks_on_gloo(folder: Path) -> None:
    for launcher, command in LAUNCHERS.items():
        run(*command, "child_ranks.py", launcher, cwd=folder, HF_HOME=str(folder / "hf"))
        for rank in range(2):
            assert json.loads((folder / f"{launcher}-{rank}.json").read_text()) == {
                "backend": "gloo",
                "size": 2,
                "patched": True,
                "route": "run",
                "same class": True,
                "values": [10, 11],
                "max_length": [64, 64],
            }
    assert opened_without_the_hook(folder) == {
        f"{launcher}-{rank}.bin": ["trl.trainer.sft_config", 11 - rank, 64]
        for launcher in LAUNCHERS
        for rank in range(2)
    }


MAKE_MODEL = f"""
    import json, sys
    sys.path.insert(0, {str(ROOT / "docs" / "examples")!r})
    from train_tiny import make_model, make_tokenizer
    texts = [f"the {{colour}} {{animal}} sleeps" for colour in ("red", "green") for animal in ("cat", "dog")]
    tokenizer = make_tokenizer(texts)
    make_model(tokenizer).save_pretrained("model")
    tokenizer.save_pretrained("model")
    import os
    os.mkdir("data")
    with open("data/train.jsonl", "w") as stream:
        stream.writelines(json.dumps({{"text": text}}) + "\\n" for text in texts)
"""

YAML = """
model_name_or_path: model
dataset_name: data
output_dir: out
max_steps: 2
per_device_train_batch_size: 2
save_steps: 2
logging_strategy: "no"
report_to: none
use_cpu: true
bf16: false
unsloth_num_chunks: 4
max_seq_length: 64
"""


def test_trl_sft_takes_an_extra_field_from_its_yaml(folder: Path) -> None:
    run_child(MAKE_MODEL, python=installed_python(), cwd=folder)
    (folder / "c.yaml").write_text(YAML)
    run("trl", "sft", "--config", "c.yaml", cwd=folder, HF_HOME=str(folder / "hf"))
    (folder / "model").rename(folder / "used")
    opened = opened_without_the_hook(folder)
    assert opened == {"training_args.bin": ["trl.trainer.sft_config", 4, 64]}
    assert (folder / "out" / "checkpoint-2" / "training_args.bin").is_file()


def test_trl_sft_help_lists_the_extras_and_without_the_hook_they_are_unknown(folder: Path) -> None:
    shown = run("trl", "sft", "--help", cwd=folder).stdout
    for name in [*EXTRAS, "max_seq_length"]:
        assert f"--{name}" in shown
    assert "Number of chunks that Unsloth splits a batch into" in " ".join(shown.split())
    arguments = ["sft", "--model_name_or_path", "m", "--dataset_name", "d", "--use_cpu", "true", "--bf16", "false"]
    done = start([installed_python().parent / "trl", *arguments, "--unsloth_num_chunks", "4"], folder, check=False)
    assert done.returncode != 0
    assert "--unsloth_num_chunks" in done.stderr
    assert "unsloth_hook" not in done.stderr
    assert sys.executable not in shown
