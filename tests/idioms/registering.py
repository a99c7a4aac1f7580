"""Registries, dispatch and type checks by the class of a config."""

import functools
import importlib
import typing
import weakref
from collections import Counter
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import beartype
import trl
import typeguard
from idiom import attempt, dotted, make
from transformers import TrainingArguments
from trl import DPOConfig, GRPOConfig, RewardConfig, SFTConfig

Config = TypeVar("Config", bound=TrainingArguments)


def dispatched() -> Any:
    """Trainer factories: `functools.singledispatch` over the configs."""

    @functools.singledispatch
    def trainer(config: Any) -> str:
        return "none"

    trainer.register(TrainingArguments, lambda config: "Trainer")
    trainer.register(SFTConfig, lambda config: "SFTTrainer")
    trainer.register(DPOConfig, lambda config: "DPOTrainer")
    sub = type("Sub", (SFTConfig,), {})
    return [trainer(make(each)) for each in (SFTConfig, DPOConfig, GRPOConfig, TrainingArguments, sub)], trainer(1)


def registered_by_class() -> Any:
    """Method maps: `{SFTConfig: SFTTrainer, ...}[type(args)]`."""
    trainers = {SFTConfig: "sft", DPOConfig: "dpo", trl.GRPOConfig: "grpo"}
    configs = (SFTConfig, DPOConfig, GRPOConfig)
    return (
        [trainers[type(make(cls))] for cls in configs],
        trainers.get(type(make(RewardConfig))),
        len({SFTConfig, trl.SFTConfig}),
    )


def registered_by_name() -> Any:
    """Unsloth-like patches and logs: `type(args).__name__`, `"grpo" in cls.__name__.lower()`."""
    names = [type(make(cls)).__name__ for cls in (SFTConfig, DPOConfig, GRPOConfig)]
    return (
        names,
        [name.removesuffix("Config").lower() for name in names],
        [cls.__name__.startswith("Unsloth") for cls in (SFTConfig, DPOConfig)],
    )


def found_by_a_dotted_name() -> Any:
    """ms-swift, trainer_factory.py: `TRAINING_ARGS_MAPPING = {"dpo": "trl.DPOConfig"}`, imported when asked for."""
    found = []
    for path in ("trl.SFTConfig", "trl.trainer.sft_config.SFTConfig", "trl.trainer.DPOConfig", dotted(SFTConfig)):
        module, _, name = path.rpartition(".")
        found.append(getattr(importlib.import_module(module), name) in (SFTConfig, DPOConfig))
    return found


def tried_here_and_there() -> Any:
    """Scripts for any release: `trl.experimental` first, else `trl`; an import that fails, and its message."""
    found = []
    for module, name in (
        ("trl.experimental.orpo", "ORPOConfig"),
        ("trl", "ORPOConfig"),
        ("trl.trainer.nosuch_config", "NoSuchConfig"),
        ("trl", "NoSuchConfig"),
    ):
        found.append(attempt(lambda module=module, name=name: dotted(getattr(importlib.import_module(module), name))))
    return found


def leaves_of_the_tree() -> Any:
    """Plug-in discovery: all subclasses of TrainingArguments that nothing derives from, by name."""
    leaves, todo = set(), [TrainingArguments]
    while todo:
        cls = todo.pop()
        children = cls.__subclasses__()
        todo += children
        if not children:
            leaves.add(dotted(cls))
    return {name for name in leaves if name.startswith("trl.trainer.")}


def tree_by_subclasses() -> Any:
    """Registries by `__subclasses__()`: each class once, by its name; how often each name comes."""

    def walk(cls: type) -> list[str]:
        return [dotted(child) for child in cls.__subclasses__()] + [
            name for child in cls.__subclasses__() for name in walk(child)
        ]

    wanted = {dotted(cls) for cls in (SFTConfig, DPOConfig, GRPOConfig)}
    found = [name for name in walk(TrainingArguments) if name in wanted]
    return sorted(found)


def registry_by_name_over_subclasses() -> Any:
    """The same as a dict by name, as most do it: the last one that is met wins. What does it make?"""
    registry: dict[str, type] = {}
    todo = [TrainingArguments]
    while todo:
        cls = todo.pop(0)
        registry[cls.__name__] = cls
        todo += cls.__subclasses__()
    config = make(registry["SFTConfig"], max_length=3)
    return isinstance(config, trl.SFTConfig), type(config) is trl.SFTConfig, config.max_length


def exact_type() -> Any:
    """Guards: `type(args) is SFTConfig`, `args.__class__ is ...`, and `isinstance` the other way round."""
    config = make(SFTConfig)
    return (
        type(config) is trl.SFTConfig,
        config.__class__ is SFTConfig,
        isinstance(config, TrainingArguments),
        isinstance(make(TrainingArguments), SFTConfig),
    )


def chain_of_isinstance() -> Any:
    """TRL's and others' checks, one after another, and the error of the last."""

    def kind(args: Any) -> str:
        if isinstance(args, DPOConfig):
            return "dpo"
        if isinstance(args, (SFTConfig, RewardConfig)):
            return "sft or reward"
        raise TypeError(f"passed argument must be a `SFTConfig`, not {type(args)}")

    return [attempt(kind, make(cls)) for cls in (SFTConfig, DPOConfig, RewardConfig, GRPOConfig)]


def matched() -> Any:
    """`match args: case SFTConfig(max_length=None): ...`: class patterns, and by position."""

    def kind(args: Any) -> Any:
        match args:
            case DPOConfig(beta=beta):
                return ["dpo", beta]
            case SFTConfig(max_length=None):
                return "endless"
            case SFTConfig(first, max_length=length):
                return [first, length]
            case _:
                return "other"

    return [kind(make(SFTConfig)), kind(make(SFTConfig, max_length=None)), kind(make(DPOConfig)), kind(3)]


def protocol_at_run_time() -> Any:
    """Loose typing: a `runtime_checkable` Protocol with TRL's attributes and methods."""

    @runtime_checkable
    class HasLength(Protocol):
        max_length: int | None

        def to_dict(self) -> dict[str, Any]: ...

    @runtime_checkable
    class Nothing(Protocol):
        no_such_option: int

    config = make(SFTConfig)
    return isinstance(config, HasLength), isinstance(config, Nothing), isinstance(make(TrainingArguments), HasLength)


def checked_by_beartype() -> Any:
    """`@beartype` on a function that takes a config."""

    @beartype.beartype
    def train(args: SFTConfig, *more: SFTConfig | DPOConfig) -> int | None:
        return args.max_length

    refused = attempt(train, make(GRPOConfig))
    return (
        train(make(SFTConfig, max_length=3), make(DPOConfig)),
        refused.split(":")[0],
        train.__annotations__["args"] is trl.SFTConfig,
    )


def checked_by_typeguard() -> Any:
    """`typeguard.check_type(args, SFTConfig)`, `@typechecked`."""

    @typeguard.typechecked
    def train(args: SFTConfig) -> type[SFTConfig]:
        return type(args)

    return (
        train(make(SFTConfig)) is SFTConfig,
        attempt(train, make(DPOConfig)),
        attempt(typeguard.check_type, make(DPOConfig), SFTConfig),
    )


def generic_runner() -> Any:
    """`class Runner(Generic[Config])`, the config class found again in `__orig_bases__`."""

    class Runner(Generic[Config]):
        def build(self) -> Any:
            (base,) = type(self).__orig_bases__
            return make(typing.get_args(base)[0])

    class SftRunner(Runner[SFTConfig]): ...

    return (
        type(SftRunner().build()) is SFTConfig,
        repr(Runner[SFTConfig]).rpartition("[")[2],
        repr(SFTConfig | DPOConfig),
        str(typing.Optional[SFTConfig]),  # noqa: UP045
    )


def weak_registry() -> Any:
    """Caches by class: WeakKeyDictionary, `lru_cache` over a class, Counter of types."""
    table: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
    table[SFTConfig] = "sft"
    cached = functools.lru_cache(lambda cls: cls.__name__)
    counted = Counter(type(make(cls)) for cls in (SFTConfig, trl.SFTConfig, DPOConfig))
    return (
        table[type(make(SFTConfig))],
        cached(SFTConfig),
        cached(trl.SFTConfig),
        cached.cache_info().misses,
        sorted(counted.values()),
    )


def virtual_subclass() -> Any:
    """`ABC.register(SFTConfig)`, and `__subclasshook__`."""
    import abc

    class HasToDict(abc.ABC):  # noqa: B024
        @classmethod
        def __subclasshook__(cls, other: type) -> Any:
            return any("to_dict" in vars(base) for base in other.__mro__) or NotImplemented

    class Marked(abc.ABC): ...  # noqa: B024

    Marked.register(SFTConfig)
    return issubclass(SFTConfig, HasToDict), isinstance(make(SFTConfig), Marked), issubclass(DPOConfig, Marked)


def partially_applied() -> Any:
    """Config factories: `functools.partial(SFTConfig, **defaults)`, and `map` over a sweep."""
    factory = functools.partial(make, SFTConfig, packing=False)
    return [factory(learning_rate=rate).learning_rate for rate in (0.1, 0.2)], functools.partial(
        SFTConfig, max_length=1
    ).func is trl.SFTConfig
