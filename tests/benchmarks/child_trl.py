"""Prints what TRL's configs cost with the hook and without it, timed in turns in one process.

A class that has been swapped has displaced the pristine one, so "pristine" here is the class of a module that was
imported before the hook, and "patched" that of the same file executed once more, and swapped.
"""

import copy
import gc
import importlib.util
import io
import json
import pickle
import sys
import time
import types
import warnings
from collections.abc import Callable
from typing import Any

import child_configs
import pairs

CLOCK = time.thread_time
USED = ("trl.trainer.sft_config.SFTConfig", "trl.trainer.grpo_config.GRPOConfig", "trl.trainer.dpo_config.DPOConfig")


def fresh(module: Any) -> types.ModuleType:
    """A module of the same name and file as another, not executed yet, in its place."""
    spec = importlib.util.spec_from_file_location(module.__name__, module.__file__)
    assert spec is not None
    sys.modules[module.__name__] = new = importlib.util.module_from_spec(spec)
    return new


def use(cls: Any) -> dict[str, Callable[[], Any]]:
    """What is done with a config, as functions; each first lets the class own its name."""
    module, config = sys.modules[cls.__module__], cls(**child_configs.keywords(cls))
    keywords = child_configs.keywords(cls)

    def owning(function: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> None:
            setattr(module, cls.__name__, cls)
            function()

        return run

    import torch

    return {
        "constructing": lambda: cls(**keywords),
        "an attribute": lambda: config.learning_rate,
        "pickle.dumps": owning(lambda: pickle.dumps(config)),
        "torch.save": owning(lambda: torch.save(config, io.BytesIO())),
        "copy.deepcopy": owning(lambda: copy.deepcopy(config)),
        "to_dict()": config.to_dict,
        "repr()": config.__repr__,
        "==": lambda: config == config,
    }


def uses(rounds: int) -> dict[str, Any]:
    """Seconds of each use, for the pristine class and for the patched one."""
    from unsloth_hook import patching

    found: dict[str, Any] = {}
    for full in USED:
        name, _, last = full.rpartition(".")
        module = importlib.import_module(name)
        pristine = getattr(module, last)
        twin = fresh(module)
        twin.__spec__.loader.exec_module(twin)  # type: ignore[union-attr]
        patching.swap(twin)
        sys.modules[name] = module
        patched = getattr(twin, last)
        assert patched.__mro__[1] is not pristine and "unsloth_num_chunks" not in pristine.__dataclass_fields__
        plain, ours = use(pristine), use(patched)
        # Short blocks, many of them: the machine's speed drifts by more than what is looked for.
        found[last] = {what: pairs.in_turns([plain[what], ours[what]], 10 * rounds, 2e-4, CLOCK) for what in plain}
        setattr(module, last, pristine)
    return found


def swaps(rounds: int) -> dict[str, Any]:
    """Seconds that TRL takes to make each class (by executing its module), and seconds of the swap after it."""
    import unsloth_hook
    from unsloth_hook import identity, patching, targets

    unsloth_hook.install()  # so that a config's base is patched, as it would be
    classes = child_configs.public_configs()
    modules = {cls.__module__: sys.modules[cls.__module__] for cls in classes.values()}
    found: dict[str, Any] = {}
    gc.collect()
    gc.freeze()
    gc.disable()
    for name, module in modules.items():
        with open(module.__file__) as file:  # type: ignore[arg-type]
            code = compile(file.read(), module.__file__, "exec")  # type: ignore[arg-type]
        created, swapped = [], []
        for _ in range(rounds):
            twin = fresh(module)
            identity.owners.clear()  # no reload, the first import
            started = CLOCK()
            exec(code, vars(twin))
            between = CLOCK()
            patching.swap(twin)
            swapped.append(CLOCK() - between)
            created.append(between - started)
            names = [cls.__name__ for cls in targets.config_classes(twin) if cls in identity.patched]
            del twin
        gc.collect()
        sys.modules[name] = module
        found[", ".join(names)] = [created, swapped]
    return found


def displaced(rounds: int) -> dict[str, Any]:
    """Seconds to register one more displaced class, and to pickle an instance of one, when there are so many."""
    from unsloth_hook import register_displaced

    found: dict[str, Any] = {}
    home = sys.modules["__main__"]
    total = 0
    for count in (1, 10, 100, 1_000):
        started, new = time.thread_time(), count - total
        for number in range(total, count):
            old = type(f"Old{number}", (), {"__module__": "__main__"})
            owner = type(f"Old{number}", (old,), {"__module__": "__main__"})
            setattr(home, old.__name__, owner)
            register_displaced(old, owner)
        registering = (time.thread_time() - started) / new
        total = count
        first = vars(home)["Old0"].__mro__[1]

        def dump(cls: Any = first) -> bytes:
            return pickle.dumps(cls())

        (seconds,) = pairs.in_turns([dump], rounds, clock=CLOCK)
        found[str(count)] = {"registering": [registering], "pickling": seconds}
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rounds, *wanted = sys.argv[1:]
    parts = {"uses": uses, "displaced": displaced, "swaps": swaps}
    print(json.dumps({name: parts[name](int(rounds)) for name in wanted}))
