"""Child script: what Unsloth's own tests of this fault (its pull request 8344 and neighbours) ask, in our own words.

    python child_regression.py FOLDER

Each check is a function that raises; the names of those that pass are written down. What passes without the hook must
pass with it.
"""

import copy
import copyreg
import io
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import probes
from child_order import digest, globals_of, make

if __name__ == "__main__":
    import trl
    from trl import GRPOConfig as captured_grpo
    from trl import SFTConfig as captured_sft

    class Own(captured_sft):  # type: ignore[misc, valid-type]
        """A user's subclass, from before Unsloth came."""

    probes.import_unsloth()
    if probes.FIXED:
        probes.patch_trainers()
    import torch
    import transformers
    import unsloth.models.rl as rl
    from trl.trainer import grpo_config, grpo_trainer, sft_config, sft_trainer

CHECKS: "list[Callable[[], None]]" = []


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS.append(function)
    return function


def saved(config: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(config, stream)
    return stream.getvalue()


def stray(config: Any) -> list[str]:
    return [name for name in globals_of(pickle.dumps(config, 2)) if "unsloth" in name.lower()]


@check
def one_object_at_all_names() -> None:
    places = (trl, trl.trainer, grpo_trainer, grpo_config)
    assert len({id(place.GRPOConfig) for place in places}) == 1
    assert trl.SFTConfig is trl.trainer.SFTConfig is sft_config.SFTConfig
    assert issubclass(sft_trainer.SFTConfig, sft_config.SFTConfig)


@check
def a_captured_config_saves() -> None:
    for cls in (captured_sft, captured_grpo):
        assert saved(make(cls))


@check
def a_new_config_saves_under_trls_name() -> None:
    assert stray(make(trl.SFTConfig)) == []
    assert "trl.trainer.sft_config SFTConfig" in globals_of(pickle.dumps(make(trl.SFTConfig), 2))


@check
def a_captured_config_saves_under_trls_name() -> None:
    assert stray(make(captured_sft)) == [] and stray(make(captured_grpo)) == []


@check
def every_protocol() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for cls in (captured_sft, trl.SFTConfig, captured_grpo, trl.GRPOConfig):
            twin = pickle.loads(pickle.dumps(make(cls), protocol))
            assert isinstance(twin, cls) and twin.output_dir == "out"


@check
def deepcopy_keeps_the_type() -> None:
    for cls in (trl.SFTConfig, trl.GRPOConfig):
        assert type(copy.deepcopy(make(cls))) is type(copy.copy(make(cls))) is cls


@check
def deepcopy_of_a_captured_config_keeps_all() -> None:
    config = make(captured_sft)
    twin = copy.deepcopy(config)
    assert isinstance(twin, captured_sft) and digest(twin) == digest(config)


@check
def names_of_the_class() -> None:
    for module, name in ((sft_config, "SFTConfig"), (grpo_config, "GRPOConfig")):
        cls = getattr(module, name)
        assert (cls.__module__, cls.__qualname__, cls.__name__) == (module.__name__, name, name)


@check
def the_captured_class_knows_its_owner() -> None:
    for captured, owner in ((captured_sft, sft_config.SFTConfig), (captured_grpo, grpo_config.GRPOConfig)):
        assert captured.__dict__["_unsloth_config_pickle_target"] is owner
        assert captured in copyreg.dispatch_table


@check
def a_sibling_is_saved_as_the_owner() -> None:
    class Shim(captured_sft):  # type: ignore[misc, valid-type]
        pass

    Shim.__name__ = Shim.__qualname__ = "SFTConfig"
    Shim.__module__ = "trl.trainer.sft_config"
    rl._register_config_pickle_fallback(Shim, sft_config.SFTConfig)
    assert stray(make(Shim)) == []


@check
def an_unrelated_class_is_left_alone() -> None:
    assert not rl._config_reduction_is_safe(transformers.GenerationConfig, sft_config.SFTConfig)
    rl._register_config_pickle_fallback(transformers.GenerationConfig, sft_config.SFTConfig)
    assert transformers.GenerationConfig not in copyreg.dispatch_table


@check
def registering_again_changes_nothing() -> None:
    before = dict(copyreg.dispatch_table)
    for _ in range(3):
        rl._register_config_pickle_fallback(captured_sft, sft_config.SFTConfig)
        rl._patch_config_pickle_identity(captured_sft, sft_config.SFTConfig)
    assert dict(copyreg.dispatch_table) == before


@check
def patched_is_told_from_not_patched() -> None:
    assert rl._is_unsloth_patched_config(sft_config.SFTConfig)
    assert not rl._is_unsloth_patched_config(captured_sft)
    assert not rl._is_unsloth_patched_config(transformers.TrainingArguments)


@check
def the_way_back_to_trls_class() -> None:
    cls = sft_config.SFTConfig
    while "_unsloth_patched_rl_config" in cls.__dict__:
        cls = cls.__mro__[1]
    assert cls is captured_sft


@check
def a_config_that_builds_on_sft_is_not_downcast() -> None:
    class Mine(captured_sft):  # type: ignore[misc, valid-type]
        pass

    assert isinstance(make(Mine), sft_trainer.SFTConfig)
    assert not isinstance(make(transformers.TrainingArguments), sft_trainer.SFTConfig)


@check
def a_users_subclass_keeps_its_name() -> None:
    config = make(Own)
    assert "__main__ Own" in globals_of(pickle.dumps(config, 2))
    assert type(copy.deepcopy(config)) is Own


@check
def the_captured_class_has_unsloths_defaults() -> None:
    config = captured_sft("out", use_cpu=True, bf16=False)
    assert getattr(config, "loss_type", "nll") == "nll"


@check
def conversion_has_the_fields() -> None:
    arguments = make(transformers.TrainingArguments).to_dict()
    arguments.pop("push_to_hub_token", None)
    names = sft_config.SFTConfig.__dataclass_fields__
    config = sft_config.SFTConfig(**{name: value for name, value in arguments.items() if name in names})
    assert config.unsloth_num_chunks == -1
    assert "unsloth_num_chunks" in config.to_dict()


@check
def parsers_know_the_fields() -> None:
    parser = transformers.HfArgumentParser(sft_config.SFTConfig)
    (config,) = parser.parse_args_into_dataclasses(["--output_dir", "out", "--use_cpu", "--unsloth_num_chunks", "4"])
    assert config.unsloth_num_chunks == 4


@check
def opens_where_unsloth_is_not_imported() -> None:
    script = """
import sys
before = set(sys.modules)
import torch
config = torch.load(sys.argv[1], weights_only=False)
print(type(config).__module__, type(config).__qualname__, getattr(config, "unsloth_num_chunks", None))
new = [name for name in set(sys.modules) - before if "unsloth" in name.lower() and not name.startswith("unsloth_hook.")]
assert not new, new
"""
    for name, cls in (("captured", captured_sft), ("new", trl.SFTConfig)):
        Path(f"{name}.bin").write_bytes(saved(make(cls)))
        done = subprocess.run([sys.executable, "-c", script, f"{name}.bin"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("trl.trainer.sft_config SFTConfig"), done.stdout


@check
def travels_to_a_spawned_process() -> None:
    # What the child imports must be there for it: this file itself, as __mp_main__, which imports no Unsloth.
    for cls in (captured_sft, trl.SFTConfig):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(where_from, (make(cls),)) == "trl.trainer.sft_config.SFTConfig"


def where_from(config: Any) -> str:
    assert "unsloth" not in sys.modules
    return f"{type(config).__module__}.{type(config).__qualname__}"


def main(folder: Path) -> None:
    outcome: dict[str, str] = {}
    for function in CHECKS:
        try:
            function()
            outcome[function.__name__] = "passed"
        except Exception:
            outcome[function.__name__] = traceback.format_exc()
    (folder / "facts.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    main(Path(sys.argv[1]))
