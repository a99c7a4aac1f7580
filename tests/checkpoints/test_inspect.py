"""inspect: class, values and verdicts of real files, without running them, without torch, without showing a secret."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoint_files as files
import preloaded
import pytest
from helpers import run_child
from preloaded import Done

from unsloth_hook.checkpoints.errors import CheckpointError
from unsloth_hook.checkpoints.inspection import inspect_checkpoint
from unsloth_hook.checkpoints.pickle_tree import Built, Global
from unsloth_hook.releases import installed_classes

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123"


def in_a_process(*args: object) -> Any:
    """`unsloth-hook ...` in a process of its own."""
    return run_child(args=["-m", "unsloth_hook", *map(str, args)], check=False)


@pytest.mark.parametrize("name", files.ALL)
def test_class_and_values_are_those_of_the_manifest(name: str) -> None:
    found = inspect_checkpoint(files.DATA / name)
    assert found.config_class == files.MANIFEST[name]["class"]
    assert {key: found.fields[key] for key in files.values(name)} == files.values(name)
    assert found.format == "zip"
    if "n_state" in files.MANIFEST[name]:
        assert len(found.fields) == files.MANIFEST[name]["n_state"]


def test_portable_means_that_a_stock_python_opens_it() -> None:
    script = """
    import json, sys, torch
    opened = []
    for name in sys.argv[1:]:
        try:
            torch.load(name, weights_only=False)
            opened.append(name)
        except (ModuleNotFoundError, AttributeError):
            pass
    print(json.dumps(opened))
    """
    paths = [str(files.DATA / name) for name in files.ALL]
    opened = preloaded.run_child(script, args=paths).json()
    assert 0 < len(opened) < len(paths)
    assert [path for path in paths if inspect_checkpoint(path).verdict == "portable"] == opened


def test_stray_moved_removed_and_portable_names_are_told_apart() -> None:
    def verdict(folder: str, name: str) -> str:
        found = inspect_checkpoint(files.DATA / folder)
        return next(each.verdict for each in found.globals if each.name.endswith(name))

    assert verdict("unsloth-2026.7.1/sft_training_args.bin", "UnslothSFTConfig") == "stray"
    assert verdict("unsloth-2026.7.1/sft_training_args.bin", "IntervalStrategy") == "portable"
    if installed_classes.version("trl") == "1.16.0":
        assert verdict("trl-0.24.0/trainer-orpo_config.bin", "ORPOConfig") == "moved"
        assert verdict("trl-0.24.0/trainer-ppo_config.bin", "PPOConfig") == "removed"
        assert verdict("trl-0.24.0/trainer-dpo_config.bin", "FDivergenceType") == "removed"


def test_a_member_that_an_enum_has_lost_is_removed(tmp_path: Path) -> None:
    root = files.tree(files.SFT_PORTABLE)
    root.state["optim"] = Built(Global("transformers.training_args", "OptimizerNames"), ("adam_of_1999",), True)
    found = inspect_checkpoint(files.write(tmp_path, root))
    assert found.verdict == "not portable"
    assert next(each for each in found.globals if each.name.endswith("OptimizerNames")).verdict == "removed"
    assert found.fields["optim"] == "adam_of_1999"


def test_nothing_heavy_is_imported() -> None:
    script = f"""
    import sys
    from unsloth_hook.checkpoints.inspection import inspect_checkpoint
    before = set(sys.modules)
    for name in {[str(files.SFT), str(files.DPO)]!r}:
        inspect_checkpoint(name)
    roots = {{name.partition(".")[0] for name in sys.modules}}
    heavy = roots & {{"torch", "transformers", "trl", "accelerate", "numpy"}}
    assert not heavy, heavy
    """
    run_child(script)


def test_help_imports_nothing_heavy_and_none_of_the_readers() -> None:
    script = """
    import sys
    from unsloth_hook.command.program import app
    try:
        app(["--help"], prog_name="unsloth-hook")
    except SystemExit as end:
        assert not end.code
    assert not [name for name in sys.modules if name.partition(".")[0] in ("torch", "transformers", "trl", "fsspec")]
    assert "unsloth_hook.checkpoints.pickle_reader" not in sys.modules
    """
    assert "inspect" in run_child(script).stdout


def secretive(folder: Path) -> Path:
    root = files.tree(files.SFT_PORTABLE)
    root.state.update(hub_token=SECRET, push_to_hub_token="not-of-the-usual-form", eos_token="<|im_end|>")
    root.state["model_init_kwargs"] = {"token": "nested-secret", "note": f"mine is {SECRET}", "api_key": "key-secret"}
    return files.write(folder, root)


def test_tokens_are_never_shown(tmp_path: Path, program: Callable[..., Done]) -> None:
    path = secretive(tmp_path)
    found = inspect_checkpoint(path)
    assert found.fields["hub_token"] == "<HUB_TOKEN>"
    assert found.fields["push_to_hub_token"] == "<PUSH_TO_HUB_TOKEN>"
    assert found.fields["eos_token"] == "<|im_end|>"
    assert found.fields["model_init_kwargs"] == {"token": "<TOKEN>", "note": "mine is <TOKEN>", "api_key": "<API_KEY>"}
    shown = [repr(found)]
    for options in ([], ["--json"], ["--fields", "hub_token,push_to_hub_token,model_init_kwargs"], [path]):
        shown.append(program("inspect", path, *options).stdout)
    for text in shown:
        assert len(text) > 100
        for secret in (SECRET, "not-of-the-usual-form", "nested-secret", "key-secret"):
            assert secret not in text


def test_a_token_that_is_not_set_is_shown_as_none() -> None:
    assert inspect_checkpoint(files.SFT).fields["hub_token"] is None


def test_exit_codes(tmp_path: Path, program: Callable[..., Done]) -> None:
    bad = tmp_path / "bad.bin"
    bad.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    empty = tmp_path / "empty.bin"
    empty.touch()
    cases = {
        (files.SFT_PORTABLE,): 0,
        (files.SFT,): 1,
        (bad,): 2,
        (empty,): 2,
        (tmp_path / "missing.bin",): 2,
        (files.SFT_PORTABLE, files.SFT): 1,
        (files.SFT, bad, files.SFT_PORTABLE): 2,
    }
    for paths, code in cases.items():
        done = program("inspect", *paths)
        assert done.returncode == code, (paths, done)
        assert all(path.name in done.stdout for path in paths)
    assert "os.system" in program("inspect", bad).stdout
    for path, code in ((files.SFT_PORTABLE, 0), (files.SFT, 1), (bad, 2)):
        assert in_a_process("inspect", path).returncode == code


def test_json_fields_and_folders(tmp_path: Path, program: Callable[..., Done]) -> None:
    for run in ("a", "b/checkpoint-5"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "training_args.bin").write_bytes(files.SFT.read_bytes())
    (tmp_path / "a/optimizer.bin").write_bytes(b"not looked at")
    done = program("inspect", tmp_path, files.SFT_PORTABLE, "--json", "--fields", "seed,learning_rate,nosuch")
    found = json.loads(done.stdout)
    assert [Path(each["path"]).relative_to(tmp_path).as_posix() for each in found[:2]] == [
        "a/training_args.bin",
        "b/checkpoint-5/training_args.bin",
    ]
    assert all(each["fields"] == {"seed": 11, "learning_rate": 0.0003} for each in found)
    table = program("inspect", tmp_path, "--fields", "seed").stdout
    assert "seed" in table and "11" in table and "2 files: 2 not portable" in table


def test_a_folder_without_checkpoints_is_an_error(tmp_path: Path, program: Callable[..., Done]) -> None:
    done = program("inspect", tmp_path)
    assert done.returncode == 2
    assert "no training_args.bin" in done.stderr


def test_json_is_strict(tmp_path: Path, program: Callable[..., Done]) -> None:
    root = files.tree(files.SFT_PORTABLE)
    root.state.update(learning_rate=float("inf"), weight_decay=float("nan"))

    def refuse(word: str) -> None:
        raise AssertionError(word)

    found = json.loads(program("inspect", files.write(tmp_path, root), "--json").stdout, parse_constant=refuse)
    assert (found[0]["fields"]["learning_rate"], found[0]["fields"]["weight_decay"]) == ("inf", "nan")


def test_several_processes_give_the_same_answer() -> None:
    alone, shared = (
        in_a_process("inspect", files.DATA / "trl-0.24.0/trainer-dpo_config.bin", files.SFT, "--json", "-j", j)
        for j in (1, 2)
    )
    assert json.loads(alone.stdout) == json.loads(shared.stdout)


def test_every_protocol_and_container(tmp_path: Path) -> None:
    script = f"""
    import pickle, torch
    args = torch.load({str(files.SFT_PORTABLE)!r}, weights_only=False)
    for protocol in (2, 3, 4, 5):
        open(f"pickle-{{protocol}}", "wb").write(pickle.dumps(args, protocol))
        torch.save(args, f"zip-{{protocol}}", pickle_protocol=protocol)
        torch.save(args, f"legacy-{{protocol}}", pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    """
    preloaded.run_child(script, cwd=tmp_path)
    expected = inspect_checkpoint(files.SFT_PORTABLE)
    made = sorted(tmp_path.iterdir())
    assert len(made) == 12
    for path in made:
        found = inspect_checkpoint(path)
        assert found.format == path.name.partition("-")[0]
        assert (found.verdict, found.config_class) == ("portable", expected.config_class)
        # (Loading gave the object its own machine's device and state; the values are those of the file.)
        assert {key: found.fields[key] for key in ("seed", "learning_rate", "eval_strategy", "accelerator_config")} == {
            key: expected.fields[key] for key in ("seed", "learning_rate", "eval_strategy", "accelerator_config")
        }
        assert set(found.fields) == set(expected.fields)


def test_urls_by_fsspec() -> None:
    script = f"""
    import fsspec, json, pathlib
    from unsloth_hook.checkpoints.inspection import inspect_checkpoint
    from unsloth_hook.command.program import app
    memory = fsspec.filesystem("memory")
    for name in ("runs/a/training_args.bin", "runs/b/c/training_args.bin", "runs/other.bin"):
        memory.pipe_file("/" + name, pathlib.Path({str(files.SFT)!r}).read_bytes())
    assert inspect_checkpoint("memory://runs/a/training_args.bin").fields["seed"] == 11
    try:
        app(["inspect", "memory://runs", "--json", "-j", "2"])
    except SystemExit as end:
        assert end.code == 1, end.code
    """
    found = json.loads(run_child(script).stdout)
    assert [each["path"] for each in found] == [f"memory:///runs/{name}/training_args.bin" for name in ("a", "b/c")]


def test_a_scheme_without_a_driver_says_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nosuchscheme"):
        inspect_checkpoint("nosuchscheme://bucket/training_args.bin")


def test_each_content_is_walked_once_and_each_source_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walked, read = [], []
    from unsloth_hook.checkpoints import containers, pickle_reader

    containers._walk_small.cache_clear()
    real, real_source = pickle_reader.read, zipfile.ZipFile.open
    monkeypatch.setattr(pickle_reader, "read", lambda *args: (walked.append(1), real(*args))[1])
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *args, **kw: (read.append(1), real_source(*args, **kw))[1])
    installed_classes.forget()
    sources = []
    loader = type(installed_classes._spec("trl.trainer.sft_config").loader)
    get_source = loader.get_source
    monkeypatch.setattr(loader, "get_source", lambda self, name: (sources.append(name), get_source(self, name))[1])
    for _ in range(3):
        for name in files.ALL:
            inspect_checkpoint(files.DATA / name)
    assert len(read) == 3 * len(files.ALL)
    assert 0 < len(walked) <= len(files.ALL)  # the checkpoints of one run hold the same bytes
    assert len(sources) == len(set(sources)) < 60


def test_trl_is_found_in_a_zip(tmp_path: Path) -> None:
    """A TRL of two files stands in for a whole one: what is tested is where it is looked for."""
    archive = tmp_path / "trl.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("trl/__init__.py", "")
        made.writestr("trl/trainer/__init__.py", "")
        made.writestr("trl/trainer/sft_config.py", "class SFTConfig(TrainingArguments):\n    pass\n")
    script = f"""
    import sys
    sys.path.insert(0, {str(archive)!r})
    from unsloth_hook.releases import installed_classes
    assert installed_classes.in_trl("SFT") == ("trl.trainer.sft_config", "SFTConfig")
    assert installed_classes.in_trl("GRPO") is None
    assert "trl" not in sys.modules
    """
    run_child(script)


def test_without_trl_names_are_judged_by_the_table() -> None:
    script = f"""
    import sys
    from unsloth_hook.releases import installed_classes
    real = installed_classes._spec
    gone = ("trl", "transformers", "accelerate")
    installed_classes._spec = lambda module: None if module.partition(".")[0] in gone else real(module)
    from unsloth_hook.checkpoints.inspection import inspect_checkpoint
    assert inspect_checkpoint({str(files.SFT_PORTABLE)!r}).verdict == "portable"
    assert inspect_checkpoint({str(files.SFT)!r}).verdict == "not portable"
    found = inspect_checkpoint({str(files.DATA / "trl-0.24.0/trainer-orpo_config.bin")!r})
    assert (found.verdict, found.globals[0].verdict) == ("not portable", "moved"), found
    """
    run_child(script)
