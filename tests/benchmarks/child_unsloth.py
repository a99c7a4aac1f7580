"""Prints what the real Unsloth takes to patch TRL's trainers, and what the swaps of their configs took."""

import importlib
import json
import time

import child_configs
import probes

if __name__ == "__main__":
    probes.import_unsloth()
    import trl
    import unsloth.models.rl as rl

    generated: list[float] = []
    generate = rl._patch_trl_rl_trainers

    def timed(*args: str, **keywords: str) -> object:
        started = time.process_time()
        result = generate(*args, **keywords)
        generated.append(time.process_time() - started)
        return result

    rl._patch_trl_rl_trainers = timed
    probes.patch_trainers()
    from unsloth_hook import identity, patching

    swapped = []
    for full in sorted({cls.__module__ for cls in child_configs.public_configs().values()}):
        module = importlib.import_module(full)
        spec = importlib.util.spec_from_file_location(full, module.__file__)
        twin = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(twin)
        identity.owners.clear()
        started = time.process_time()
        patching.swap(twin)
        swapped.append(time.process_time() - started)
    print(json.dumps({"trl": trl.__version__, "generated": generated, "swapped": swapped}))
