"""`status()`: what the hook did in this process, as plain data (issue 5, deliverable 3)."""

import json
from pathlib import Path
from typing import Any

import preloaded
from helpers import run_child

STATUS = "import json, sys, unsloth_hook; print(json.dumps(unsloth_hook.status()))"
ON = {"UNSLOTH_HOOK": "1"}

# A module that the hook must not see: loaded by a loader that nobody asked the meta path for.
PAST_THE_HOOK = """
    import importlib.machinery, importlib.util, json, sys, unsloth_hook

    class OwnLoader(importlib.machinery.SourceFileLoader):
        pass

    import trl.trainer  # a package without classes of its own, as long as nobody asks for one
    file = importlib.util.find_spec("trl.trainer").submodule_search_locations[0] + "/sft_config.py"
    name = "trl.trainer.sft_config"
    sys.modules.pop(name, None)
    spec = importlib.util.spec_from_file_location(name, file, loader=OwnLoader(name, file))
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    import trl.trainer.dpo_config
    first = unsloth_hook.status()
    unsloth_hook.uninstall()
    print(json.dumps([first, unsloth_hook.status()]))
"""


def status(**options: Any) -> Any:
    return json.loads(run_child(STATUS, **options).stdout)


def test_off_it_says_so_and_keeps_to_plain_values() -> None:
    told = status(env={"UNSLOTH_HOOK": None})
    assert (told["active"], told["route"], told["late"], told["classes"]) == (False, None, False, {})
    assert (told["variable"], told["asked"], told["bypassed"]) == (None, [], {})
    assert not [name for name in told["meta_path"] if name.startswith("unsloth_hook")]


def test_on_it_names_the_route_the_variable_and_the_finders_in_order() -> None:
    told = status(env={"UNSLOTH_HOOK": " Yes "})
    assert (told["active"], told["route"], told["variable"], told["asked"]) == (True, "env", " Yes ", ["env"])
    assert told["meta_path"][0] == "unsloth_hook.finder.PostImportFinder"
    assert told["meta_path"][-1] == "unsloth_hook.activation.AliasFinder"
    assert "_frozen_importlib_external.PathFinder" in told["meta_path"]


def test_a_value_that_is_not_understood_is_shown_with_the_route_that_asked() -> None:
    told = status(env={"UNSLOTH_HOOK": "ture"})
    assert (told["active"], told["variable"], told["asked"]) == (False, "ture", ["env"])


def test_a_module_that_was_loaded_past_the_hook_is_named_with_its_loader() -> None:
    first, off = preloaded.run_child(PAST_THE_HOOK, env=ON).json()
    assert first["bypassed"] == {"trl.trainer.sft_config": "__main__.OwnLoader"}
    assert first["classes"]["trl.trainer.dpo_config.DPOConfig"]["state"] == "patched"
    assert (off["active"], off["route"], off["bypassed"]) == (False, None, {})


def test_a_class_that_cannot_be_patched_is_named_with_the_reason(tmp_path: Path) -> None:
    """A module of TRL's (a stand-in, since real ones can be patched) whose class has an `__init__` of its own."""
    trainer = tmp_path / "trl" / "trainer"
    trainer.mkdir(parents=True)
    for folder in (trainer.parent, trainer):
        (folder / "__init__.py").write_text("")
    (trainer / "odd_config.py").write_text(
        "class TrainingArguments: pass\n"
        "TrainingArguments.__module__ = 'transformers.training_args'\n"
        "class OddConfig(TrainingArguments):\n"
        "    def __init__(self): pass\n"
    )
    script = "import trl.trainer.odd_config\n" + STATUS
    told = json.loads(run_child(script, env={**ON, "PYTHONPATH": str(tmp_path)}).stdout)
    entry = told["classes"]["trl.trainer.odd_config.OddConfig"]
    assert entry["state"] == "left"
    assert "__init__" in entry["reason"]
    assert told["bypassed"] == {}


ODD = """
class Odd(type):
    @property
    def __name__(cls):
        raise RuntimeError("nobody looks at this")

class OddConfig(metaclass=Odd):
    pass
"""


def test_a_module_that_cannot_be_looked_at_is_named_with_the_reason(tmp_path: Path) -> None:
    """A stand-in: its import succeeds as without the hook, and one line says why it is left."""
    trainer = tmp_path / "trl" / "trainer"
    trainer.mkdir(parents=True)
    for folder in (trainer.parent, trainer):
        (folder / "__init__.py").write_text("")
    (trainer / "odd_config.py").write_text(ODD)
    script = "import sys, trl.trainer.odd_config\nsys.modules['trl.trainer.no_config'] = object()\n" + STATUS
    done = run_child(script, env={**ON, "PYTHONPATH": str(tmp_path)})
    told = json.loads(done.stdout)
    assert told["classes"] == {
        "trl.trainer.odd_config": {"state": "left", "reason": "RuntimeError: nobody looks at this"}
    }
    assert told["bypassed"] == {}
    assert done.stderr.count("\n") == 1
    assert "trl.trainer.odd_config stays as TRL wrote it: RuntimeError" in done.stderr
