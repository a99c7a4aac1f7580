"""Child script: import TRL and Unsloth in one order, and write down everything that the tests ask about.

    python child_order.py ORDER FOLDER

ORDER is `trl` (TRL first, a config of every public class made before Unsloth comes), `module` (one config module
first), `unsloth` (Unsloth first) or `late` (Unsloth first, `unsloth_hook.install()` after it). The same script runs
with and without the hook; the variable decides. FOLDER takes `facts.json` and the pickles.
"""

import contextlib
import copy
import copyreg
import hashlib
import importlib
import importlib.util
import json
import os
import pickle
import pickletools
import sys
from pathlib import Path
from typing import Any

import probes

EXTRAS = (
    "vllm_sampling_params",
    "unsloth_num_chunks",
    "unsloth_logit_chunk_multiplier",
    "unsloth_grpo_mini_batch",
    "max_seq_length",
)
made: dict[str, dict[str, Any]] = {"before": {}, "between": {}, "after": {}}  # moment -> trainer -> config
at_once: dict[str, list[str]] = {}  # trainer -> module and name of its config when its module had been executed


def make(cls: Any) -> Any:
    """A config without demands on the machine."""
    needed = {"teacher_model_server_url": "http://localhost"} if "ServerDistillation" in cls.__name__ else {}
    if "logging_dir" in cls.__dataclass_fields__:
        needed["logging_dir"] = "logs"  # by default the time of day is in it
    return cls("out", use_cpu=True, bf16=False, fp16=False, report_to="none", optim="adamw_torch", **needed)


def config_modules() -> dict[str, Any]:
    """The loaded modules of TRL in which configs are defined."""
    return {name: module for name, module in list(sys.modules.items()) if name.startswith("trl.") and "_config" in name}


def current(stem: str) -> Any:
    """The class that `{stem}Config` means now in the module where TRL defines it."""
    for name, module in config_modules().items():
        cls = vars(module).get(f"{stem}Config")
        if cls is not None and cls.__module__ in (name, f"Unsloth{stem}Trainer"):
            return cls
    raise LookupError(stem)


def stem_of(module: str) -> str:
    return module.removeprefix("unsloth_cache_").removeprefix("Unsloth").removesuffix("Trainer")


class Watch:
    """A finder that finds nothing; it gets in between when Unsloth is about to import the module that patches TRL."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "unsloth.models.rl":
            watch_generation()


def watch_generation() -> None:
    """Make a config just before each generated module is executed, and look at its class just after."""
    compiler = importlib.import_module("unsloth_zoo.compiler")
    create = compiler.create_new_function

    def create_new_function(name: str, *args: Any, **kwargs: Any) -> Any:
        made["between"][stem_of(name)] = make(current(stem_of(name)))
        module = create(name, *args, **kwargs)
        cls = getattr(module, f"Unsloth{stem_of(name)}Config")
        at_once[stem_of(name)] = name_of(cls)
        return module

    compiler.create_new_function = create_new_function


def generated() -> dict[str, Any]:
    """The modules that Unsloth generated, by trainer."""
    names = [name for name in sys.modules if name.removeprefix("unsloth_cache_").startswith("Unsloth")]
    names = [name for name in names if name.endswith("Trainer")]
    return {stem_of(name): sys.modules[name] for name in sorted(names)}


def bindings(stems: dict[str, Any]) -> dict[str, Any]:
    """Where in TRL a name is bound to one of Unsloth's classes: full name -> class."""
    classes = [
        value
        for module in stems.values()
        for name, value in vars(module).items()
        if name.startswith("Unsloth") and isinstance(value, type)
    ]
    return {
        f"{module_name}.{name}": value
        for module_name, module in sorted(sys.modules.items())
        if module_name.partition(".")[0] == "trl"
        for name, value in list(vars(module).items())
        if isinstance(value, type) and any(value is cls or cls in value.__bases__ for cls in classes)
    }


def lineage(owner: type) -> list[type]:
    """TRL's class, the hook's subclass of it if there is one, and Unsloth's class."""
    name = owner.__name__.removeprefix("Unsloth")
    return [cls for cls in reversed(owner.__mro__) if cls.__name__.removeprefix("Unsloth") == name]


def globals_of(data: bytes) -> list[str]:
    return sorted({str(argument) for opcode, argument, _ in pickletools.genops(data) if opcode.name == "GLOBAL"})


def digest(config: Any, without: tuple[str, ...] = ()) -> str:
    """Of all the state that a config carries, or of all but some."""
    state = sorted((name, repr(value)) for name, value in vars(config).items() if name not in without)
    return hashlib.sha256(repr(state).encode()).hexdigest()


def write(label: str, config: Any) -> dict[str, Any]:
    """Save a config as `Trainer` does; or what came of trying."""
    import torch

    seen: dict[str, Any] = {"class": f"{type(config).__module__}.{type(config).__qualname__}"}
    seen.update(digest=digest(config), values=digest(config, without=EXTRAS), extras=extras_of(config))
    try:
        duplicate = copy.deepcopy(config)
        seen["globals"] = globals_of(pickle.dumps(config, 2))
        torch.save(config, Path(sys.argv[2], f"{label}.bin"))
    except Exception as error:
        return {**seen, "error": f"{type(error).__name__}: {error}"}
    return {**seen, "copied": type(duplicate) is type(config)}


def extras_of(config: Any) -> dict[str, str]:
    """The extra fields that the instance itself carries."""
    return {name: repr(value) for name, value in vars(config).items() if name in EXTRAS}


def convert() -> dict[str, Any]:
    """Give a trainer plain `TrainingArguments`, and let it save what it makes of them."""
    import datasets
    import tokenizers
    import transformers
    import trl

    words = {"a": 0, "b": 1, "<pad>": 2, "</s>": 3, "<unk>": 4}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=8, num_key_value_heads=1, **sizes))
    trainer = trl.SFTTrainer(
        model=model,
        args=make(transformers.TrainingArguments),
        train_dataset=datasets.Dataset.from_dict({"text": ["a b a b"] * 4}),
        processing_class=tokenizer,
    )
    fields = list(type(trainer.args).__dataclass_fields__)
    seen = {"trainer": type(trainer).__name__, "fields": [name for name in fields if "unsloth" in name]}
    return {**seen, **write("converted-SFT", trainer.args)}


def patch_again() -> dict[str, Any]:
    """Both ways in which a user can ask for it."""
    with contextlib.suppress(ImportError):  # PatchFastRL does; what is patched then is patched for the first time
        importlib.import_module("trl.experimental.async_grpo.async_grpo_config")
    before, table = bindings(generated()), dict(copyreg.dispatch_table)
    probes.patch_trainers()
    with without_cpu_switch():
        from unsloth.models.rl import PatchFastRL

        PatchFastRL()
    after = bindings(generated())
    return {
        "swapped": sorted(name for name in {*before, *after} if before.get(name) is not after.get(name)),
        "dispatch_table": [len(table), len(copyreg.dispatch_table)],
        "reducers_changed": sum(copyreg.dispatch_table.get(cls) is not reducer for cls, reducer in table.items()),
    }


@contextlib.contextmanager
def without_cpu_switch() -> Any:
    """`PatchFastRL` does nothing under UNSLOTH_ALLOW_CPU=1."""
    value = os.environ.pop("UNSLOTH_ALLOW_CPU", None)
    try:
        yield
    finally:
        if value is not None:
            os.environ["UNSLOTH_ALLOW_CPU"] = value


def trl_first() -> None:
    import trl.trainer

    for name in sorted(trl.trainer.__all__):
        if name.endswith("Config") and name != "ModelConfig":
            made["before"][name.removesuffix("Config")] = make(getattr(trl.trainer, name))


def module_first() -> None:
    from trl.trainer.sft_config import SFTConfig

    made["before"]["SFT"] = make(SFTConfig)


def describe(stem: str, module: Any) -> dict[str, Any]:
    owner = getattr(module, f"Unsloth{stem}Config")
    classes = lineage(owner)
    home = sys.modules[classes[0].__module__]
    for index, cls in enumerate(classes):
        made.setdefault(f"class{index}", {})[stem] = make(cls)
    made["after"][stem] = make(getattr(home, f"{stem}Config"))
    return {
        "name": name_of(owner),
        "home": home.__name__,
        "owns_its_name": vars(home)[f"{stem}Config"] is owner,
        "lineage": len(classes),
        "bound": [
            f"{name}.{stem}Config"
            for name in ("trl", "trl.trainer", f"trl.trainer.{home.__name__.rpartition('.')[2][:-7]}_trainer")
            if f"{stem}Config" in vars(sys.modules.get(name, json)) and issubclass_of(name, stem, owner)
        ],
    }


def issubclass_of(module: str, stem: str, owner: type) -> bool:
    """Unsloth's class, or the subclass with a wider `isinstance` that later releases put beside the SFT trainer."""
    return owner in vars(sys.modules[module])[f"{stem}Config"].__mro__[:2]


def import_generated_file() -> dict[str, Any]:
    """Import a generated file anew from the cache folder, in the two ways in which Unsloth does it."""
    name = "UnslothRewardTrainer"
    file = Path(os.environ["UNSLOTH_COMPILE_LOCATION"], f"{name}.py")
    sys.path.insert(0, str(file.parent))
    del sys.modules[name]
    module = importlib.import_module(name)
    seen = {"by name": name_of(module.UnslothRewardConfig), "spec": type(module.__spec__.loader).__name__}
    spec = importlib.util.spec_from_file_location(f"unsloth_cache_{name}", file)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {**seen, "by path": name_of(module.UnslothRewardConfig)}


def name_of(cls: type) -> list[str]:
    return [cls.__module__, cls.__qualname__, cls.__name__]


def main(order: str, folder: Path) -> None:
    {"trl": trl_first, "module": module_first}.get(order, lambda: None)()
    sys.meta_path.insert(0, Watch())
    probes.import_unsloth()
    if probes.FIXED:
        probes.patch_trainers()
    if order == "late":
        import unsloth_hook

        unsloth_hook.install()
    stems = generated()
    facts: dict[str, Any] = {
        "owners": {stem: describe(stem, module) for stem, module in stems.items()},
        "trainers": sorted(stems),
        "at_once": at_once,
        "bindings": sorted(bindings(stems)),
    }
    facts["pickles"] = {
        f"{moment}-{stem}": write(f"{moment}-{stem}", config)
        for moment, configs in made.items()
        for stem, config in configs.items()
    }
    facts["again"] = patch_again()
    if order in ("trl", "late"):
        facts["converted"] = convert()
    if "unsloth_hook.patching" in sys.modules:
        import unsloth_hook

        facts["status"] = unsloth_hook.status()
        owners = [vars(module)[f"Unsloth{stem}Config"] for stem, module in stems.items()]
        facts["is_patched"] = [unsloth_hook.is_patched(owner) for owner in owners]
    facts["generated_file"] = import_generated_file()
    (folder / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
