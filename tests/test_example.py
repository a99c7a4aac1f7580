"""`docs/examples/train_tiny.py`: the project's main job, in real processes with real TRL (issue 2, item 5)."""

import pickletools
import re
import zipfile
from pathlib import Path

from helpers import ROOT, run_child

EXAMPLE = ROOT / "docs" / "examples" / "train_tiny.py"


def globals_in(file: Path) -> set[str]:
    with zipfile.ZipFile(file) as archive:
        data = archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))
    return {str(arg) for opcode, arg, _ in pickletools.genops(data) if opcode.name == "GLOBAL"}


def test_it_trains_saves_and_opens_where_the_hook_is_blocked(tmp_path: Path) -> None:
    args = [str(EXAMPLE), "--output-dir", str(tmp_path)]
    shown = run_child(args=args, env={"UNSLOTH_HOOK": "1"}).stdout
    routes, sft, plain, names, child = re.split(r"\n\n", shown)[:5]
    assert routes.count("the same object: True") == 4
    assert "unsloth_num_chunks = 4" in sft
    assert "max_seq_length = 64" in sft
    assert "max_length = 64" in sft
    assert "given TrainingArguments, the trainer holds SFTConfig" in plain
    assert "unsloth_num_chunks = -1" in plain
    assert "trl.trainer.sft_config.SFTConfig" in names
    assert child.count(": trl.trainer.sft_config.SFTConfig\n") == 2
    assert "'unsloth_num_chunks': 4" in child
    assert child.endswith("modules with 'unsloth' in their name: []")
    for run in ("sft", "plain"):
        saved = tmp_path / run / "checkpoint-3"
        assert (saved / "model.safetensors").is_file()
        wanted = globals_in(saved / "training_args.bin")
        assert "trl.trainer.sft_config SFTConfig" in wanted
        assert not [name for name in wanted if re.match("unsloth|copyreg|builtins", name)]


def test_without_the_hook_it_says_so_and_exits_with_1() -> None:
    done = run_child(args=[str(EXAMPLE)], check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "not on" in done.stderr
    assert "UNSLOTH_HOOK=1" in done.stderr
