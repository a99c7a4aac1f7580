"""Unsloth's generated classes take TRL's names when their module has been imported.

The generated files here are stand-ins for Unsloth's, with the same shape. The real ones are in tests/unsloth.
"""

import json
from typing import Any

import pytest
from preloaded import run_child

SCRIPT = '''
import importlib, json, pathlib, pickle, pickletools, sys

folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(folder))
GENERATED = """
from dataclasses import dataclass, field
from typing import Any, Optional
from {home} import {stem}Config

@dataclass
class Unsloth{stem}Config({stem}Config):
    vllm_sampling_params: Optional[Any] = field(default=None, metadata={{"help": "x"}})
    unsloth_num_chunks: Optional[int] = field(default=-1, metadata={{"help": "x"}})
    def __init__(self, output_dir=None, vllm_sampling_params=None, unsloth_num_chunks=-1, **kwargs):
        super().__init__(output_dir=output_dir, **kwargs)
        self.vllm_sampling_params = vllm_sampling_params
        self.unsloth_num_chunks = unsloth_num_chunks

class Unsloth{stem}Trainer:
    pass
"""

def write(stem, home):
    (folder / f"Unsloth{stem}Trainer.py").write_text(GENERATED.format(stem=stem, home=home))

def globals_of(config):
    opcodes = pickletools.genops(pickle.dumps(config, 2))
    return sorted({argument for opcode, argument, _ in opcodes if opcode.name == "GLOBAL"})

def by_name(stem):
    return importlib.import_module(f"Unsloth{stem}Trainer")

def take(stem, home, get_in):
    write(stem, home)
    config_module = importlib.import_module(home)
    captured = vars(config_module)[f"{stem}Config"]
    before = captured("out", use_cpu=True, bf16=False, unsloth_num_chunks=3)
    owner = vars(get_in(stem))[f"Unsloth{stem}Config"]
    after = owner("out", use_cpu=True, bf16=False, unsloth_num_chunks=4)
    return {
        "name": [owner.__module__, owner.__qualname__, owner.__name__],
        "owns it": vars(config_module)[f"{stem}Config"] is owner,
        "subclass": issubclass(owner, captured),
        "before": [name for name in globals_of(before) if "trl" in name.lower() or "nsloth" in name],
        "after": [name for name in globals_of(after) if "trl" in name.lower() or "nsloth" in name],
        "twin": type(pickle.loads(pickle.dumps(before))) is owner,
        "kept": [pickle.loads(pickle.dumps(config)).unsloth_num_chunks for config in (before, after)],
    }

import trl.trainer, unsloth_hook

# As TRL 0.26 to 0.28 leave one at the old place of a config that moved.
shims = folder / "shims"
shims.mkdir()
(shims / "orpo_config.py").write_text("""
from dataclasses import dataclass
from trl.experimental.orpo.orpo_config import ORPOConfig as _ORPOConfig

@dataclass
class ORPOConfig(_ORPOConfig):
    pass
""")
trl.trainer.__path__.append(str(shims))
shim_module = importlib.import_module("trl.trainer.orpo_config")
shim = shim_module.ORPOConfig("out", use_cpu=True, bf16=False)

seen = {
    "by name": take("SFT", "trl.trainer.sft_config", by_name),
    "moved": take("ORPO", "trl.experimental.orpo.orpo_config", by_name),
}
shim_module.ORPOConfig = sys.modules["UnslothORPOTrainer"].UnslothORPOConfig  # releases before August 2026 do
try:
    seen["shim"] = [name for name in globals_of(shim) if "trl" in name]
except Exception as error:
    seen["shim"] = repr(error)

(folder / "UnslothOwnTrainer.py").write_text("class UnslothThing(dict): pass\\nclass Other: pass\\n")
import UnslothOwnTrainer

seen["others"] = [cls.__module__ for cls in (UnslothOwnTrainer.UnslothThing, UnslothOwnTrainer.Other)]
seen["states"] = {name.rpartition(".")[2]: entry["state"] for name, entry in unsloth_hook.status()["classes"].items()}
print(json.dumps(seen))
'''

WAYS = [
    ("by name", "trl.trainer.sft_config", "SFTConfig"),
    ("moved", "trl.experimental.orpo.orpo_config", "ORPOConfig"),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("cache")
    done = run_child(SCRIPT, env={"UNSLOTH_HOOK": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}, args=[str(folder)])
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("way", "module", "name"), WAYS)
def test_a_generated_class_takes_trls_name(seen: Any, way: str, module: str, name: str) -> None:
    adopted = seen[way]
    assert adopted["name"] == [module, name, name]
    assert adopted["owns it"] and adopted["subclass"]
    assert adopted["before"] == adopted["after"] == [f"{module} {name}"]
    assert adopted["twin"]
    assert adopted["kept"] == [3, 4]
    assert seen["states"][name] == "unsloth"


def test_a_shim_that_lost_its_name_pickles_as_its_owner(seen: Any) -> None:
    assert seen["shim"] == ["trl.experimental.orpo.orpo_config ORPOConfig"]


def test_other_classes_of_such_a_module_are_left_alone(seen: Any) -> None:
    assert seen["others"] == ["UnslothOwnTrainer"] * 2
