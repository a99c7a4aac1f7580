"""Classes that derive from a config: fields, mixins, and all ways to have something of one's own by an extra's name."""

import abc
import dataclasses
import functools
import sys
import types
import typing
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import attr
import pydantic
import trl
from idiom import PLAIN, attempt, dotted, make, own_fields
from transformers import TrainingArguments
from trl import DPOConfig, GRPOConfig, ModelConfig, RewardConfig, ScriptArguments, SFTConfig

Value = TypeVar("Value")


def _seen(config: Any, *names: str) -> dict[str, Any]:
    return {
        name: attempt(getattr, config, name)
        for name in ("max_length", "learning_rate", *names)
        if hasattr(config, name)
    }


def field_with_a_default() -> Any:
    """Training scripts (`OurTrainingArguments(SFTConfig)` with `max_seq_length: int = 4400`); axolotl's configs."""

    @dataclass
    class OurTrainingArguments(SFTConfig):
        output_dir: str | None = field(default="./checkpoints/", metadata={"help": "where to save"})
        max_seq_length: int = field(default=4400, metadata={"help": "longest sequence"})

    configs = [
        make(OurTrainingArguments),
        make(OurTrainingArguments, max_length=1024),
        make(OurTrainingArguments, max_seq_length=7),
    ]
    return [[_seen(config, "max_seq_length"), config.to_dict()] for config in configs]


def mixin_in_front() -> Any:
    """axolotl, core/training_args.py: `AxolotlDPOConfig(AxolotlTrainingMixins, DPOConfig)`, with 2048 for all."""

    @dataclass
    class TrainingMixins:
        max_seq_length: int = field(default=2048, metadata={"help": "The maximum sequence length the model can handle"})
        sample_packing: bool = False

    @dataclass
    class MixedDPOConfig(TrainingMixins, DPOConfig):
        dpo_norm_loss: bool = False

    @dataclass
    class MixedRewardConfig(TrainingMixins, RewardConfig):
        pass

    return [
        _seen(make(cls, max_length=8192), "max_seq_length", "sample_packing")
        for cls in (MixedDPOConfig, MixedRewardConfig)
    ]


def mixin_behind() -> Any:
    """Scripts with `MyTrainingArguments(GRPOConfig, OwnArguments)`, the arguments with lengths of their own."""

    @dataclass
    class OwnArguments:
        max_seq_length: int = 512
        unsloth_num_chunks: int = 3

    @dataclass
    class Behind(SFTConfig, OwnArguments):
        pass

    config = make(Behind, max_length=64)
    return _seen(config, "max_seq_length", "unsloth_num_chunks"), [
        each.name for each in dataclasses.fields(OwnArguments)
    ]


def all_five_names_as_text() -> Any:
    """Sweep scripts that keep every option as text: a field of another type by each of the names."""

    @dataclass
    class Sweep(SFTConfig):
        vllm_sampling_params: str = "greedy"
        unsloth_num_chunks: str = "four"
        unsloth_logit_chunk_multiplier: str = "two"
        unsloth_grpo_mini_batch: str = "one"
        max_seq_length: str = "long"

    config = make(Sweep, max_length=64)
    return {
        **_seen(config),
        **{each.name: getattr(config, each.name) for each in dataclasses.fields(config)[-5:]},
        "repr": repr(config),
    }


def mini_batch_of_its_own() -> Any:
    """GRPO forks with a mini batch option that knows no generation batch."""

    @dataclass
    class OwnGRPOConfig(GRPOConfig):
        unsloth_grpo_mini_batch: int = 1_000_000
        vllm_sampling_params: dict[str, Any] = field(default_factory=lambda: {"top_p": 0.9})

    config = make(OwnGRPOConfig)
    return [config.unsloth_grpo_mini_batch, config.vllm_sampling_params, config.generation_batch_size]


def class_variable() -> Any:
    """trl.experimental and open-r1 keep constants as ClassVar beside fields."""

    @dataclass
    class Constants(SFTConfig):
        max_seq_length: ClassVar[int] = 32768
        unsloth_num_chunks: ClassVar[str] = "constant"

    config = make(Constants, max_length=64)
    refused = attempt(make, Constants, max_seq_length=5)
    return _seen(config, "max_seq_length", "unsloth_num_chunks"), refused, config.to_dict()


def attribute_without_annotation() -> Any:
    """Class bodies of notebooks: a plain value, no annotation."""

    @dataclass
    class Notebook(SFTConfig):
        max_seq_length = 2048
        unsloth_grpo_mini_batch = "half"

    config = make(Notebook, max_length=64)
    return _seen(config, "max_seq_length", "unsloth_grpo_mini_batch"), repr(config), config.to_dict()


def init_var() -> Any:
    """Old names kept as InitVar: the renaming recipe of the dataclasses documentation."""

    @dataclass
    class Renamed(SFTConfig):
        max_seq_length: InitVar[int | None] = None

        def __post_init__(self, max_seq_length: int | None = None) -> None:
            if max_seq_length is not None:
                self.max_length = max_seq_length // 2
            super().__post_init__()

    return [_seen(make(Renamed, **options)) for options in ({}, {"max_seq_length": 10}, {"max_length": 9})]


def read_only_property() -> Any:
    """Trainers that ask for `args.max_seq_length`: adapters answer with a property over `max_length`."""

    @dataclass
    class Adapter(SFTConfig):
        @property
        def max_seq_length(self) -> int | None:
            return self.max_length

        @property
        def unsloth_num_chunks(self) -> str:
            return "a property"

    config = make(Adapter, max_length=77)
    return (
        _seen(config, "max_seq_length", "unsloth_num_chunks"),
        attempt(setattr, config, "max_seq_length", 5),
        sorted(vars(config)),
    )


def property_with_a_setter() -> Any:
    """The alias recipe for a renamed option: both names read and write one value."""

    class Alias(SFTConfig):
        @property
        def max_seq_length(self) -> int | None:
            return self.max_length

        @max_seq_length.setter
        def max_seq_length(self, value: int | None) -> None:
            self.max_length = value

    config = make(Alias, max_length=77)
    config.max_seq_length = 5
    return _seen(config, "max_seq_length"), config.to_dict()


def cached_property_by_the_name() -> Any:
    """vLLM scripts that make SamplingParams when they are first asked for."""

    class Lazy(GRPOConfig):
        @functools.cached_property
        def vllm_sampling_params(self) -> dict[str, Any]:
            return {"temperature": self.temperature}

    config = make(Lazy, temperature=0.5)
    return "vllm_sampling_params" in vars(config), config.vllm_sampling_params, "vllm_sampling_params" in vars(config)


def method_by_the_name() -> Any:
    """Wrappers whose `vllm_sampling_params()` is a method."""

    @dataclass
    class Wrapper(GRPOConfig):
        def vllm_sampling_params(self, **options: Any) -> dict[str, Any]:
            return {"temperature": self.temperature, **options}

    return make(Wrapper, temperature=0.5).vllm_sampling_params(n=2)


def computed_field() -> Any:
    """ms-swift style: `field(init=False)`, filled in `__post_init__`."""

    @dataclass
    class Computed(SFTConfig):
        max_seq_length: int = field(init=False)

        def __post_init__(self) -> None:
            super().__post_init__()
            self.max_seq_length = 2 * (self.max_length or 0)

    config = make(Computed, max_length=8)
    return _seen(config, "max_seq_length"), config.to_dict(), repr(config)


def slots() -> Any:
    """Scripts whose every dataclass has `slots=True`."""

    @dataclass(slots=True)
    class Slotted(SFTConfig):
        swe_split: str = "train"
        max_seq_length: int = 256

    config = make(Slotted, max_length=64)
    return _seen(config, "max_seq_length", "swe_split"), Slotted.__slots__


def slots_and_super() -> Any:
    """The same with a `__post_init__`: slots make the class anew, and `super()` must find it."""

    @dataclass(slots=True)
    class Slotted(SFTConfig):
        ratio: float = 0.5

        def __post_init__(self) -> None:
            SFTConfig.__post_init__(self)
            self.ratio *= 2

    return make(Slotted).ratio


def keyword_only() -> Any:
    """`@dataclass(kw_only=True)`, to have fields without defaults after TRL's."""

    @dataclass(kw_only=True)
    class Strict(SFTConfig):
        data_path: str
        max_seq_length: int

    return (
        attempt(make, Strict),
        attempt(make, Strict, data_path="d"),
        _seen(make(Strict, data_path="d", max_seq_length=3, max_length=64), "max_seq_length"),
    )


def field_without_default() -> Any:
    """The mistake that everybody makes once: a field without a default after those with one."""

    def define() -> type:
        @dataclass
        class Wrong(SFTConfig):
            data_path: str

        return Wrong

    return attempt(define)


def made_by_make_dataclass() -> Any:
    """Experiment managers that build config classes from a YAML's keys."""
    fields = [("max_seq_length", int, 128), ("note", str, field(default="n")), ("unsloth_num_chunks", Any, None)]
    cls = dataclasses.make_dataclass("Dynamic", fields, bases=(SFTConfig,))
    config = make(cls, max_length=64)
    return _seen(config, "max_seq_length", "note", "unsloth_num_chunks"), cls.__mro__[-3:] == SFTConfig.__mro__[-3:]


def frozen_is_refused() -> Any:
    """`@dataclass(frozen=True)` over a config: dataclasses refuse it."""
    return attempt(dataclasses.make_dataclass, "Frozen", [], bases=(SFTConfig,), frozen=True)


def ordered_and_hashed() -> Any:
    """Configs as keys of a cache, and sorted in a sweep."""

    @dataclass(order=True, unsafe_hash=True)
    class Keyed(ModelConfig):
        pass

    @dataclass(eq=False)
    class ByIdentity(SFTConfig):
        rank: int = 0

    first, second = make(ByIdentity), make(ByIdentity)
    return first is not second, first == second, attempt(hash, first), Keyed.__hash__ is not None


def generic_subclass() -> Any:
    """Typed pipelines: `class Job(SFTConfig, Generic[T])`."""

    @dataclass
    class Job(SFTConfig, Generic[Value]):
        payload: Value | None = None

    config = make(Job[int], payload=3)
    return (
        type(config).__qualname__,
        config.payload,
        str(Job[int]).rpartition(".")[2],
        typing.get_type_hints(Job)["payload"],
    )


def abstract_mixin() -> Any:
    """Plug-in systems: an ABC in front, with a method that each config has to write."""

    class Described(abc.ABC):
        @abc.abstractmethod
        def describe(self) -> str: ...

    @dataclass
    class Half(Described, SFTConfig):
        pass

    class Whole(Half):
        def describe(self) -> str:
            return f"{self.max_length}"

    return attempt(make, Half), make(Whole, max_length=3).describe(), Half.__abstractmethods__, type(Half).__name__


def registered_when_derived() -> Any:
    """Registries by `__init_subclass__`, with keywords in the class statement."""
    registry: dict[str, list[str]] = {}

    class Registered:
        def __init_subclass__(cls, tag: str | None = None, **options: Any) -> None:
            super().__init_subclass__(**options)
            registry.setdefault(str(tag), []).append(cls.__qualname__.rpartition(".")[2])

    class Sft(Registered, SFTConfig, tag="sft"): ...

    class Dpo(DPOConfig, Registered, tag="dpo"): ...

    class Sub(Sft): ...

    make(Sub)
    return registry


def own_new() -> Any:
    """Singletons and argument checks in `__new__`."""

    class Single(SFTConfig):
        one: ClassVar[Any] = None

        def __new__(cls, *args: Any, **options: Any) -> Any:
            if cls.one is None:
                cls.one = super().__new__(cls)
                cls.one.given = (args, sorted(options))
            return cls.one

    first = make(Single)
    return make(Single, max_length=5) is first, first.given, first.max_length


def attributes_in_the_order_they_are_set() -> Any:
    """Audit mixins: `__setattr__` that writes down who sets what."""
    written: list[str] = []

    class Audited(SFTConfig):
        def __setattr__(self, name: str, value: Any) -> None:
            written.append(f"{name}={value!r}")
            super().__setattr__(name, value)

    make(Audited, max_length=5)
    return written


def missing_attributes_have_an_answer() -> Any:
    """open-source RLHF forks: `__getattr__` that answers None for what an older TRL does not have."""
    asked: list[str] = []

    class Lenient(SFTConfig):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            asked.append(name)
            return None

    config = make(Lenient)
    return config.no_such_option, config.max_length, asked, config.to_dict()


def guarded_attributes() -> Any:
    """Configs that are closed after construction: `__setattr__` refuses names that are no fields."""

    @dataclass
    class Closed(SFTConfig):
        def __setattr__(self, name: str, value: Any) -> None:
            if self.__dict__.get("closed") and name not in self.__dict__:
                raise AttributeError(f"{name} is not an option")
            object.__setattr__(self, name, value)

    config = make(Closed)
    object.__setattr__(config, "closed", True)
    config.max_length = 9
    return config.max_length, attempt(setattr, config, "nothing", 1), sorted(vars(config))


def own_to_dict() -> Any:
    """LLaMA-Factory, hparams/training_args.py, and axolotl: `to_dict` that calls `super().to_dict()` and adds to it."""

    @dataclass
    class Adds(SFTConfig):
        extra_note: str = "note"

        def to_dict(self) -> dict[str, Any]:
            return {**super().to_dict(), "added": True}

    config = make(Adds)
    return config.to_dict(), config.to_json_string(), config.to_sanitized_dict()


def own_text() -> Any:
    """Classes that print themselves their own way."""

    class Prints(SFTConfig):
        def __str__(self) -> str:
            return f"Prints({self.max_length})"

        __repr__ = __str__

    @dataclass(repr=False)
    class Inherits(SFTConfig):
        more: int = 1

    @dataclass
    class Anew(SFTConfig):
        more: int = 1

    return str(make(Prints)), f"{make(Prints)!r}", repr(make(Inherits)), repr(make(Anew))


def own_equality() -> Any:
    """Configs that are equal when their hyperparameters are."""

    class ByRate(SFTConfig):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, SFTConfig) and self.learning_rate == other.learning_rate

        def __hash__(self) -> int:
            return hash(self.learning_rate)

    one, two = make(ByRate, max_length=3), make(ByRate, max_length=4)
    return one == two, one == make(SFTConfig), len({one, two}), SFTConfig.__hash__


def skips_trl_own_post_init() -> Any:
    """ms-swift, rlhf_trainers/arguments.py: `super(HfGRPOConfig, self).__post_init__()`."""

    @dataclass
    class SwiftGRPOConfig(GRPOConfig):
        num_generations: int = 1

        def __post_init__(self) -> None:
            super(GRPOConfig, self).__post_init__()
            self.checked = "by TrainingArguments alone"

    @dataclass
    class SkippingDPO(DPOConfig):
        loss_type: Any = "sigmoid"

        def __post_init__(self) -> None:
            super(DPOConfig, self).__post_init__()

    config = make(SwiftGRPOConfig)
    return config.num_generations, config.checked, make(SkippingDPO).loss_type, config.to_dict()


def skips_other_methods_too() -> Any:
    """The same for any method: `super(SFTConfig, self).to_dict()` starts after TRL's class."""

    class After(SFTConfig):
        def to_dict(self) -> dict[str, Any]:
            return {"owner": dotted(super(SFTConfig, self).to_dict.__func__), **super(SFTConfig, self).to_dict()}

        def __repr__(self) -> str:
            return super(SFTConfig, self).__repr__()

    config = make(After)
    return config.to_dict(), repr(config)


def calls_trl_post_init_by_name() -> Any:
    """Scripts with one class for all: `SFTScriptArguments(SFTConfig, ModelConfig)`; `__post_init__` called by name."""

    @dataclass
    class Everything(SFTConfig, ModelConfig):
        _VALID_DICT_FIELDS = [*getattr(SFTConfig, "_VALID_DICT_FIELDS", []), "config_kwargs"]
        config_kwargs: dict[str, Any] | str | None = None

        def __post_init__(self) -> None:
            SFTConfig.__post_init__(self)
            if hasattr(ModelConfig, "__post_init__"):
                ModelConfig.__post_init__(self)

    config = make(Everything, model_name_or_path="m", max_length=5, config_kwargs={"a": 1})
    return config.to_dict(), config._VALID_DICT_FIELDS


def two_training_arguments() -> Any:
    """optimum-neuron: `NeuronSFTConfig(NeuronTrainingArguments, SFTConfig)`, both over TrainingArguments."""

    @dataclass
    class NeuronTrainingArguments(TrainingArguments):
        tensor_parallel_size: int = 1

        def __post_init__(self) -> None:
            self.order = [*getattr(self, "order", []), "neuron"]
            super().__post_init__()

    @dataclass
    class NeuronSFTConfig(NeuronTrainingArguments, SFTConfig):
        pass

    config = make(NeuronSFTConfig, max_length=6)
    return config.order, _seen(config, "tensor_parallel_size"), config.to_dict()


def two_configs_of_trl() -> Any:
    """A class for a pipeline of two stages: `Both(SFTConfig, DPOConfig)`."""

    @dataclass
    class Both(SFTConfig, DPOConfig):
        pass

    config = make(Both, beta=0.5, max_length=6)
    return config.beta, config.max_length, config.to_dict()


def script_arguments_in_front() -> Any:
    """MindNLP's GRPO example: `MyTrainingArguments(ScriptArguments, GRPOConfig)`."""

    @dataclass
    class MyTrainingArguments(ScriptArguments, GRPOConfig):
        dataset_name: str = "d"
        max_seq_length: int = 99

    config = make(MyTrainingArguments)
    return config.dataset_name, config.max_seq_length, config.to_dict()


def called_training_arguments() -> Any:
    """Tournament and course scripts: a user's class that is called TrainingArguments, over DPOConfig."""
    base = DPOConfig

    @dataclass
    class TrainingArguments(base):
        request_path: str | None = None
        use_liger: bool | None = False
        model_max_length: int = 512

    config = make(TrainingArguments)
    return type(config).__name__, config.model_max_length, repr(config)


def called_as_trls() -> Any:
    """open-r1, configs.py: `class SFTConfig(trl.SFTConfig)` and `class GRPOConfig(trl.GRPOConfig)`."""

    @dataclass
    class SFTConfig(trl.SFTConfig):
        benchmarks: list[str] = field(default_factory=list)
        max_seq_length: int = 1024

        def __post_init__(self) -> None:
            super().__post_init__()
            self.seen = "own"

    config = make(SFTConfig, max_length=64)
    return _seen(config, "max_seq_length", "benchmarks", "seen"), isinstance(config, trl.SFTConfig), repr(config)


def base_that_may_be_missing() -> Any:
    """Packages with an optional TRL: `SFTConfigBase = trl.SFTConfig if trl is not None else object`."""
    base = trl.SFTConfig if trl is not None else object

    class Optionally(base):
        reward: str = "accuracy"

    return make(Optionally).reward, Optionally.__bases__[0] is trl.SFTConfig


def documented_by_trls_text() -> Any:
    """PaddleNLP: `@add_start_docstrings(SFTConfig.__doc__)` on the subclass."""

    def add_start_docstrings(text: str | None) -> Any:
        def add(cls: Any) -> Any:
            cls.__doc__ = (text or "") + (cls.__doc__ or "")
            return cls

        return add

    @dataclass
    @add_start_docstrings(SFTConfig.__doc__)
    class SFTAutoConfig(SFTConfig):
        enable_linear_fused_grad_add: bool = False

    return SFTAutoConfig.__doc__, make(SFTAutoConfig).enable_linear_fused_grad_add


def not_a_dataclass() -> Any:
    """Notebooks: a subclass with an `__init__` of its own that sets the length itself."""

    class OwnInit(SFTConfig):
        def __init__(self, *args: Any, max_seq_length: int = 512, **options: Any) -> None:
            super().__init__(*args, **options)
            self.limit = max_seq_length

    config = make(OwnInit, max_seq_length=6, max_length=64)
    return config.limit, config.max_length, config.to_dict()


def positional_output_dir() -> Any:
    """TRL's own trainers: `SFTConfig(f"{model_name}-SFT")`; and how many positional arguments there are."""
    rest = {name: value for name, value in PLAIN.items() if name != "output_dir"}
    return SFTConfig("model-SFT", **rest).output_dir, attempt(SFTConfig, *[None] * 1000)


def defaults_changed() -> Any:
    """Recipes: a subclass that only has other defaults."""

    @dataclass
    class Recipe(GRPOConfig):
        learning_rate: float = 1e-7
        beta: float = 0.25
        num_generations: int = 4
        unsloth_num_chunks: int = 16

    config = make(Recipe)
    return config.learning_rate, config.beta, config.num_generations, config.unsloth_num_chunks, repr(config)


def nested_dataclass_field() -> Any:
    """SWE training: `SweSFTConfig(SFTConfig)` with a dataclass of its own as a field."""

    @dataclass
    class SweData:
        max_seq_length: int = 10
        num_proc: int = 4

    @dataclass
    class SweSFTConfig(SFTConfig):
        swe: SweData = field(default_factory=SweData)

    config = make(SweSFTConfig)
    return own_fields(config.swe), str(config.to_dict()["swe"])


def three_levels() -> Any:
    """Algorithm forks: a config over a config over TRL's, the name set anew at each level."""

    @dataclass
    class Middle(DPOConfig):
        max_seq_length: int = 10

    @dataclass
    class Last(Middle):
        max_seq_length: int = 20

    class Plain(Last):
        max_seq_length = 30

    return [_seen(make(cls, max_length=64), "max_seq_length") for cls in (Middle, Last, Plain)]


def over_a_config_that_inherits() -> Any:
    """trl.experimental: configs over SFTConfig (`GOLDConfig`, `GKDConfig`), and a user's class over these."""
    try:
        from trl.experimental.gkd import GKDConfig
    except ImportError:
        from trl import GKDConfig

    @dataclass
    class Distil(GKDConfig):
        max_seq_length: int = 11

    config = make(Distil, max_length=64)
    return config.max_length, config.max_seq_length, config.to_dict()


def pydantic_dataclass() -> Any:
    """Recipe frameworks: `@pydantic.dataclasses.dataclass class GRPOConfigSpec(Defaults, GRPOConfig)`."""

    @dataclass
    class Defaults:
        logging_steps: float = 1.0

    @pydantic.dataclasses.dataclass(config={"arbitrary_types_allowed": True})
    class Spec(Defaults, GRPOConfig):
        max_seq_length: int = 5

    config = attempt(make, Spec)
    return config if isinstance(config, str) else [config.logging_steps, config.max_seq_length, config.beta]


def attrs_class() -> Any:
    """attrs over a dataclass: it writes an `__init__` of its own, for its own fields."""

    @attr.s(auto_attribs=True)
    class Settings(SFTConfig):
        max_seq_length: int = 7
        vllm_sampling_params: str = "none"

    settings = Settings()
    return settings.max_seq_length, settings.vllm_sampling_params, [each.name for each in attr.fields(Settings)]


def made_in_a_function() -> Any:
    """ezpz: `_sft_config_cls()`, so that importing the module does not import TRL."""

    def config_class() -> Any:
        from trl import SFTConfig

        @dataclass
        class LazyConfig(SFTConfig):
            max_steps: int = 10

        return LazyConfig

    return config_class().__qualname__, make(config_class()).max_steps, config_class().__mro__[-2].__name__


def annotations_as_text() -> Any:
    """Modules with `from __future__ import annotations`: the fields' types are strings."""
    module = sys.modules["user_module"] = types.ModuleType("user_module")
    exec(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\nfrom trl import SFTConfig\n"
        "@dataclass\nclass Textual(SFTConfig):\n    max_seq_length: int = 9\n    names: list[str] | None = None\n",
        vars(module),
    )
    hints = typing.get_type_hints(module.Textual)
    return _seen(make(module.Textual, max_length=64), "max_seq_length"), hints["max_seq_length"], hints["names"]


def descriptor_default() -> Any:
    """Validated fields: a descriptor as the default of a dataclass field."""

    class Positive:
        def __set_name__(self, owner: type, name: str) -> None:
            self.slot = f"_{name}"

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            return 1 if instance is None else getattr(instance, self.slot, 1)

        def __set__(self, instance: Any, value: Any) -> None:
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"not positive: {value!r}")
            setattr(instance, self.slot, value)

    @dataclass
    class Validated(SFTConfig):
        max_seq_length: Positive = Positive()

    return (
        make(Validated, max_length=64).max_length,
        make(Validated).max_seq_length,
        attempt(make, Validated, max_seq_length=-1),
    )


def every_name_in_every_way() -> Any:
    """All of the above for each of the names: frameworks differ in which one they have, and how they have it."""
    names = (
        "vllm_sampling_params",
        "unsloth_num_chunks",
        "unsloth_logit_chunk_multiplier",
        "unsloth_grpo_mini_batch",
        "max_seq_length",
    )
    seen: dict[str, Any] = {}
    for name in names:
        mixin = dataclasses.make_dataclass("Mixin", [(name, Any, 4096)])
        bodies: dict[str, Any] = {
            "number": dataclasses.make_dataclass("Own", [(name, int, 4096)], bases=(GRPOConfig,)),
            "text": dataclasses.make_dataclass("Own", [(name, str, "text")], bases=(SFTConfig,)),
            "pair": dataclasses.make_dataclass("Own", [(name, tuple, (1, 2))], bases=(DPOConfig,)),
            "slots": dataclasses.make_dataclass("Own", [(name, int, 4096)], bases=(SFTConfig,), slots=True),
            "keyword": dataclasses.make_dataclass("Own", [(name, int)], bases=(SFTConfig,), kw_only=True),
            "hidden": dataclasses.make_dataclass(
                "Own", [(name, Any, field(default=1, repr=False))], bases=(SFTConfig,)
            ),
            "no init": dataclasses.make_dataclass(
                "Own", [(name, Any, field(default=1, init=False))], bases=(SFTConfig,)
            ),
            "constant": dataclasses.make_dataclass("Own", [(name, ClassVar[int], 4096)], bases=(GRPOConfig,)),
            "in front": dataclasses.make_dataclass("Own", [], bases=(mixin, SFTConfig)),
            "behind": dataclasses.make_dataclass("Own", [], bases=(SFTConfig, mixin)),
            "attribute": type("Own", (GRPOConfig,), {name: 4096}),
            "property": type("Own", (SFTConfig,), {name: property(lambda self: "read only")}),
            "method": type("Own", (GRPOConfig,), {name: lambda self: "called"}),
            "plain mixin": type("Own", (type("Mixin", (), {name: 4096}), GRPOConfig), {}),
        }
        for way, cls in bodies.items():
            config = attempt(make, cls, **({name: 5} if way == "keyword" else {}))
            if isinstance(config, str):
                seen[f"{name} {way}"] = config
                continue
            value = getattr(config, name)
            lengths = [getattr(config, each, "none") for each in ("max_length", "generation_batch_size")]
            printed = [name in config.to_dict(), f"{name}=" in repr(config), name in vars(config)]
            seen[f"{name} {way}"] = [value() if callable(value) else value, lengths, printed]
    return seen


def class_variable_over_a_dataclass() -> Any:
    """Frameworks two deep: a dataclass of their own over a config, and under that a plain class with a property."""

    @dataclass
    class Own(SFTConfig):
        mine: int = 1

    class Plain(Own):
        max_seq_length = 2048

    class Computed(Own):
        @property
        def max_seq_length(self) -> int:
            return 7

    return (
        make(Plain).max_seq_length,
        "max_seq_length" in vars(make(Plain)),
        attempt(lambda: make(Computed).max_seq_length),
    )


def equal_but_for_an_extra() -> Any:
    """Unsloth's users: a dataclass of their own over a config, with an extra that is set."""

    @dataclass
    class Own(SFTConfig):
        mine: int = 1

    config = attempt(lambda: make(Own, unsloth_num_chunks=4))
    return [text in str(config) for text in ("unsloth_num_chunks=4",)], "unsloth_num_chunks" in repr(config)
