"""convert: files that a stock Python opens, under TRL's names, written whole or not at all, nothing lost in silence."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import checkpoint_files as files
import preloaded
import pytest
from helpers import ROOT, clean_env, deadlock_ends, hooked_python, run_child
from preloaded import Done

from unsloth_hook.checkpoints import paths as file_paths
from unsloth_hook.checkpoints import pickle_writer, stock_python
from unsloth_hook.checkpoints.conversion import convert_checkpoint
from unsloth_hook.checkpoints.errors import CheckpointError, UnsafeCheckpointError
from unsloth_hook.checkpoints.inspection import inspect_checkpoint
from unsloth_hook.checkpoints.pickle_tree import Built, Global
from unsloth_hook.checkpoints.stock_python import Verifier

SAMPLING = Global("vllm.sampling_params", "SamplingParams")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as shared:
        yield shared


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory, verifier: Verifier) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("converted")
    return {name: convert_checkpoint(files.DATA / name, folder / name, verifier=verifier) for name in files.ALL}


@pytest.fixture
def lent(verifier: Verifier, monkeypatch: pytest.MonkeyPatch) -> list[Verifier]:
    """Who starts a `Verifier` has the child that all tests here share; the list of those that were asked something."""
    asked: list[Verifier] = []
    one_at_a_time = Lock()

    class Lent(Verifier):
        def open(self, content: bytes, bare: bool = False) -> dict[str, Any]:
            asked.extend([] if self in asked else [self])
            with one_at_a_time:
                return verifier.open(content, bare)

    monkeypatch.setattr(stock_python, "Verifier", Lent)
    return asked


@pytest.fixture
def cli(program: Callable[..., Done], lent: list[Verifier]) -> Callable[..., Done]:
    """`unsloth-hook convert ...`, in this process and with the shared child."""
    return lambda *words: program("convert", *words)


@pytest.mark.parametrize("name", files.ALL)
def test_every_value_is_kept(name: str, converted: dict[str, Any]) -> None:
    done = converted[name]
    before, after = inspect_checkpoint(done.source), inspect_checkpoint(done.target)
    assert after.verdict == "portable"
    assert {key: after.fields[key] for key in before.fields} == before.fields
    assert done.not_carried == ()
    assert (done.status == "copied") == (before.verdict == "portable")


def test_a_stock_python_opens_them_all(converted: dict[str, Any]) -> None:
    script = """
    import json, sys, warnings, torch
    warnings.simplefilter("ignore")
    results = {}
    for path in sys.argv[1:]:
        config = torch.load(path, weights_only=False)
        results[path] = [type(config).__module__, config.learning_rate, config.seed, config.output_dir]
        assert len(repr(config)) > 1000 and config.to_dict()["seed"] == config.seed, path
    assert not [name for name in sys.modules if "unsloth" in name.lower()]
    print(json.dumps(results))
    """
    targets = {done.target: files.MANIFEST[name] for name, done in converted.items()}
    found = preloaded.run_child(script, args=list(targets), env={"UNSLOTH_HOOK": "0"}).json()
    for target, values in targets.items():
        assert found[target][1:] == [values["learning_rate"], values["seed"], values["output_dir"]]
        roots = {name.partition(".")[0] for name in files.names_in(Path(target))}
        assert roots <= {"trl", "transformers", "accelerate", "torch"}


def test_the_names_of_a_converted_file_are_those_that_trl_itself_writes(converted: dict[str, Any]) -> None:
    found = files.names_in(Path(converted["unsloth-2026.7.1/sft_training_args.bin"].target))
    assert found == files.names_in(files.SFT_PORTABLE)


def test_a_portable_file_is_left_alone(tmp_path: Path, verifier: Verifier) -> None:
    path = tmp_path / "training_args.bin"
    path.write_bytes(files.SFT_PORTABLE.read_bytes())
    before = path.stat()
    assert convert_checkpoint(path, path, verifier=verifier).status == "already portable"
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert convert_checkpoint(path, tmp_path / "new/x.bin", verifier=verifier).status == "copied"
    assert (tmp_path / "new/x.bin").read_bytes() == files.SFT_PORTABLE.read_bytes()


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_the_mode_is_kept(tmp_path: Path, verifier: Verifier, mode: int) -> None:
    path = tmp_path / "training_args.bin"
    path.write_bytes(files.SFT.read_bytes())
    path.chmod(mode)
    convert_checkpoint(path, path, verifier=verifier)
    convert_checkpoint(path, tmp_path / "copy.bin", verifier=verifier)
    assert stat.S_IMODE(path.stat().st_mode) == mode == stat.S_IMODE((tmp_path / "copy.bin").stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path, verifier: Verifier) -> None:
    blob, link = tmp_path / "blob", tmp_path / "training_args.bin"
    blob.write_bytes(files.SFT.read_bytes())
    link.symlink_to(blob.name)
    convert_checkpoint(link, link, verifier=verifier)
    assert link.is_symlink()
    assert inspect_checkpoint(blob).verdict == "portable"


def test_what_cannot_be_carried_is_said(tmp_path: Path, verifier: Verifier) -> None:
    """vllm cannot be had on every machine: what its pickle looks like stands in for it (a class called with values)."""
    root = files.tree()
    root.state["vllm_sampling_params"] = Built(SAMPLING, (1, 0.9), True)
    root.state["model_init_kwargs"] = {
        "keep": 1,
        "drop": [Built(Global("peft.tuners.lora", "LoraThing"), (), False, state={})],
    }
    path = files.write(tmp_path, root)
    done = convert_checkpoint(path, tmp_path / "out.bin", verifier=verifier)
    assert [(lost.where, lost.was) for lost in done.not_carried] == [
        ("model_init_kwargs['drop'][0]", "peft.tuners.lora.LoraThing"),
        ("vllm_sampling_params", "vllm.sampling_params.SamplingParams"),
    ] or {lost.where for lost in done.not_carried} == {"model_init_kwargs['drop'][0]", "vllm_sampling_params"}
    fields = inspect_checkpoint(tmp_path / "out.bin").fields
    assert fields["vllm_sampling_params"] is None
    assert fields["model_init_kwargs"] == {"keep": 1, "drop": [None]}
    shown = run_child(args=["-m", "unsloth_hook", "convert", str(path), "--dry-run"], check=False)
    assert shown.returncode == 1
    assert "vllm_sampling_params (was vllm.sampling_params.SamplingParams" in shown.stdout


def test_an_unsafe_file_is_refused(tmp_path: Path, verifier: Verifier) -> None:
    root = files.tree()
    root.state["x"] = Built(Global("os", "system"), ("true",), True)
    path = files.write(tmp_path, root)
    with pytest.raises(UnsafeCheckpointError, match=r"os\.system"):
        convert_checkpoint(path, tmp_path / "out.bin", verifier=verifier)
    assert not (tmp_path / "out.bin").exists()


def test_nothing_is_replaced_unless_a_stock_python_opened_it(tmp_path: Path, verifier: Verifier) -> None:
    class Refuses(Verifier):
        """A child that cannot open the result, as with a TRL that is broken: a stand-in, as a whole TRL is not."""

        def open(self, content: bytes, bare: bool = False) -> dict[str, Any]:
            return verifier.open(content[:100], bare)

    path = tmp_path / "training_args.bin"
    path.write_bytes(files.SFT.read_bytes())
    with pytest.raises(CheckpointError, match="stock Python does not open"):
        convert_checkpoint(path, path, verifier=Refuses())
    assert path.read_bytes() == files.SFT.read_bytes()
    assert os.listdir(tmp_path) == ["training_args.bin"]


@pytest.mark.parametrize("answer", [{"class": "trl.trainer.dpo_config.DPOConfig"}, {"fields": ["seed"]}])
def test_nothing_is_replaced_by_what_opens_as_something_else(
    answer: dict[str, Any], tmp_path: Path, verifier: Verifier
) -> None:
    """A stand-in says so: the files that convert writes are never like that."""

    class Other(Verifier):
        def open(self, content: bytes, bare: bool = False) -> dict[str, Any]:
            return {**verifier.open(content, bare), **answer}

    path = tmp_path / "training_args.bin"
    path.write_bytes(files.SFT.read_bytes())
    with pytest.raises(CheckpointError, match="stock Python does not open the result.*it opens as"):
        convert_checkpoint(path, path, verifier=Other())
    assert path.read_bytes() == files.SFT.read_bytes()


def test_the_verifier_is_a_python_without_the_hook(tmp_path: Path) -> None:
    """With the hook on in the environment, a stray file must still not open in it, nor a file of that name help.

    And what lies in the working directory does not come into it.
    """
    (tmp_path / "UnslothSFTTrainer.py").write_text("class UnslothSFTConfig: pass")
    said = tmp_path / "said"
    note = f"import os; print(os.environ['UNSLOTH_HOOK'], file=open({str(said)!r}, 'a'))\n"
    (tmp_path / "sitecustomize.py").write_text(note)
    here = tmp_path / "here"
    here.mkdir()
    (here / "json.py").write_text("raise SystemExit('not me')")
    script = f"""
    from unsloth_hook.checkpoints.errors import VerifierError
    from unsloth_hook.checkpoints.stock_python import Verifier
    with Verifier() as verifier:
        try:
            verifier.open(open({str(files.SFT)!r}, "rb").read())
        except VerifierError as error:
            print(error)
    """
    done = run_child(script, env={"UNSLOTH_HOOK": "1", "PYTHONPATH": str(tmp_path)}, cwd=here)
    assert "No module named 'UnslothSFTTrainer'" in done.stdout
    assert said.read_text().split() == ["1", "0"]


def test_a_target_that_cannot_be_written(tmp_path: Path, verifier: Verifier) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="not converted"):
        convert_checkpoint(files.SFT, tmp_path / "file/out.bin", verifier=verifier)


@pytest.mark.skipif(sys.platform == "win32", reason="platform: no RLIMIT_FSIZE")
def test_a_full_disk_leaves_the_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "training_args.bin"
    path.write_bytes(files.SFT.read_bytes())
    script = f"""
    import resource
    from unsloth_hook.checkpoints import paths
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        paths.write_atomically({str(path)!r}, b"x" * 9000)
    except OSError as error:
        print("refused:", error)
    """
    assert "refused" in run_child(script).stdout
    assert path.read_bytes() == files.SFT.read_bytes()
    assert os.listdir(tmp_path) == ["training_args.bin"]


def make_tree(folder: Path, count: int = 3) -> list[Path]:
    made = []
    for index in range(count):
        path = folder / f"run-{index:03}" / "training_args.bin"
        path.parent.mkdir(parents=True)
        path.write_bytes(files.SFT.read_bytes())
        made.append(path)
    return made


def test_a_tree_in_place_with_one_bad_file(tmp_path: Path, cli: Callable[..., Done]) -> None:
    good = make_tree(tmp_path)
    bad = tmp_path / "run-001b/training_args.bin"
    bad.parent.mkdir()
    bad.write_bytes(b"no pickle")
    done = cli(tmp_path, "--in-place", "--json", "-j", "2")
    assert done.returncode == 2
    results = json.loads(done.stdout)
    assert [Path(each["source"]) for each in results] == sorted([*good, bad])
    assert [each["status"] for each in results] == ["converted", "converted", "failed", "converted"]
    assert str(bad) in results[2]["error"]
    assert all(inspect_checkpoint(path).verdict == "portable" for path in good)
    assert bad.read_bytes() == b"no pickle"
    table = cli(tmp_path, "--in-place").stdout
    assert "4 files: 3 already portable, 1 failed" in table


def test_a_tree_into_another_folder(tmp_path: Path, cli: Callable[..., Done]) -> None:
    make_tree(tmp_path / "in", 2)
    done = cli(tmp_path / "in", "-o", tmp_path / "out")
    assert done.returncode == 0, done
    assert "UnslothSFTTrainer.UnslothSFTConfig -> trl.trainer.sft_config.SFTConfig" in done.stdout
    for index in range(2):
        assert inspect_checkpoint(tmp_path / f"out/run-{index:03}/training_args.bin").verdict == "portable"
        assert (tmp_path / f"in/run-{index:03}/training_args.bin").read_bytes() == files.SFT.read_bytes()


def test_a_dry_run_writes_nothing_and_starts_no_child(
    tmp_path: Path, program: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, 1)
    monkeypatch.setattr(subprocess, "Popen", None)
    done = program("convert", tmp_path, "--in-place", "--dry-run")
    assert done.returncode == 0
    assert "would convert" in done.stdout
    assert (tmp_path / "run-000/training_args.bin").read_bytes() == files.SFT.read_bytes()
    assert convert_checkpoint(files.SFT, tmp_path / "x", dry_run=True).status == "would convert"
    assert not (tmp_path / "x").exists()


def test_where_to_write_must_be_said(tmp_path: Path, cli: Callable[..., Done]) -> None:
    for options in ([], ["-o", "x", "--in-place"]):
        done = cli(files.SFT, *options)
        assert done.returncode == 2
        assert "-o DIR, or --in-place" in done.stderr


def test_two_files_for_one_target_are_refused_before_anything_is_written(
    tmp_path: Path, cli: Callable[..., Done]
) -> None:
    one, two = make_tree(tmp_path, 2)
    done = cli(one, two, "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "both be written to" in done.stderr
    assert not (tmp_path / "out").exists()


def test_many_files_share_one_child(
    tmp_path: Path, cli: Callable[..., Done], lent: list[Verifier], verifier: Verifier
) -> None:
    verifier.open(files.SFT_PORTABLE.read_bytes())
    child = verifier._child
    make_tree(tmp_path, 30)
    assert cli(tmp_path, "--in-place").returncode == 0
    assert len(lent) == 1
    assert verifier._child is child is not None


def test_urls_by_fsspec(cli: Callable[..., Done]) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for name in "ab":
        memory.pipe_file(f"/convert/runs/{name}/training_args.bin", files.SFT.read_bytes())
    assert cli("memory://convert/runs", "-o", "memory://convert/out").returncode == 0
    assert cli("memory://convert/runs/a/training_args.bin", "--in-place").returncode == 0
    for path in ("out/a", "out/b", "runs/a"):
        assert inspect_checkpoint(f"memory://convert/{path}/training_args.bin").verdict == "portable", path
    assert inspect_checkpoint("memory://convert/runs/b/training_args.bin").verdict == "not portable"
    assert sorted(memory.find("/convert")) == [
        f"/convert/{x}/{y}/training_args.bin" for x in ("out", "runs") for y in "ab"
    ]


def test_fsspec_is_imported_only_for_a_url(tmp_path: Path) -> None:
    script = f"""
    import sys
    from unsloth_hook.checkpoints.conversion import convert_checkpoint
    convert_checkpoint({str(files.SFT)!r}, {str(tmp_path / "x")!r}, dry_run=True)
    assert "fsspec" not in sys.modules and "torch" not in sys.modules
    """
    run_child(script)


# The command, in a process of its own, that stops where the third file is half written until it is told to go on.
STOPS = """
import os, signal, sys
from unsloth_hook.command.program import app

def fsync(descriptor, real=os.fsync, times=[]):
    times.append(descriptor)
    if len(times) == 3:
        print("half written", flush=True)
        sys.stdin.readline()
    real(descriptor)

os.fsync = fsync
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what it starts in the background
app(["convert", sys.argv[1], "--in-place"])
"""


def start(script: str, *args: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [hooked_python(), "-c", script, *map(str, args)],
        cwd=ROOT,
        env=clean_env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="platform: Ctrl-C is sent as a POSIX signal")
def test_ctrl_c_leaves_no_half_written_file(tmp_path: Path) -> None:
    made = make_tree(tmp_path, 6)
    program = start(STOPS, tmp_path)
    assert program.stdout and program.stderr
    with deadlock_ends(program):
        assert program.stdout.readline() == "half written\n"
        assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == len(made) + 1  # the staged one
        program.send_signal(signal.SIGINT)
        said = program.stderr.readline()  # by the main thread, while the other one still writes
        _, errors = program.communicate("go on\n")
    assert program.returncode == 130, errors
    assert "interrupted" in said
    assert [inspect_checkpoint(path).verdict for path in made] == ["portable"] * 3 + ["not portable"] * 3
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == made


# The command, once it is told to begin; its files are checked by nobody, as starting torch takes seconds.
TRUSTS = """
import io, sys
from unsloth_hook.checkpoints import containers, stock_python
from unsloth_hook.command.program import app

class Trusts(stock_python.Verifier):
    def open(self, content, bare=False):
        root = containers.read(io.BytesIO(content)).pickles[0].root
        return {"class": str(root.func), "fields": list(root.state), "lacks": {}}

if "torch" not in sys.argv:
    stock_python.Verifier = Trusts
print("ready", flush=True)
sys.stdin.readline()
app(["convert", sys.argv[1], "--in-place", "--json"])
"""


@pytest.mark.parametrize("checked_by", ["nobody", pytest.param("torch", marks=pytest.mark.whole)])
def test_two_processes_at_once(tmp_path: Path, checked_by: str) -> None:
    make_tree(tmp_path, 5)
    one, other = (start(TRUSTS, tmp_path, checked_by) for _ in range(2))
    with deadlock_ends(one), deadlock_ends(other):
        for program in (one, other):
            assert program.stdout and program.stdout.readline() == "ready\n"
        for program in (one, other):
            assert program.stdin
            program.stdin.write("begin\n")
            program.stdin.flush()
        outputs = [program.communicate() for program in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0], outputs
    statuses = [{each["status"] for each in json.loads(output)} for output, _ in outputs]
    assert statuses[0] | statuses[1] <= {"converted", "already portable"}
    assert all(inspect_checkpoint(path).verdict == "portable" for path in tmp_path.rglob("*.bin"))
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 5


def test_a_younger_default_factory_field_is_filled_in(tmp_path: Path, verifier: Verifier) -> None:
    """Verified by a stand-in that says what a child with a younger TRL would say."""

    class Younger(Verifier):
        def open(self, content: bytes, bare: bool = False) -> dict[str, Any]:
            found = verifier.open(content, bare)
            return {**found, "lacks": {} if "young" in found["fields"] else {"young": []}}

    convert_checkpoint(files.SFT, tmp_path / "x.bin", verifier=Younger())
    assert inspect_checkpoint(tmp_path / "x.bin").fields["young"] == []


def test_every_container_keeps_its_shape(tmp_path: Path, verifier: Verifier) -> None:
    script = f"""
    import pickle, torch
    args = torch.load({str(files.SFT_PORTABLE)!r}, weights_only=False)
    torch.save(args, "legacy", _use_new_zipfile_serialization=False)
    open("pickle", "wb").write(pickle.dumps(args, 2))
    """
    preloaded.run_child(script, cwd=tmp_path)
    for path in (tmp_path / "legacy", tmp_path / "pickle"):
        stray = path.read_bytes().replace(
            b"trl.trainer.sft_config\nSFTConfig\n", b"UnslothSFTTrainer\nUnslothSFTConfig\n"
        )
        assert stray != path.read_bytes()
        path.write_bytes(stray)
    (tmp_path / "zip").write_bytes(files.SFT.read_bytes())
    for path in sorted(tmp_path.iterdir()):
        assert inspect_checkpoint(path).verdict == "not portable"
        convert_checkpoint(path, path, verifier=verifier)
        assert (inspect_checkpoint(path).format, inspect_checkpoint(path).verdict) == (path.name, "portable")
    assert file_paths.CHECKPOINT_NAME == "training_args.bin"


def test_a_stranger_is_left_out_and_never_imported(
    tmp_path: Path, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of its name is there to be imported. The file is a pickle with nothing around it."""
    (tmp_path / "trl_evil").mkdir()
    (tmp_path / "trl_evil/__init__.py").write_text(f"import os; os.mkdir({str(tmp_path / 'canary')!r})")
    monkeypatch.syspath_prepend(str(tmp_path))
    root = files.tree(files.SFT_PORTABLE)
    root.state["vllm_sampling_params"] = Built(Global("trl_evil.trainer.sft_config", "SFTConfig"), (), False)
    path = tmp_path / "training_args.bin"
    path.write_bytes(pickle_writer.write(root))
    done = convert_checkpoint(path, tmp_path / "out.bin", verifier=verifier)
    assert [lost.was for lost in done.not_carried] == ["trl_evil.trainer.sft_config.SFTConfig"]
    assert not (tmp_path / "canary").exists()
    assert inspect_checkpoint(tmp_path / "out.bin").verdict == "portable"
