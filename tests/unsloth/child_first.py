"""Child script: a framework that imports TRL, transformers or PEFT long before anybody thinks of Unsloth.

    python child_first.py WHO FOLDER

WHO is imported first; `unsloth` stands for a program that does as Unsloth asks, and `threads` for one that imports
trl and transformers in two threads at once.
"""

import collections
import faulthandler
import importlib
import json
import sys
import threading
from pathlib import Path
from typing import Any

import probes

COMES_AFTER = ("trl", "transformers", "peft")
executed: "collections.Counter[str]" = collections.Counter()


def count(event: str, args: tuple[Any, ...]) -> None:
    """Count the executions of the packages' own `__init__.py`: an audit hook sees the code that importlib executes."""
    if event == "exec" and hasattr(args[0], "co_filename"):
        *_, package, file = ("", *args[0].co_filename.replace("\\", "/").split("/"))
        if file == "__init__.py" and package in COMES_AFTER and args[0].co_name == "<module>":
            executed[package] += 1


def describe(name: str) -> dict[str, Any]:
    module = sys.modules[name]
    loader = module.__spec__.loader
    return {
        "class": type(module).__name__,
        "spec": [module.__spec__.name, module.__spec__.origin, list(module.__spec__.submodule_search_locations)],
        "initializing": bool(getattr(module.__spec__, "_initializing", False)),
        "loader": f"{type(loader).__module__}.{type(loader).__qualname__}",
        "one loader": module.__loader__ is loader,
        "source": loader.get_source(name)[:200],
        "imported": importlib.import_module(name) is module,
        "executed": executed[name],
    }


def in_threads() -> dict[str, Any]:
    faulthandler.dump_traceback_later(400, exit=True)  # the alarm: a deadlock ends here and shows where
    ready = threading.Barrier(2)
    seen: dict[str, Any] = {}

    def take(name: str) -> None:
        ready.wait()
        try:
            seen[name] = importlib.import_module(name)
        except BaseException as error:
            seen[name] = error

    threads = [threading.Thread(target=take, args=(name,)) for name in ("trl", "transformers")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    faulthandler.cancel_dump_traceback_later()
    return {name: repr(value) if isinstance(value, BaseException) else "imported" for name, value in seen.items()}


def main(who: str, folder: Path) -> None:
    sys.addaudithook(count)
    facts: dict[str, Any] = {}
    with probes.one_card():
        if who == "threads":
            facts["threads"] = in_threads()
        else:
            importlib.import_module(who)
        facts["unsloth came along"] = "unsloth" in sys.modules
        import peft  # noqa: F401
        import transformers
        import trl
        import unsloth  # noqa: F401
    facts["modules"] = {name: describe(name) for name in COMES_AFTER}
    facts["finders"] = [type(finder).__name__ for finder in sys.meta_path if "Unsloth" in type(finder).__name__]
    from trl.trainer.sft_config import SFTConfig

    facts["fields"] = "unsloth_num_chunks" in SFTConfig.__dataclass_fields__
    facts["forward"] = transformers.models.llama.modeling_llama.LlamaAttention.forward.__module__
    if who in ("trl", "unsloth"):
        if probes.FIXED:
            probes.patch_trainers()
        generated = [name for name in sys.modules if name.startswith("Unsloth")]
        facts["trainers"] = sorted(name for name in generated if name.endswith("Trainer"))
        facts["trainer"] = trl.SFTTrainer.__name__
    (folder / "facts.json").write_text(json.dumps(facts, default=str))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
