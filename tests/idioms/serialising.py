"""Configs as text, JSON, YAML, pickles and hashes."""

import argparse
import copy
import dataclasses
import hashlib
import io
import json
import pickle
import pprint
import pydoc
from dataclasses import dataclass
from typing import Any

import cattrs
import cloudpickle
import dill
import joblib
import torch
import yaml
from datasets.fingerprint import Hasher
from idiom import attempt, dotted, make
from trl import DPOConfig, GRPOConfig, KTOConfig, RewardConfig, RLOOConfig, SFTConfig

CLASSES = (SFTConfig, DPOConfig, GRPOConfig, KTOConfig, RewardConfig, RLOOConfig)


def _globals(data: bytes) -> list[str]:
    """What a pickle names, in order."""
    found = []

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            found.append(f"{module} {name}")
            return super().find_class(module, name)

    Reader(io.BytesIO(data)).load()
    return found


def dicts() -> Any:
    """wandb.init(config=training_args.to_dict()), run_info files: `to_dict()` of each config."""
    return {cls.__name__: make(cls).to_dict() for cls in CLASSES}


def json_texts() -> Any:
    """`to_json_string()` written beside the adapter."""
    return [make(cls).to_json_string() for cls in CLASSES]


def sanitized_dicts() -> Any:
    """TensorBoard's, wandb's and Comet's hyperparameters: `to_sanitized_dict()`."""
    return [make(cls).to_sanitized_dict() for cls in CLASSES]


def representations() -> Any:
    """`print(training_args)`, `logger.info(f"{training_args}")` of TRL's and transformers' examples."""
    return [[repr(make(cls)), str(make(cls)), f"{make(cls)}"] for cls in CLASSES]


def pretty_printed() -> Any:
    """`pprint(training_args)`, which knows dataclasses, and `pprint(vars(...))`."""
    return pprint.pformat(make(SFTConfig).to_dict()), pprint.pformat(vars(make(SFTConfig)))


def pretty_printed_dataclass() -> Any:
    """`pprint.pprint(config)`: `pprint` goes by the fields where a class has the `__repr__` of dataclasses."""
    return pprint.pformat(make(SFTConfig, max_length=3))


def as_a_dict_by_dataclasses() -> Any:
    """`yaml.dump(asdict(training_args))`, `flat_args(...)`: dataclasses' `asdict` goes by the fields."""
    return {name: str(value) for name, value in dataclasses.asdict(make(SFTConfig)).items()}


def as_a_tuple_by_dataclasses() -> Any:
    """`astuple(config)[0]`, unpacked by position: TRL's values come first."""
    return [str(value) for value in dataclasses.astuple(make(SFTConfig))[:80]]


def yaml_of_the_dict() -> Any:
    """`yaml.safe_dump(config.to_dict())` for a repro file, and back."""
    text = yaml.safe_dump(make(SFTConfig, max_length=6).to_dict(), sort_keys=False)
    return text, SFTConfig(**yaml.safe_load(text)).max_length


def yaml_of_the_object() -> Any:
    """`yaml.dump(training_args.__dict__, Dumper=yaml.Dumper)`, and of the object itself."""
    config = make(RewardConfig)
    return sorted(yaml.dump(vars(config), Dumper=yaml.Dumper).splitlines()), yaml.dump(config).splitlines()[0]


def json_round_trip() -> Any:
    """A run rebuilt where TRL is alone: `SFTConfig(**json.loads(json.dumps(config.to_dict())))`."""
    return {cls.__name__: sorted(json.loads(json.dumps(make(cls).to_dict()))) for cls in CLASSES}


def json_by_default_functions() -> Any:
    """`json.dumps(config, default=vars)`, `default=str`, `default=lambda o: o.__dict__`."""
    config = make(SFTConfig)
    text = json.dumps(
        config, default=lambda value: vars(value) if isinstance(value, SFTConfig) else str(value), sort_keys=True
    )
    return text, json.dumps(config, default=str), json.dumps({"args": vars(config)}, default=str)


def numbers_only() -> Any:
    """Experiment files: numbers and flags of `__dict__`, the rest as text."""
    return {
        name: value if isinstance(value, (int, float, bool)) else str(value)
        for name, value in vars(make(DPOConfig)).items()
    }


def lines_of_a_text_file() -> Any:
    """`for key, value in vars(torch.load("training_args.bin")).items(): print(f"{key}: {value}")`."""
    data = io.BytesIO()
    torch.save(make(SFTConfig), data)
    data.seek(0)
    for key, value in vars(torch.load(data, weights_only=False)).items():
        print(f"{key}: {value}")
    return None


def cache_key_by_json() -> Any:
    """Caches of tokenised data: a hash of `to_dict()` without the folders, keys sorted."""
    values = make(SFTConfig).to_dict()
    for name in ("output_dir", "logging_dir"):
        values.pop(name, None)
    return hashlib.sha256(json.dumps(values, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def cache_key_by_datasets() -> Any:
    """datasets' fingerprints: `Hasher.hash(config)`, which is what `map(fn_kwargs={"args": args})` is cached by."""
    configs = [make(cls) for cls in CLASSES]
    for config in configs:
        vars(config).pop("logging_dir", None)
    return [Hasher.hash(config) for config in configs]


def cache_key_by_joblib() -> Any:
    """`joblib.hash(config)`: `joblib.Memory` goes by it."""
    config = make(SFTConfig)
    vars(config).pop("logging_dir", None)
    return joblib.hash(config)


def fingerprint_of_repr() -> Any:
    """`hashlib.md5(repr(config).encode())` in the name of a run."""
    config = make(KTOConfig)
    text = "\n".join(line for line in repr(config).splitlines() if "logging_dir" not in line)
    return hashlib.md5(text.encode()).hexdigest()


def pickled() -> Any:
    """Queues and spawned workers: `pickle.dumps`, every protocol; what it names, and how long it is."""
    configs = [make(cls) for cls in CLASSES]
    for config in configs:
        vars(config).pop("logging_dir", None)
    data = [pickle.dumps(config, protocol) for config in configs for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    return [[_globals(each), hashlib.sha256(each).hexdigest()] for each in data]


def class_itself_pickled() -> Any:
    """Launchers send the class to workers, by pickle or cloudpickle; datasets' and joblib's keys hash it."""
    texts = [pickle.dumps(SFTConfig).hex(), cloudpickle.dumps(DPOConfig).hex()]
    return texts, Hasher.hash(SFTConfig), joblib.hash(SFTConfig), copy.deepcopy(SFTConfig) is SFTConfig


OF_ANNOTATIONS = ("builtins", "types", "typing", "_operator", "_functools")  # `int | None`, `Optional[int]`


def pickled_subclass() -> Any:
    """ray and torchrun launchers: cloudpickle of a subclass that `__main__` defines."""

    @dataclass
    class InMain(SFTConfig):
        max_seq_length: int = 5

    InMain.__module__ = "__main__"
    data = cloudpickle.dumps(make(InMain, max_length=64))
    back = cloudpickle.loads(data)
    return (
        sorted({name for name in _globals(data) if name.split(" ")[0].split(".")[0] not in OF_ANNOTATIONS}),
        back.max_seq_length,
        back.max_length,
    )


def pickled_by_dill() -> Any:
    """dill, which datasets' workers use."""
    data = dill.dumps(make(GRPOConfig))
    return _globals(data), dotted(type(dill.loads(data)))


def dumped_by_joblib() -> Any:
    """scikit-learn-like metadata: `joblib.dump({"args": config}, file)`."""
    joblib.dump({"args": make(SFTConfig, max_length=4)}, "meta.joblib")
    back = joblib.load("meta.joblib")["args"]
    return type(back).__qualname__, back.max_length, back == make(SFTConfig, max_length=4)


def saved_by_torch() -> Any:
    """`torch.save(args, "training_args.bin")`, then `torch.load` as it is by default, and with the classes allowed."""
    torch.save(make(SFTConfig, max_length=4), "training_args.bin")
    refused = attempt(torch.load, "training_args.bin")
    unsafe = torch.serialization.get_unsafe_globals_in_checkpoint("training_args.bin")
    return str(refused).splitlines()[0], sorted(unsafe), torch.load("training_args.bin", weights_only=False).to_dict()


def reduced() -> Any:
    """Pickle-like protocols: `__reduce_ex__`, `__getstate__`."""
    config = make(SFTConfig)
    state = config.__reduce_ex__(2)
    return (
        [getattr(each, "__name__", str(type(each))) for each in state],
        [dotted(each) for each in state[1]],
        sorted(state[2]),
    )


def namespace() -> Any:
    """`argparse.Namespace(**vars(training_args))`, which older scripts pass around."""
    return repr(argparse.Namespace(**vars(make(SFTConfig))))


def a_table() -> Any:
    """Spreadsheets of sweeps: one line for each config, a column for each option that any of them has."""
    rows = [vars(make(cls, seed=number)) for number, cls in enumerate(CLASSES)]
    columns = sorted({name for row in rows for name in row})
    return [",".join(columns), *(",".join(str(row.get(name, "")) for name in columns) for row in rows)]


def hidden_tokens() -> Any:
    """The hub: `to_dict()` hides `hub_token`; what else ends in `_token`."""
    values = make(SFTConfig, hub_token="secret").to_dict()
    return {name: value for name, value in values.items() if "token" in name}


def unstructured_by_cattrs() -> Any:
    """`cattrs.unstructure(config)`: like `asdict`, by the fields."""
    return {name: str(value) for name, value in cattrs.Converter().unstructure(make(SFTConfig)).items()}


def opened_with_an_allow_list() -> Any:
    """ms-swift: `torch.load(weights_only=True)` after `add_safe_globals` of what the file names."""
    torch.save(make(DPOConfig, beta=0.5), "training_args.bin")
    names = sorted(torch.serialization.get_unsafe_globals_in_checkpoint("training_args.bin"))
    allowed = [pydoc.locate(name) for name in names]
    with torch.serialization.safe_globals(allowed):
        config = attempt(torch.load, "training_args.bin", weights_only=True)
    return names, config if isinstance(config, str) else [dotted(type(config)), config.beta, config.to_dict()]
