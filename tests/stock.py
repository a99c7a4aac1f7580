"""What "as stock" means here: the same script in two processes, with the hook and without, and what both printed."""

import functools
import json
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import helpers

TESTS = Path(__file__).parent

# Contract 2, written out anew: name -> types, default.
EXTRAS = {
    "vllm_sampling_params": (["typing.Any", "<class 'NoneType'>"], "None"),
    "unsloth_num_chunks": (["<class 'int'>", "<class 'NoneType'>"], "-1"),
    "unsloth_logit_chunk_multiplier": (["<class 'int'>", "<class 'NoneType'>"], "None"),
    "unsloth_grpo_mini_batch": (["<class 'int'>", "<class 'NoneType'>"], "None"),
    "max_seq_length": (["<class 'int'>", "<class 'NoneType'>"], "None"),
}

# Every public config of TRL 1.16, so that a walk that finds too few is noticed.
CONFIGS = [
    "A2POConfig",
    "AsyncDistillationConfig",
    "AsyncGRPOConfig",
    "CPOConfig",
    "DPOConfig",
    "DistillationConfig",
    "GKDConfig",
    "GMPOConfig",
    "GOLDConfig",
    "GRPOConfig",
    "IWOPDConfig",
    "KTOConfig",
    "ORPOConfig",
    "OnlineDPOConfig",
    "RLOOConfig",
    "RewardConfig",
    "SDFTConfig",
    "SDPOConfig",
    "SFTConfig",
    "ServerDistillationConfig",
    "TPOConfig",
]

OBSERVE = """
import json, sys, warnings
import child_configs

written = child_configs.record_classes_as_written()
warnings.simplefilter("ignore")
import child_classes, child_pickles

configs = child_configs.public_configs()
print(json.dumps({
    "classes": {name: child_classes.describe(cls, written) for name, cls in configs.items()},
    "pickles": {name: child_pickles.describe(cls, sys.argv[1]) for name, cls in configs.items()},
    "bystanders": child_classes.bystanders(),
}, default=str))
"""


def both(script: str, *, folders: Mapping[str, Path] | None = None, **options: Any) -> dict[str, Any]:
    """Run a script that prints JSON in two processes at once, one with the hook (by the variable) and one without.

    Args:
        script: Python source; it may import the `child_*.py` files that lie beside this one.
        folders: `stock` and `hooked`, each given to its process as the first argument.
        options: as for `helpers.run_child`.

    Returns:
        What they printed: `{"stock": ..., "hooked": ...}`.
    """
    helpers.hooked_python()  # made once, before the threads ask for it

    def run(which: str) -> Any:
        env = {"UNSLOTH_HOOK": "1" if which == "hooked" else "0", "TRL_EXPERIMENTAL_SILENCE": "1"}
        env.update(PYTHONPATH=str(TESTS), PYTHONDONTWRITEBYTECODE="1", **options.get("env", {}))
        args = [str(folders[which])] if folders else []
        done = helpers.run_child(script, **{**options, "env": env, "args": args})
        return json.loads(done.stdout.splitlines()[-1])

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(("stock", "hooked"), pool.map(run, ("stock", "hooked")), strict=True))


@functools.cache
def folders() -> dict[str, Path]:
    """Where the two processes of `observe` leave the pickles they wrote."""
    temporary = tempfile.TemporaryDirectory(prefix="pickles-")
    folders.temporary = temporary  # type: ignore[attr-defined]  # removed when the tests end
    result = {which: Path(temporary.name, which) for which in ("stock", "hooked")}
    for folder in result.values():
        folder.mkdir()
    return result


@functools.cache
def observe() -> dict[str, Any]:
    """Everything that the two processes saw of all public configs; runs once in a session."""
    return both(OBSERVE, folders=folders())


def extras_of(fields: Mapping[str, Any]) -> list[str]:
    """The extra fields that belong on a config whose fields, as stock TRL has them, are these."""
    return [name for name in EXTRAS if name not in fields and (name != "max_seq_length" or "max_length" in fields)]


def without_extras(values: Mapping[str, Any]) -> dict[str, Any]:
    """A dict by field name, or by option, less the extra fields."""
    return {name: value for name, value in values.items() if not is_extra(name)}


def is_extra(name: str) -> bool:
    """Is this the name of an extra field, or its option?"""
    return name.lstrip("-").replace("-", "_") in EXTRAS


def pair(section: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the two processes saw of one config: without the hook, with it."""
    seen = observe()
    return seen["stock"][section][name], seen["hooked"][section][name]
