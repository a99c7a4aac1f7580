"""Real clients, each run without and with the hook: nobody who did not ask can tell that it is there."""

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from clients import CLIENTS
from compare import WATCH, Run, differences
from helpers import DEADLOCK, ROOT, clean_env, deadlocked

HERE = Path(__file__).parent
PROGRAMS = Path(sys.executable).parent
REPRODUCIBLE = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "WANDB_MODE": "disabled"}


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with model/ and data/."""
    folder = tmp_path_factory.mktemp("material")
    subprocess.run(
        [sys.executable, HERE / "tiny.py", folder], env=clean_env(**REPRODUCIBLE), check=True, timeout=DEADLOCK
    )
    return folder


def run(client: str, command: str, material: Path, folder: Path, *, hooked: bool) -> Run:
    """Run a command in `folder`/run, which is renamed when it has ended: the next one has the same path."""
    there = folder / "run"
    shutil.copytree(material, there)
    row = CLIENTS[client].commands[command]
    files = {**row.files, "config.yaml": yaml.safe_dump(row.config)}
    for name, text in files.items():
        (there / name).write_text(text, encoding="utf-8")
    watched = folder / WATCH
    env = clean_env(
        **REPRODUCIBLE,
        **CLIENTS[client].env,
        HF_HOME=str(there / "cache"),
        MODELSCOPE_CACHE=str(there / "cache"),
        PATH=f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}",
        PYTHONPATH=f"{HERE / 'watch'}{os.pathsep}{there}",
        UNSLOTH_HOOK="1" if hooked else None,
        WATCH=str(watched),
    )
    line = row.line.split()
    line[0] = str(PROGRAMS / line[0])
    streams = [folder / "stdout", folder / "stderr"]
    with streams[0].open("wb") as stdout, streams[1].open("wb") as stderr:
        process = subprocess.Popen(
            line, cwd=there, env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
        try:
            process.wait(DEADLOCK)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # and what it has started
            pytest.fail(deadlocked(DEADLOCK, row.line, streams[1].read_text(errors="replace")), pytrace=False)
    ended = folder / ("hooked" if hooked else "stock")
    there.rename(ended)
    notes = [json.loads(note) for note in watched.read_text(encoding="utf-8").splitlines()]
    watched.unlink()
    texts = [stream.read_text(encoding="utf-8", errors="replace") for stream in streams]
    return Run(ended, process.returncode, *texts, notes)


def test_release(client: str) -> None:
    """The releases are those that the table here and the one of docs/frameworks.md name."""
    assert metadata.version(client) == CLIENTS[client].version
    row = " | ".join([f"| `{client}` {metadata.version(client)}", *map(metadata.version, ("trl", "transformers")), ""])
    assert row in (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")


def test_as_stock(client: str, command: str, material: Path, tmp_path: Path) -> None:
    """The exit code, the lines and all files are equal, byte for byte but for times; and the command did its work."""
    row = CLIENTS[client].commands[command]
    stock = run(client, command, material, tmp_path, hooked=False)
    assert stock.returncode == 0, stock.stderr[-5000:]
    assert list(stock.folder.rglob("training_args.bin"))
    assert not any(python["on"] for python in stock.watched)
    hooked = run(client, command, material, tmp_path, hooked=True)
    found = differences(stock, hooked, in_order=row.processes == 1)
    if found:
        pytest.fail("\n\n".join(found), pytrace=False)
    assert any(python["on"] for python in hooked.watched)
    assert any(python["patched"] for python in hooked.watched) == row.uses_trl
