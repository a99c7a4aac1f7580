"""Child script: aliases are asked for before the real Unsloth comes, and a compiled file is missing after it.

python child_aliases.py FOLDER
"""

import importlib
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import probes

PREFIXES = ("", "unsloth_compiled_cache.", "unsloth_cache_")


def attempt(name: str) -> list[Any]:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        return [type(error).__name__, error.name, str(error)]
    return ["imported", getattr(module, "__file__", None)]


if __name__ == "__main__":
    facts: dict[str, Any] = {}
    facts["before"] = [attempt(prefix + "UnslothSFTTrainer")[0] for prefix in PREFIXES]
    early = {name: module for name, module in sys.modules.items() if "UnslothSFTTrainer" in name}
    for alias in early.values():
        alias.UnslothSFTConfig  # noqa: B018  # what unpickling does
    import_early = list(early)
    probes.import_unsloth()
    if probes.FIXED:
        probes.patch_trainers()
    import trl

    cache = os.environ["UNSLOTH_COMPILE_LOCATION"]
    real = sys.modules.get("UnslothSFTTrainer")
    facts["early"] = import_early
    facts["real file"] = str(getattr(real, "__file__", "")).replace(cache, "CACHE")
    facts["still an alias"] = [name for name, module in early.items() if sys.modules.get(name) is module]
    facts["patched"] = sorted(
        name
        for name in dir(trl)
        if name.endswith("Trainer") and getattr(getattr(trl, name, None), "__module__", "").startswith("Unsloth")
    )

    # A compiled file that is missing: the import fails, as without the hook.
    for stem in ("SFT", "GRPO", "PPO"):
        for file in Path(cache).glob(f"Unsloth{stem}Trainer*"):
            file.unlink()
        for bytecode in Path(cache).glob(f"__pycache__/Unsloth{stem}Trainer*"):
            bytecode.unlink()
        sys.modules.pop(f"Unsloth{stem}Trainer", None)
    importlib.invalidate_caches()
    names = [prefix + f"Unsloth{stem}Trainer" for stem in ("SFT", "GRPO", "PPO", "Zebra") for prefix in PREFIXES]
    facts["missing"] = {name: attempt(name) for name in names}
    facts["probed"] = [name for name in names if "." not in name and importlib.util.find_spec(name) is not None]
    Path(sys.argv[1], "facts.json").write_text(json.dumps(facts))
