"""Copies, changes and comparisons of configs, and one kind made of another."""

import copy
import dataclasses
import weakref
from dataclasses import dataclass
from typing import Any

from idiom import attempt, dotted, make
from transformers import TrainingArguments
from trl import DPOConfig, GRPOConfig, RewardConfig, SFTConfig

CLASSES = (SFTConfig, DPOConfig, RewardConfig)


def rebuilt_from_its_dict() -> Any:
    """Smoke tests: `type(args)(**{**args.to_dict(), "output_dir": out})`."""
    first = [make(cls, max_length=7) for cls in CLASSES]
    again = [type(config)(**{**config.to_dict(), "output_dir": "other"}) for config in first]
    return [[config.max_length, config.to_dict()] for config in again]


def merged_dicts() -> Any:
    """Self-play trainers: `GRPOConfig(**{**cfg.to_dict(), "seed": 3})`; a batch size is set by then."""
    values = {**make(GRPOConfig).to_dict(), "seed": 3}
    refused = attempt(GRPOConfig, **values)
    values.pop("generation_batch_size", None)
    return str(refused)[:200], attempt(lambda: GRPOConfig(**values).to_dict())


def replaced() -> Any:
    """Hyperparameter search: `dataclasses.replace(training_args, **trial_params)`."""
    configs = [dataclasses.replace(make(cls, max_length=7), learning_rate=0.5) for cls in CLASSES]
    return [[config.max_length, config.learning_rate, config.to_dict()] for config in configs]


def replaced_by_copy() -> Any:
    """`copy.replace` of Python 3.13; before that, `dataclasses.replace`."""
    config = getattr(copy, "replace", dataclasses.replace)(make(SFTConfig, max_length=7), max_length=8)
    return config.max_length, type(config) is SFTConfig, list(vars(config))


def replaced_in_a_subclass() -> Any:
    """The same with a user's field by the name of an extra."""

    @dataclass
    class Own(SFTConfig):
        max_seq_length: int = 4096

    config = dataclasses.replace(make(Own, max_length=64), max_seq_length=5)
    return config.max_length, config.max_seq_length


def copied() -> Any:
    """`copy.copy` and `copy.deepcopy(training_args)` for a second trainer."""
    config = make(SFTConfig, max_length=7)
    shallow, deep = copy.copy(config), copy.deepcopy(config)
    deep.max_length = 8
    return (
        [type(each) is SFTConfig for each in (shallow, deep)],
        config.max_length,
        shallow == config,
        vars(shallow) == vars(config),
        list(vars(deep)),
    )


def state_moved_over() -> Any:
    """`new = SFTConfig.__new__(SFTConfig); new.__dict__.update(old.__dict__)`: past `__init__`."""
    config = make(SFTConfig, max_length=7)
    new = SFTConfig.__new__(SFTConfig)
    new.__dict__.update(config.__dict__)
    other = object.__new__(SFTConfig)
    for name, value in vars(config).items():
        setattr(other, name, value)
    return new == config, other == config, repr(new), list(vars(other))


def set_in_a_loop() -> Any:
    """wandb sweeps and `update_args(args, overrides)`: `setattr` for what `hasattr` finds, an error for the rest."""
    config = make(SFTConfig)
    refused = []
    for name, value in {"learning_rate": 0.5, "max_length": 9, "no_such_option": 1, "packing": True}.items():
        if hasattr(config, name):
            setattr(config, name, value)
        else:
            refused.append(name)
    return refused, config.to_dict()


def trial_of_a_search() -> Any:
    """transformers' `_hp_search_setup`: each trial value takes the type of the old one."""
    config = make(SFTConfig)
    for name, value in {"learning_rate": "0.25", "seed": "3", "max_length": "11"}.items():
        old = getattr(config, name)
        setattr(config, name, type(old)(value) if old is not None else value)
    return config.learning_rate, config.seed, config.max_length


def made_of_training_arguments() -> Any:
    """TRL's SFTTrainer: `TrainingArguments` through `to_dict()`, the hub token put back."""
    arguments = make(TrainingArguments, hub_token="secret", learning_rate=0.5)
    values = arguments.to_dict()
    values["hub_token"] = arguments.hub_token
    values.pop("push_to_hub_token", None)
    config = SFTConfig(**values)
    return config.hub_token, config.learning_rate, config.max_length, list(vars(config))


def made_of_shared_fields() -> Any:
    """The same by name: what `fields(SFTConfig)` has is taken out of another config's dict."""
    source = make(DPOConfig, max_length=7, learning_rate=0.5)
    names = [each.name for each in dataclasses.fields(SFTConfig) if each.init]
    config = SFTConfig(
        **{name: value for name, value in source.to_dict().items() if name in names and name not in ("loss_type",)}
    )
    return config.max_length, config.learning_rate, config.to_dict()


def back_to_training_arguments() -> Any:
    """Evaluation scripts: a TRL config cut down to `TrainingArguments`, by its fields."""
    config = make(DPOConfig, max_length=7, learning_rate=0.5)
    names = {each.name for each in dataclasses.fields(TrainingArguments)}
    arguments = TrainingArguments(**{name: value for name, value in config.to_dict().items() if name in names})
    return arguments.to_dict(), sorted(name for name in config.to_dict() if name not in names)


def differences() -> Any:
    """Experiment logs: what a config has other than the defaults, and two configs side by side."""
    config, default = make(SFTConfig, max_length=7, learning_rate=0.5), make(SFTConfig)
    changed = {name: value for name, value in config.to_dict().items() if value != default.to_dict()[name]}
    by_fields = [
        each.name for each in dataclasses.fields(config) if getattr(config, each.name) != getattr(default, each.name)
    ]
    return changed, by_fields, sorted(set(vars(config)) ^ set(vars(default)))


def differs_from_the_declared_default() -> Any:
    """Command lines rebuilt from a config: options whose value is not the field's default."""
    config = make(SFTConfig, max_length=7)
    return [
        f"--{each.name}={getattr(config, each.name)}"
        for each in dataclasses.fields(config)
        if each.default is not dataclasses.MISSING
        and getattr(config, each.name) != each.default
        and each.name != "logging_dir"
    ]


def equality() -> Any:
    """Tests of configs: equal, unequal, and of another class."""
    return (
        make(SFTConfig) == make(SFTConfig),
        make(SFTConfig) == make(SFTConfig, max_length=3),
        make(SFTConfig) == make(DPOConfig),
        attempt(hash, make(SFTConfig)),
    )


def other_class_for_an_instance() -> Any:
    """ray.train: `trainer.args.__class__ = RayTrainingArguments`, a subclass made of the class of the args."""
    config = make(SFTConfig, max_length=7)

    class RayTrainingArguments(type(config)):
        @property
        def device(self) -> str:
            return "ray's"

    config.__class__ = RayTrainingArguments
    back = make(SFTConfig)
    back.__class__ = SFTConfig
    return config.device, config.max_length, config.to_dict()


def dataclass_made_of_an_instance() -> Any:
    """Config merging: `args.__class__ = make_dataclass("Config", fields=..., bases=(type(args),))`."""
    config = make(SFTConfig, max_length=7)
    extra = {"max_seq_length": 5, "vllm_sampling_params": "none", "note": "n"}
    config.__class__ = dataclasses.make_dataclass(
        "Config", fields=[(name, type(value), value) for name, value in extra.items()], bases=(type(config),)
    )
    return config.note, config.max_seq_length, config.vllm_sampling_params, config.max_length


def class_copied_by_its_body() -> Any:
    """Plug-ins that clone a class: `type(name, bases, dict(vars(cls)))`."""
    body = {name: value for name, value in vars(SFTConfig).items() if name not in ("__dict__", "__weakref__")}
    clone = type("SFTConfig", SFTConfig.__bases__, body)
    config = attempt(make, clone, max_length=7)
    return (config, clone.__name__) if isinstance(config, str) else (config.max_length, clone.__name__)


def attribute_set_by_hand() -> Any:
    """Scripts for an old TRL: `training_args.max_seq_length = 1024` after the config was made."""
    config = make(SFTConfig, max_length=7)
    config.max_seq_length = 1024
    config.own_note = "n"
    return config.max_length, config.max_seq_length, vars(config)["max_seq_length"]


def attribute_set_by_hand_and_saved() -> Any:
    """The same, then `to_dict()`: on stock an attribute that is no field is not in it."""
    config = make(SFTConfig, max_length=7)
    config.max_seq_length = 1024
    return config.to_dict()


def attribute_deleted() -> Any:
    """Migrations: `del args.max_length`, then the class answers with its default."""
    config = make(SFTConfig, max_length=7)
    del config.max_length
    return config.max_length, attempt(delattr, config, "no_such_option"), "max_length" in vars(config)


def weakly_referenced() -> Any:
    """Callbacks that keep a weak reference to the args."""
    config = make(SFTConfig)
    return (
        weakref.ref(config)() is config,
        isinstance(config.__dict__, dict),
        attempt(getattr, config, "__weakref__") is not None,
    )


def changed_by_its_own_methods() -> Any:
    """Methods of TrainingArguments that change it and return it: `set_training`, `set_dataloader`."""
    config = make(SFTConfig)
    return (
        config.set_training(learning_rate=0.5, batch_size=3) is config,
        config.per_device_train_batch_size,
        config.to_dict(),
    )


def class_of_the_copy() -> Any:
    """Where class and module of a copy are printed."""
    copies = [
        copy.copy(make(SFTConfig)),
        copy.deepcopy(make(GRPOConfig)),
        dataclasses.replace(make(DPOConfig), beta=0.5),
    ]
    return [dotted(type(each)) for each in copies]


def rebuilt_from_its_fields() -> Any:
    """`cls(**{f.name: getattr(config, f.name) for f in fields(config)})`: every value given, none of them new."""
    config = make(SFTConfig, max_length=7)
    values = {each.name: getattr(config, each.name) for each in dataclasses.fields(config) if each.init}
    again = SFTConfig(**values)
    return again == config, again.max_length, again.to_dict(), list(vars(again))


def rebuilt_from_asdict() -> Any:
    """`SFTConfig(**asdict(config))`, for which nested dataclasses have become dicts."""
    again = SFTConfig(**dataclasses.asdict(make(SFTConfig, max_length=7)))
    return again.max_length, again.to_dict(), list(vars(again))


def every_value_in_a_tuple() -> Any:
    """Records by position: `dataclasses.astuple` of a config, and the config made of it again."""
    values = dataclasses.astuple(make(SFTConfig, max_length=3))
    return attempt(lambda: dotted(type(SFTConfig(*values))))
