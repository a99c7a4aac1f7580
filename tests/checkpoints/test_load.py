"""load_training_args: every real file, with the hook on and off, with the values that it had."""

import json
from pathlib import Path
from typing import Any

import checkpoint_files as files
import helpers
import pytest
from preloaded import run_child

from unsloth_hook.checkpoints.errors import CheckpointError, UnsafeCheckpointError
from unsloth_hook.checkpoints.loading import load_training_args
from unsloth_hook.checkpoints.pickle_tree import Built, Global

LOAD_ALL = """
import dataclasses, json, sys, warnings
from unsloth_hook.checkpoints.errors import CheckpointWarning
from unsloth_hook.checkpoints.loading import load_training_args
results = {}
for path in sys.argv[1:]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = load_training_args(path)
    assert len(repr(config)) > 1000
    values = config.to_dict()
    results[path] = {
        "class": f"{type(config).__module__}.{type(config).__qualname__}",
        "values": json.loads(json.dumps(values, default=str)),
        "state": {name: str(getattr(value, "value", value)) for name, value in vars(config).items()},
        "declared": [field.name for field in dataclasses.fields(config)],
        "warnings": [str(each.message) for each in caught if issubclass(each.category, CheckpointWarning)],
        "files": [each.filename for each in caught if issubclass(each.category, CheckpointWarning)],
    }
import unsloth_hook
results["patched"] = unsloth_hook.is_patched(__import__("trl").SFTConfig)
print(json.dumps(results))
"""


PATHS = [str(files.DATA / name) for name in files.ALL]


@pytest.fixture(scope="module")
def loaded() -> Any:
    return run_child(LOAD_ALL, args=PATHS, env={"UNSLOTH_HOOK": "0"}).json()


@pytest.fixture(scope="module")
def loaded_with_hook() -> Any:
    # What is loaded makes no difference either.
    return run_child("from trl import SFTConfig, SFTTrainer" + LOAD_ALL, args=PATHS, env={"UNSLOTH_HOOK": "1"}).json()


@pytest.fixture(scope="module")
def loaded_first_of_all() -> Any:
    """In a Python that has imported neither torch nor transformers before."""
    done = helpers.run_child(LOAD_ALL, args=PATHS, env={"UNSLOTH_HOOK": "0"})
    return json.loads(done.stdout.splitlines()[-1])


def test_the_two_runs_differ_in_the_hook(loaded: dict[str, Any], loaded_with_hook: dict[str, Any]) -> None:
    assert (loaded["patched"], loaded_with_hook["patched"]) == (False, True)


@pytest.mark.parametrize(
    "where", ["loaded", "loaded_with_hook", pytest.param("loaded_first_of_all", marks=pytest.mark.whole)]
)
@pytest.mark.parametrize("name", files.ALL)
def test_the_values_are_those_of_the_file(name: str, where: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(where)[str(files.DATA / name)]
    for key, value in files.values(name).items():
        assert found["state"][key] == str(value)
        assert key not in found["declared"] or found["values"][key] == value
    # Nothing is lost, declared today or not: every value of the pickle is an attribute of the object.
    assert set(files.tree(files.DATA / name).state) <= set(found["state"])


@pytest.mark.parametrize("name", files.ALL)
def test_the_hook_makes_no_difference_to_what_trl_declares(
    name: str, loaded: dict[str, Any], loaded_with_hook: dict[str, Any]
) -> None:
    off, on = (each[str(files.DATA / name)] for each in (loaded, loaded_with_hook))
    assert on["class"] == off["class"]
    assert {key: on["values"][key] for key in off["values"]} == off["values"]
    assert on["warnings"] == off["warnings"]


@pytest.mark.parametrize("name", files.ALL)
def test_only_a_class_that_is_gone_warns_and_names_both(name: str, loaded: dict[str, Any]) -> None:
    found = loaded[str(files.DATA / name)]
    stem = files.MANIFEST[name]["class"].rpartition(".")[2].removeprefix("Unsloth")
    if found["class"].rpartition(".")[2] == stem:
        assert found["warnings"] == []
    else:
        (warning,) = found["warnings"]
        assert files.MANIFEST[name]["class"] in warning and found["class"] in warning
        assert found["files"] == [found["files"][0]] and found["files"][0].endswith("child.py")


def test_removed_classes_go_to_what_they_extended(loaded: dict[str, Any]) -> None:
    """Where the installed TRL has what the class extended in its day (TRL 1.16: OnlineDPOConfig, no NashMDConfig)."""

    def becomes(name: str) -> str:
        return str(loaded[str(files.DATA / name)]["class"]).rpartition(".")[2]

    nearest = {
        "unsloth-2026.7.1/nashmd_training_args.bin": {"NashMDConfig", "OnlineDPOConfig"},
        "trl-0.24.0/experimental-gfpo-gfpo_config.bin": {"GFPOConfig", "GRPOConfig"},
        "unsloth-2025.9.1/iterativesft_training_args.bin": {"IterativeSFTConfig", "TrainingArguments"},
        "unsloth-2026.7.1/ppo_training_args.bin": {"PPOConfig", "TrainingArguments"},
    }
    for name, allowed in nearest.items():
        assert becomes(name) in allowed


def test_what_is_made_of_odd_files(tmp_path: Path) -> None:
    """One child for the cases that need torch: each file is a real one with one thing changed."""

    def changed(name: str, **state: Any) -> str:
        root = files.tree(files.SFT_PORTABLE)
        root.state.update(state)
        return str(files.write(tmp_path, root, name))

    gone_enum = Built(Global("trl.trainer.dpo_config", "NoSuchEnumType"), ("reverse_kl",), True)
    lost_member = Built(Global("transformers.training_args", "OptimizerNames"), ("adam_of_1999",), True)
    gone_plugin = Built(Global("accelerate.utils.dataclasses", "GonePluginConfig"), (), False, state={"a": [1]})
    ordered = Built(Global("collections", "OrderedDict"), (), True, items=[("x", 1)])
    shared = [1, 2]
    path = changed(
        "odd.bin",
        f_divergence_type=gone_enum,
        optim=lost_member,
        fsdp_config={"plugin": gone_plugin},
        model_init_kwargs={"dtype": Global("torch", "bfloat16"), "o": ordered, "t": (1, 2.5), "s": {"k"}},
        one=shared,
        two=shared,
    )
    lacking = files.tree(files.SFT_PORTABLE)
    for field in (
        "lr_scheduler_kwargs",
        "accelerator_config",
        "learning_rate",
        "report_to",
        "eval_strategy",
        "include_for_metrics",
    ):
        lacking.state.pop(field, None)
    lacking.state["evaluation_strategy"] = "steps"
    lacking_path = str(files.write(tmp_path, lacking, "lacking.bin"))
    wide = files.tree(files.SFT_PORTABLE)
    del wide.state["max_length"]
    wide.state["max_seq_length"] = 4096
    wide_path = str(files.write(tmp_path, wide, "wide.bin"))
    script = f"""
    import dataclasses, warnings, torch
    from unsloth_hook.checkpoints.loading import load_training_args
    config = load_training_args({path!r})
    assert config.f_divergence_type == "reverse_kl" and type(config.f_divergence_type) is str
    assert config.optim == "adam_of_1999" and type(config.optim) is str
    assert config.fsdp_config == {{"plugin": {{"a": [1]}}}}
    kwargs = config.model_init_kwargs
    assert kwargs["dtype"] is torch.bfloat16 and list(kwargs["o"].items()) == [("x", 1)]
    assert type(kwargs["o"]).__name__ == "OrderedDict" and kwargs["t"] == (1, 2.5) and kwargs["s"] == {{"k"}}
    assert config.one is config.two
    assert type(config.eval_strategy).__name__ == "IntervalStrategy"
    assert config._setup_devices == torch.device("cpu")
    repr(config), config.to_dict()

    config = load_training_args({lacking_path!r})
    defaults = {{field.name: field for field in dataclasses.fields(config)}}
    assert config.learning_rate == defaults["learning_rate"].default
    there = {[*lacking.state, "eval_strategy"]!r}
    for name, field in defaults.items():
        if name not in there and field.default_factory is not dataclasses.MISSING:
            assert getattr(config, name) == field.default_factory(), name
    assert config.eval_strategy == "steps" and config.evaluation_strategy == "steps"
    repr(config), config.to_dict()
    assert load_training_args({wide_path!r}).max_length == 4096

    # Two objects of one file share no default.
    other = load_training_args({lacking_path!r})
    factories = [name for name, field in defaults.items() if field.default_factory is not dataclasses.MISSING]
    assert all(getattr(config, name) is not getattr(other, name) for name in factories if getattr(config, name) in
    ([], {{}}))
    """
    run_child(script)


def test_a_default_factory_field_that_the_file_lacks(tmp_path: Path) -> None:
    """A config class added to a real TRL module: no installed config is sure to have such a field."""
    root = Built(Global("trl.trainer.sft_config", "SFTConfig"), (), False, state={"seed": 3})
    path = files.write(tmp_path, root)
    script = f"""
    import dataclasses, trl.trainer.sft_config as home
    @dataclasses.dataclass
    class SFTConfig(home.SFTConfig):
        young: list = dataclasses.field(default_factory=lambda: ["fresh"])
    SFTConfig.__module__ = home.__name__
    home.SFTConfig = SFTConfig
    from unsloth_hook.checkpoints.loading import load_training_args
    first, second = (load_training_args({str(path)!r}) for _ in range(2))
    assert first.seed == 3 and first.young == ["fresh"] and first.young is not second.young
    assert "young" in first.to_dict() and "young" in repr(first)
    """
    run_child(script)


@pytest.mark.parametrize("protocol", [1, 2, 4])
def test_what_unsloths_own_reducer_writes_is_as_what_trl_writes(tmp_path: Path, protocol: int) -> None:
    """Unsloth from 2026.8 on pickles instances of displaced classes by `copyreg._reconstructor`, as protocol 1 does."""
    written, plain = tmp_path / "training_args.bin", files.SFT_PORTABLE
    script = f"""
    import copyreg, pickle, torch
    from unsloth_hook import convert_checkpoint, inspect_checkpoint, load_training_args

    class AsUnsloth(pickle._Pickler):
        def reducer_override(self, value):
            if type(value).__name__ != "SFTConfig":
                return NotImplemented
            return copyreg._reconstructor, (type(value), object, None), vars(value)

    config = torch.load({str(plain)!r}, weights_only=False)
    with open({str(written)!r}, "wb") as file:
        AsUnsloth(file, {protocol}).dump(config)
    assert b"_reconstructor" in open({str(written)!r}, "rb").read()
    seen = inspect_checkpoint({str(written)!r})
    assert (seen.verdict, seen.config_class) == ("portable", "trl.trainer.sft_config.SFTConfig")
    assert seen.fields == inspect_checkpoint({str(plain)!r}).fields
    first, second = (load_training_args(path) for path in ({str(written)!r}, {str(plain)!r}))
    assert type(first) is type(second) and first.to_dict() == second.to_dict() and set(vars(first)) == set(vars(second))
    """
    run_child(script)


def test_what_is_not_on_the_list_is_refused_by_name(tmp_path: Path) -> None:
    """vllm cannot be had on every machine: its name stands in the file, and is never imported."""
    root = files.tree(files.SFT)
    root.state["vllm_sampling_params"] = Built(Global("vllm.sampling_params", "SamplingParams"), (1, 0.9), True)
    path = files.write(tmp_path, root)
    with pytest.raises(UnsafeCheckpointError) as caught:
        load_training_args(path)
    assert "vllm.sampling_params.SamplingParams" in str(caught.value)
    assert str(path) in str(caught.value) and "weights_only" in str(caught.value)


@pytest.mark.parametrize("holds", [{"a": 1}, [1, 2], 5, "text", None])
def test_a_pickle_of_something_else(tmp_path: Path, holds: Any) -> None:
    path = files.write(tmp_path, holds)
    with pytest.raises(CheckpointError, match="not the training arguments"):
        load_training_args(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"nosuch\.bin: cannot be read \(No such file"):
        load_training_args(tmp_path / "nosuch.bin")


def test_a_path_of_the_wrong_type() -> None:
    with pytest.raises(TypeError):
        load_training_args(5)  # type: ignore[arg-type]
