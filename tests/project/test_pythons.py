"""All routes and commands that need no torch, with a stand-in TRL: what `nox -s pythons` runs on every Python."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import checkpoint_files as files
import pytest
import stand_in
from helpers import hooked_python, make_venv, run_child, site_packages

CONFIGS = {
    "trl/trainer/sft_config.py": "SFTConfig",
    "trl/trainer/grpo_config.py": "GRPOConfig",
    "trl/experimental/gkd/gkd_config.py": "GKDConfig",
}


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables under which a child is hooked and finds the stand-ins."""
    texts = {name: stand_in.CONFIG.format(name=cls) for name, cls in CONFIGS.items()}
    texts["trl/trainer/sft_trainer.py"] = "from .sft_config import SFTConfig\nclass SFTTrainer: pass\n"
    folder = stand_in.make(tmp_path_factory.mktemp("standins"), texts)
    (folder / "trl" / "__init__.py").write_text("from .trainer.sft_config import SFTConfig\n")
    return {"UNSLOTH_HOOK": "1", "PYTHONPATH": str(folder)}


def run(script: str, env: dict[str, str]) -> Any:
    done = run_child(script, env=env)
    assert done.stderr == ""
    return json.loads(done.stdout)


CLASSES = """
    import json, sys
    from trl import SFTConfig
    import trl.trainer.grpo_config, trl.experimental.gkd.gkd_config, trl.trainer.sft_trainer
    import copy, dataclasses, inspect, pickle, pickletools, typing, unsloth_hook

    made = SFTConfig("here", unsloth_num_chunks=4, max_seq_length=3)
    again = pickle.loads(pickle.dumps(made))
    names = {argument for code, argument, _ in pickletools.genops(pickle.dumps(made, 2)) if code.name == "GLOBAL"}
    print(json.dumps({
        "route": unsloth_hook.status()["route"],
        "states": sorted(entry["state"] for entry in unsloth_hook.status()["classes"].values()),
        "one": SFTConfig is trl.trainer.sft_trainer.SFTConfig is sys.modules["trl.trainer.sft_config"].SFTConfig,
        "state": vars(made),
        "equal": [again == made, copy.deepcopy(made) == made, dataclasses.replace(made, output_dir="x") == made],
        "globals": sorted(names),
        "repr": repr(made),
        "signature": str(inspect.signature(SFTConfig)),
        "signature of __init__": str(inspect.signature(SFTConfig.__init__)),
        "hints": sorted(typing.get_type_hints(SFTConfig)),
        "annotations": {name: str(value) for name, value in inspect.get_annotations(SFTConfig).items()},
        "source": inspect.getsource(SFTConfig).splitlines()[:2],
        "torch": "torch" in sys.modules,
    }))
"""


def test_the_classes_are_patched_from_the_start(env: dict[str, str]) -> None:
    told = run(CLASSES, env)
    extras = {
        "vllm_sampling_params": None,
        "unsloth_num_chunks": 4,
        "unsloth_logit_chunk_multiplier": None,
        "unsloth_grpo_mini_batch": None,
        "max_seq_length": 3,
    }
    assert told["route"] == "env"
    assert told["states"] == ["patched"] * 3
    assert told["one"] is True and told["torch"] is False
    given = {name: value for name, value in extras.items() if value}
    assert told["state"] == {"output_dir": "here", "max_length": 3, **given}
    assert told["equal"] == [True, True, False]
    assert told["globals"] == ["trl.trainer.sft_config SFTConfig"]
    assert told["repr"] == "SFTConfig(output_dir='here', max_length=3, unsloth_num_chunks=4, max_seq_length=3)"
    assert told["signature of __init__"].startswith("(self, output_dir: ")
    assert [name for name in extras if name in told["signature of __init__"]] == [*extras]
    assert [name for name in extras if name in told["signature"]] == [*extras]
    assert told["hints"] == sorted({"output_dir", "max_length", *extras})
    assert set(told["annotations"]) == {"max_length", *extras}
    assert told["source"] == ["@dataclass", "class SFTConfig(TrainingArguments):"]


def test_late_it_swaps_what_is_loaded(env: dict[str, str]) -> None:
    script = """
        import json, pickle
        from trl import SFTConfig as early
        import trl.trainer.sft_trainer as trainer, unsloth_hook
        before = early("here")
        with unsloth_hook.install():
            late = trainer.SFTConfig
            again = pickle.loads(pickle.dumps(before))
            told = [early is late, type(again) is late, again.unsloth_num_chunks, unsloth_hook.status()["late"]]
            print(json.dumps(told))
    """
    assert run(script, {**env, "UNSLOTH_HOOK": ""}) == [False, True, -1, True]


def test_stray_names_resolve(env: dict[str, str]) -> None:
    script = """
        import importlib, json, pickle, sys
        import trl.trainer.sft_trainer as trainer
        for prefix in ("", "unsloth_compiled_cache.", "unsloth_cache_"):
            name = prefix + "UnslothSFTTrainer"
            alias = importlib.import_module(name)
            assert alias.UnslothSFTConfig is trainer.SFTConfig and alias.UnslothSFTTrainer is trainer.SFTTrainer
            data = f"c{name}\\nUnslothSFTConfig\\n)\\x81.".encode("latin-1")  # a class, no arguments, an instance
            assert type(pickle.loads(data)) is trainer.SFTConfig
        moved = importlib.import_module("UnslothGKDTrainer").UnslothGKDConfig
        try:
            import UnslothNopeTrainer
        except ModuleNotFoundError as error:
            print(json.dumps([moved.__module__, error.name, error.args]))
    """
    expected = ["trl.experimental.gkd.gkd_config", "UnslothNopeTrainer", ["No module named 'UnslothNopeTrainer'"]]
    assert run(script, env) == expected


def test_a_checkpoint_is_inspected(env: dict[str, str]) -> None:
    names = ["unsloth-2026.7.1/sft_training_args.bin", "trl-1.16.0/trainer-sft_config.bin"]
    done = run_child(
        None,
        args=["-m", "unsloth_hook", "inspect", "--json", *(str(files.DATA / name) for name in names)],
        env=env,
        check=False,
    )
    found = json.loads(done.stdout)
    assert [one["config_class"] for one in found] == [files.MANIFEST[name]["class"] for name in names]
    assert found[0]["opens_as"] == found[1]["opens_as"] == "trl.trainer.sft_config.SFTConfig"
    assert found[0]["verdict"] == "not portable" and done.returncode == 1
    table = run_child(None, args=["-m", "unsloth_hook", "inspect", str(files.DATA / names[1])], env=env, check=False)
    assert "trl.trainer.sft_config.SFTConfig" in table.stdout


def test_doctor_says_that_it_is_on(env: dict[str, str]) -> None:
    done = run_child(None, args=["-m", "unsloth_hook", "doctor", "--json"], env=env, check=False)
    told = json.loads(done.stdout)
    problems = {finding["name"] for finding in told["findings"] if finding["level"] == "problem"}
    assert problems <= {"trl-shadowed"}  # which the stand-in is, where TRL is installed too
    assert done.returncode == len(problems)
    assert (told["active"], told["route"]) == (True, "env")
    assert told["python"]["version"] == "{}.{}.{}".format(*sys.version_info)
    off = run_child(None, args=["-m", "unsloth_hook", "doctor"], env={**env, "UNSLOTH_HOOK": "0"}, check=False)
    assert off.returncode == 1 and "UNSLOTH_HOOK" in off.stdout


def test_run_hooks_the_command_and_what_it_starts(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import multiprocessing, sys, unsloth_hook\n"
        "from trl import SFTConfig\n"
        "if __name__ == '__main__':\n"
        "    for method in multiprocessing.get_all_start_methods():\n"
        "        with multiprocessing.get_context(method).Pool(1) as pool:\n"
        "            made = pool.apply(SFTConfig, ('here',), {'unsloth_num_chunks': 4})\n"
        "            print(method, type(made) is SFTConfig, made.unsloth_num_chunks)\n"
        "    print(unsloth_hook.status()['route'], sys.argv[1:])\n"
    )
    plain = {**env, "UNSLOTH_HOOK": None}
    done = run_child(None, args=["-m", "unsloth_hook", "run", str(tmp_path / "train.py"), "--some"], env=plain)  # type: ignore[arg-type]
    lines = done.stdout.splitlines()
    assert lines.pop() == "run ['--some']"
    assert "spawn True 4" in lines
    assert all(line.endswith(" True 4") for line in lines)
    if os.name == "posix":
        assert [line.split()[0] for line in sorted(lines)] == ["fork", "forkserver", "spawn"]


def test_enable_and_disable(env: dict[str, str], tmp_path: Path) -> None:
    python = make_venv(tmp_path / "venv")
    for path in (site_packages(hooked_python()) / "_paths.pth").read_text().splitlines()[1:]:
        with (site_packages(python) / "_paths.pth").open("a") as paths:
            paths.write(f"{path}\n")
    state = "import sys; print('unsloth_hook.finder' in sys.modules)"
    plain = {**env, "UNSLOTH_HOOK": None}

    def told(*args: str) -> Any:
        return run_child(None, args=args, env=plain, python=python, check=False)  # type: ignore[arg-type]

    assert told("-c", state).stdout == "False\n"
    enabled = told("-m", "unsloth_hook", "enable")
    assert enabled.returncode == 0, enabled.stdout + enabled.stderr
    assert told("-c", state).stdout == "True\n"
    assert told("-m", "unsloth_hook", "disable").returncode == 0
    assert told("-c", state).stdout == "False\n"
