"""`docs/examples`: the project's main job in train_tiny.py, and the others, in real processes with real TRL."""

import ast
import json
import os
import pickletools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
import preloaded
import pytest
from helpers import DEADLOCK, ROOT, clean_env, hooked_python, run_child
from nbclient import NotebookClient

EXAMPLE = ROOT / "docs" / "examples" / "train_tiny.py"


def globals_in(file: Path) -> set[str]:
    with zipfile.ZipFile(file) as archive:
        data = archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))
    return {str(arg) for opcode, arg, _ in pickletools.genops(data) if opcode.name == "GLOBAL"}


@pytest.mark.whole
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


# --- the smaller examples

FOLDER = EXAMPLE.parent


def test_a_grpo_config_takes_the_fields_from_code_and_from_a_command_line() -> None:
    example = f"import runpy; runpy.run_path({str(FOLDER / 'grpo_config.py')!r}, run_name='__main__')"
    shown = preloaded.run_child(example, env={"UNSLOTH_HOOK": "1"}).stdout.splitlines()
    nothing, code, line, large = (text.partition(": ")[2] for text in shown)
    fields = ("unsloth_num_chunks", "unsloth_grpo_mini_batch", "unsloth_logit_chunk_multiplier", "vllm_sampling_params")
    assert ast.literal_eval(nothing) == dict(zip(fields, (-1, None, None, None), strict=True))
    assert ast.literal_eval(code) == ast.literal_eval(line) == dict(zip(fields, (4, 2, None, None), strict=True))
    assert large.startswith("unsloth_grpo_mini_batch (999) must not be larger than generation_batch_size (8)")


@pytest.mark.whole
def test_a_stray_checkpoint_is_opened_and_made_portable() -> None:
    """The file that it makes asks for what a real one asks for."""
    made = run_child(args=[str(FOLDER / "open_stray_checkpoint.py")]).stdout
    assert made.splitlines() == [
        "torch.load: No module named 'UnslothSFTTrainer'",
        "inspect: not portable, UnslothSFTTrainer.UnslothSFTConfig opens as trl.trainer.sft_config.SFTConfig",
        "load: SFTConfig, learning_rate = 0.0003, chunks = 4",
        "convert: converted",
        "torch.load: trl.trainer.sft_config.SFTConfig",
    ]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a Jupyter kernel that runs `hooked_python()`."""
    folder = tmp_path / "kernels" / "hooked"
    folder.mkdir(parents=True)
    command = [str(hooked_python()), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    description = {"argv": command, "display_name": "hooked", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(description), encoding="utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    for name, value in clean_env(IPYTHONDIR=str(tmp_path / "ipython")).items():
        monkeypatch.setenv(name, value)
    for name in [name for name in os.environ if name.startswith(("UNSLOTH", "PYTHON"))]:
        monkeypatch.delenv(name)
    yield "hooked"


def execute(notebook: nbformat.NotebookNode, kernel: str, folder: Path) -> list[list[str]]:
    """Execute a notebook and return, for each of its cells of code, what it answered or printed, less warnings."""
    NotebookClient(
        notebook, kernel_name=kernel, timeout=DEADLOCK, resources={"metadata": {"path": str(folder)}}
    ).execute()
    return answers(notebook)


def answers(notebook: nbformat.NotebookNode) -> list[list[str]]:
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return [
        [out.get("text") or out.data["text/plain"] for out in cell if out.get("name") != "stderr"] for cell in outputs
    ]


@pytest.mark.whole
def test_the_notebook_of_a_late_install_answers_what_is_saved_in_it(kernel: str, tmp_path: Path) -> None:
    notebook = nbformat.read(FOLDER / "late_install.ipynb", as_version=4)
    shown = answers(notebook)
    assert shown[:2] == [["False"], ["True"]]
    assert execute(notebook, kernel, tmp_path) == shown


def test_the_colab_cell_switches_the_kernel_on(kernel: str, tmp_path: Path) -> None:
    """All of it but the download and Unsloth, which are not here."""
    lines = (FOLDER / "colab_cell.txt").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(("%pip", "from unsloth import", "from trl import"))]
    assert len(lines) - len(kept) == 3
    cell = nbformat.v4.new_code_cell("\n".join([*kept, "import os, unsloth_hook", "unsloth_hook.status()['route']"]))
    ((printed, route),) = execute(nbformat.v4.new_notebook(cells=[cell]), kernel, tmp_path)
    assert "unsloth_hook is on in this kernel" in printed
    assert "env: UNSLOTH_HOOK=1" in printed
    assert route == "'ipython'"


def test_the_dockerfile_says_what_works() -> None:
    """No engine is here to build it: its variable, and the command with which the build proves it, are tried."""
    steps = [
        line.partition(" ")[::2] for line in (FOLDER / "Dockerfile").read_text(encoding="utf-8").splitlines() if line
    ]
    (variable,) = [rest for word, rest in steps if word == "ENV"]
    install, doctor = (rest for word, rest in steps if word == "RUN")
    assert install.startswith("pip install") and install.endswith(" trl unsloth-hook")
    assert doctor == "unsloth-hook doctor"
    name, _, value = variable.partition("=")
    done = run_child(args=["-m", "unsloth_hook", *doctor.split()[1:]], env={name: value})
    assert done.stdout.startswith("The hook is on, by the route env.")
    (copied,) = [rest.split()[0] for word, rest in steps if word == "COPY"]
    assert (FOLDER / copied).is_file()
