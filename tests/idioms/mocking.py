"""Tests of users: mocks, patches and fakes of a config."""

import dataclasses
import functools
import inspect
import sys
import types
from typing import Any
from unittest import mock

import trl
from idiom import attempt, make
from trl import DPOConfig, GRPOConfig, SFTConfig


def autospec_of_the_class() -> Any:
    """`create_autospec(SFTConfig)`: calls are checked against the signature."""
    fake = mock.create_autospec(SFTConfig)
    config = fake(output_dir="out", max_length=3)
    return isinstance(config, mock.NonCallableMagicMock), attempt(lambda: fake(no_such_option=1)), fake.call_args.kwargs


def autospec_of_an_instance() -> Any:
    """`create_autospec(config, instance=True)`, and `MagicMock(spec=config)`."""
    fake = mock.create_autospec(make(SFTConfig), instance=True)
    other = mock.MagicMock(spec=make(SFTConfig))
    return (
        isinstance(fake, SFTConfig),
        isinstance(other, SFTConfig),
        attempt(lambda: other.no_such_option),
        hasattr(other, "max_length"),
    )


def mock_with_the_class_as_spec() -> Any:
    """`MagicMock(spec=SFTConfig)`: what it has and has not."""
    fake = mock.MagicMock(spec=SFTConfig)
    fake.max_length = 5
    return fake.max_length, isinstance(fake, SFTConfig), attempt(lambda: fake.no_such_option), hasattr(fake, "to_dict")


def name_patched_in_trl() -> Any:
    """`with patch("trl.SFTConfig") as mock_sft`, and a fake class in its place."""
    with mock.patch("trl.SFTConfig") as fake:
        trl.SFTConfig(max_length=3, output_dir="o")
        seen = fake.call_args
    captured: dict[str, Any] = {}
    with mock.patch(
        "trl.SFTConfig", type("SFTConfig", (), {"__init__": lambda self, **options: captured.update(options)})
    ):
        trl.SFTConfig(max_length=2048)
    return seen.kwargs, captured, trl.SFTConfig is SFTConfig


def whole_package_faked() -> Any:
    """`patch.dict("sys.modules", {"trl": fake})`: tests on machines without TRL."""
    fake = types.ModuleType("trl")
    fake.SFTConfig = type("SFTConfig", (), {})
    with mock.patch.dict("sys.modules", {"trl": fake}):
        from trl import SFTConfig as Faked

        inside = Faked.__mro__
    return [each.__name__ for each in inside], sys.modules["trl"].SFTConfig is SFTConfig


def post_init_patched() -> Any:
    """`patch.object(SFTConfig, "__post_init__")`: no device, no environment, and the values as they were given."""
    with mock.patch.object(SFTConfig, "__post_init__") as fake:
        config = SFTConfig(output_dir="out", max_length=3, bf16=True)
    with mock.patch.object(SFTConfig, "__post_init__", autospec=True) as spied:
        other = SFTConfig(output_dir="out")
    return fake.call_count, config.max_length, config.bf16, spied.call_args.args[0] is other, make(SFTConfig).bf16


def post_init_replaced() -> Any:
    """Notebooks for GRPO: the original kept, `GRPOConfig.__post_init__ = patched`, which calls it."""
    original = GRPOConfig.__post_init__
    calls = []

    def patched(self: Any) -> None:
        calls.append(self.num_generations)
        if self.generation_batch_size is not None and self.steps_per_generation is not None:
            self.steps_per_generation = None
        original(self)

    GRPOConfig.__post_init__ = patched
    config = make(GRPOConfig, generation_batch_size=8, steps_per_generation=1)
    GRPOConfig.__post_init__ = original
    return (
        calls,
        config.generation_batch_size,
        original.__qualname__,
        str(attempt(make, GRPOConfig, generation_batch_size=8, steps_per_generation=1))[:60],
    )


def init_replaced() -> Any:
    """Regression tests: `monkeypatch.setattr(SFTConfig, "__init__", deterministic)`, around the original."""
    original = SFTConfig.__init__

    @functools.wraps(original)
    def deterministic(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **{**options, "seed": 7, "use_cpu": True})

    with mock.patch.object(SFTConfig, "__init__", deterministic):
        config = make(SFTConfig, seed=3)
        known = "max_length" in inspect.signature(SFTConfig).parameters
    return config.seed, known, make(SFTConfig, seed=3).seed


def init_replaced_in_a_subclass() -> Any:
    """Compatibility shims: an `__init__` that takes `max_seq_length` and hands on `max_length`, put on a subclass."""

    class Shim(DPOConfig):
        pass

    original = Shim.__init__

    def renamed(self: Any, *args: Any, **options: Any) -> None:
        if "max_seq_length" in options:
            options["max_length"] = options.pop("max_seq_length") + 1
        original(self, *args, **options)

    Shim.__init__ = renamed
    config = make(Shim, max_seq_length=4)
    return config.max_length, config.to_dict()


def default_patched_in_the_fields() -> Any:
    """Notebooks for Qwen: `SFTConfig.__dataclass_fields__["eos_token"].default = None`, which changes no `__init__`."""
    field = SFTConfig.__dataclass_fields__["max_length"]
    old, field.default = field.default, 5
    config = make(SFTConfig)
    shown = [each.default for each in dataclasses.fields(SFTConfig) if each.name == "max_length"]
    field.default = old
    return config.max_length, shown


def field_taken_away() -> Any:
    """Tests of adapters: `monkeypatch.setattr(SFTConfig, "__dataclass_fields__", fields)` with one less."""
    fields = dict(SFTConfig.__dataclass_fields__)
    del fields["packing"]
    with mock.patch.object(SFTConfig, "__dataclass_fields__", fields):
        names = {each.name for each in dataclasses.fields(SFTConfig)}
        printed = make(SFTConfig).to_dict()
    return "packing" in names, "packing" in printed, "packing" in make(SFTConfig).to_dict()


def class_attribute_set() -> Any:
    """`SFTConfig.max_length = 5` for all that follow: the generated `__init__` keeps its own default."""
    with mock.patch.object(SFTConfig, "max_length", 5):
        inside = SFTConfig.max_length, make(SFTConfig).max_length
    return inside, SFTConfig.max_length


def method_added() -> Any:
    """Monkey patches: a method or property hung on the class, and seen by every instance and subclass."""
    config = make(SFTConfig)
    SFTConfig.describe = lambda self: f"length {self.max_length}"
    SFTConfig.short = property(lambda self: self.max_length is not None and self.max_length < 10)
    seen = config.describe(), config.short, make(type("Sub", (SFTConfig,), {}), max_length=3).short
    del SFTConfig.describe, SFTConfig.short
    return seen, hasattr(config, "describe")


def method_of_the_base_patched() -> Any:
    """Tests of transformers' side: `patch.object(TrainingArguments, "to_dict")` reaches TRL's configs."""
    from transformers import TrainingArguments

    with mock.patch.object(TrainingArguments, "to_dict", lambda self: {"patched": True}):
        inside = make(SFTConfig).to_dict()
    with mock.patch.object(TrainingArguments, "__post_init__", lambda self: None):
        config = SFTConfig(output_dir="o", fp16=True)
    return inside, config.bf16, config.max_length


def property_patched() -> Any:
    """`patch.object(SFTConfig, "world_size", new_callable=PropertyMock)`: a cluster on one machine."""
    with mock.patch.object(SFTConfig, "world_size", new_callable=mock.PropertyMock, return_value=4):
        inside = make(SFTConfig).train_batch_size, make(SFTConfig).world_size
    return inside, make(SFTConfig).world_size


def wrapped_instance() -> Any:
    """`Mock(wraps=config)`: calls go through to the real one."""
    spy = mock.Mock(wraps=make(SFTConfig, max_length=3))
    return sorted(spy.to_dict()) == sorted(make(SFTConfig).to_dict()), spy.to_dict.call_count
