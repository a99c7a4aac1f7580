"""What "as stock" means here: the same script in two processes, with the hook and without, and what both printed."""

import importlib.util
import json
import tempfile
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import child_configs
import helpers
import preloaded
from helpers import once

SUPPORT = Path(__file__).resolve().parent
TEMPORARY = tempfile.TemporaryDirectory(prefix="pickles-")  # removed when the tests end

# Contract 2, written out anew: name -> types, default.
EXTRAS = {
    "vllm_sampling_params": (["typing.Any", "<class 'NoneType'>"], "None"),
    "unsloth_num_chunks": (["<class 'int'>", "<class 'NoneType'>"], "-1"),
    "unsloth_logit_chunk_multiplier": (["<class 'int'>", "<class 'NoneType'>"], "None"),
    "unsloth_grpo_mini_batch": (["<class 'int'>", "<class 'NoneType'>"], "None"),
    "max_seq_length": (["<class 'int'>", "<class 'NoneType'>"], "None"),
}

_SPEC = importlib.util.find_spec("trl")
TRL = _SPEC and next(iter(_SPEC.submodule_search_locations or ()), None)
DECLARED = child_configs.declared_configs(TRL) if TRL else {}
CONFIGS = [key for key in DECLARED if key not in ("AlignPropConfig", "DDPOConfig")]  # up to 0.23: no TrainingArguments

# What became of each config in the releases that were tried, so that a reading that finds too few is noticed.
# Written by tests/releases/release_tables.py.
RELEASES = json.loads((SUPPORT.parent / "data" / "releases.json").read_text(encoding="utf-8"))

OBSERVE = """
import json, sys, warnings
import child_configs

written = child_configs.record_classes_as_written()
warnings.simplefilter("ignore")
import child_classes, child_pickles

configs = child_configs.public_configs()
# All classes before any instance: HfArgumentParser writes other types into the Field objects that it parses for.
classes = {name: child_classes.describe(cls, written) for name, cls in configs.items()}
for name, cls in configs.items():
    classes[name].update(child_classes.describe_use(cls))
print(json.dumps({
    "classes": classes,
    "pickles": {name: child_pickles.describe(cls, sys.argv[1], name) for name, cls in configs.items()},
    "bystanders": child_classes.bystanders(),
    "status": sys.modules["unsloth_hook"].status()["classes"] if "unsloth_hook" in sys.modules else None,
}, default=str))
"""


def run(script: str, hook: str | None, *args: str, fork: bool = True) -> Any:
    """Run a script that prints JSON last, and return that.

    Args:
        script: Python source; it may import the `child_*.py` files that lie beside this one.
        hook: the value of `UNSLOTH_HOOK`, None to leave it unset.
        args: the script's arguments.
        fork: in a fork that has torch already (`preloaded`), else in a Python that is started for it.
    """
    run_child = preloaded.run_child if fork else helpers.run_child
    env = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(SUPPORT),
        "TRL_EXPERIMENTAL_SILENCE": "1",
        "UNSLOTH_HOOK": hook,
    }
    return json.loads(run_child(script, env=env, args=args).stdout.splitlines()[-1])


def at_once(**jobs: Callable[[], Any]) -> dict[str, Any]:
    """Do several things that run children, two at a time, and return what each returned."""
    helpers.hooked_python()  # made once, before two threads ask for it
    with ThreadPoolExecutor(2) as pool:
        pending = {name: pool.submit(job) for name, job in jobs.items()}
    return {name: future.result() for name, future in pending.items()}


@once
def folders() -> dict[str, Path]:
    """Where the two processes of `observe` leave the pickles they wrote."""
    result = {which: Path(TEMPORARY.name, which) for which in ("stock", "hooked")}
    for folder in result.values():
        folder.mkdir()
    return result


@once
def observe() -> Any:
    """Everything that the two processes saw of all public configs; runs once in a session."""
    places = folders()  # made before two threads ask for them
    return at_once(
        stock=lambda: run(OBSERVE, "0", str(places["stock"]), fork=False),
        hooked=lambda: run(OBSERVE, "1", str(places["hooked"]), fork=False),
    )


def extras_of(fields: Mapping[str, Any]) -> list[str]:
    """The extra fields that belong on a config whose fields, as stock TRL has them, are these."""
    return [name for name in EXTRAS if name not in fields and (name != "max_seq_length" or "max_length" in fields)]


def without_extras(values: Mapping[str, Any], stock: Collection[str] = ()) -> dict[str, Any]:
    """A dict by field name, or by option, less the extra fields; `stock` has those that TRL itself has."""
    return {name: value for name, value in values.items() if name in stock or not is_extra(name)}


def is_extra(name: str) -> bool:
    """Is this the name of an extra field, or its option?"""
    return name.lstrip("-").replace("-", "_") in EXTRAS


def pair(section: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the two processes saw of one config: without the hook, with it."""
    seen = observe()
    return seen["stock"][section][name], seen["hooked"][section][name]
