"""Code that looks into a config class: fields, signatures, annotations, bases, sources."""

import ast
import dataclasses
import inspect
import pydoc
import textwrap
import typing
from typing import Any

from idiom import PLAIN, attempt, dotted, make
from transformers import TrainingArguments
from trl import DPOConfig, GRPOConfig, KTOConfig, RewardConfig, RLOOConfig, SFTConfig

CLASSES = (SFTConfig, DPOConfig, GRPOConfig, KTOConfig, RewardConfig, RLOOConfig)


def names_of_the_fields() -> Any:
    """Notebooks and adapters: `{f.name for f in dataclasses.fields(SFTConfig)}`."""
    return {cls.__name__: [each.name for each in dataclasses.fields(cls)] for cls in CLASSES}


def names_in_dataclass_fields() -> Any:
    """`SFTConfig.__dataclass_fields__`, where people look when `fields()` is too long to import."""
    return list(SFTConfig.__dataclass_fields__), "packing" in SFTConfig.__dataclass_fields__


def trls_fields_one_by_one() -> Any:
    """Documentation generators: type, default and metadata of each of TRL's own fields."""
    return [
        [each.name, str(each.type), repr(each.default), each.init, each.repr, each.kw_only, sorted(each.metadata)]
        for cls in CLASSES
        for each in dataclasses.fields(cls)
        if each.name
        in dict.fromkeys(name for base in cls.__mro__[-3:] for name in vars(base).get("__annotations__", ()))
    ]


def length_chosen_by_fields() -> Any:
    """Adapters over TRL's renaming: `max_seq_length` if it is a field, else `max_length`. The length that results."""
    names = {each.name for each in dataclasses.fields(SFTConfig)}
    wanted = {"max_seq_length": 768, "learning_rate": 0.5}
    if "max_seq_length" not in names and "max_length" in names:
        wanted["max_length"] = wanted.pop("max_seq_length")
    return make(SFTConfig, **wanted).max_length


def length_chosen_by_signature() -> Any:
    """dspy and many scripts: the same by `inspect.signature(SFTConfig)`, and by that of `__init__`."""
    lengths = []
    for parameters in (inspect.signature(SFTConfig).parameters, inspect.signature(SFTConfig.__init__).parameters):
        name = "max_seq_length" if "max_seq_length" in parameters else "max_length"
        lengths.append(make(SFTConfig, **{name: 768}).max_length)
    return lengths


def length_chosen_by_hasattr() -> Any:
    """The same by `hasattr(SFTConfig, "max_seq_length")`, and by trying one and catching TypeError."""
    name = "max_seq_length" if hasattr(SFTConfig, "max_seq_length") else "max_length"
    try:
        tried = make(SFTConfig, max_seq_length=768)
    except TypeError:
        tried = make(SFTConfig, max_length=768)
    return make(SFTConfig, **{name: 768}).max_length, tried.max_length


def both_lengths_given() -> Any:
    """Version-agnostic dicts: old and new name with the same value, filtered by what the class knows."""
    wanted = {"max_seq_length": 2048, "max_length": 2048, "packing": False, "no_such_option": 1}
    names = {each.name for each in dataclasses.fields(SFTConfig)}
    config = make(SFTConfig, **{name: value for name, value in wanted.items() if name in names})
    return config.max_length, config.packing


def options_dropped_by_signature() -> Any:
    """Colab notebooks: keywords filtered by `signature(SFTConfig.__init__)`, and a note of those that were dropped."""
    wanted = {"max_length": 5, "packing": False, "evaluation_steps": 3, "no_such_option": 1, "self": 1}
    accepted = set(inspect.signature(SFTConfig.__init__).parameters)
    return sorted(set(wanted) - accepted), [name in inspect.signature(SFTConfig).parameters for name in wanted]


def options_kept_by_hasattr() -> Any:
    """RLHF toolkits: `SFTConfig(**{k: v for k, v in kwargs.items() if hasattr(SFTConfig, k)})`."""
    wanted = {"max_length": 5, "learning_rate": 0.5, "nothing": 1}
    return make(SFTConfig, **{name: value for name, value in wanted.items() if hasattr(SFTConfig, name)}).max_length


def signature_of_the_class() -> Any:
    """API snapshots: every parameter of `inspect.signature(cls)`, in order."""
    return {cls.__name__: [str(each) for each in inspect.signature(cls).parameters.values()] for cls in CLASSES}


def signature_of_init() -> Any:
    """The same of `__init__`, with kinds: jsonargparse, hydra-zen's `builds(populate_full_signature=True)`."""
    return [f"{each}, {each.kind.name}" for each in inspect.signature(SFTConfig.__init__).parameters.values()]


def full_argument_specification() -> Any:
    """Older tools: `inspect.getfullargspec(SFTConfig.__init__)`, `__init__.__code__.co_varnames`."""
    found = inspect.getfullargspec(SFTConfig.__init__)
    return found.args, found.varargs, found.varkw, found.kwonlyargs


def names_in_the_code_of_init() -> Any:
    """`"max_seq_length" in SFTConfig.__init__.__code__.co_varnames`, the short way of asking."""
    return "learning_rate" in SFTConfig.__init__.__code__.co_varnames, attempt(
        make, SFTConfig, **{"max_length": 3}
    ).max_length


def annotations_of_the_class() -> Any:
    """`SFTConfig.__annotations__`: what TRL's own body declares, and no more."""
    return {
        cls.__name__: {name: str(value) for name, value in vars(cls).get("__annotations__", {}).items()}
        for cls in CLASSES
    }


def annotations_over_all_bases() -> Any:
    """Tools like fire: annotations gathered from the last base to the first, and the class that declares each."""
    found: dict[str, str] = {}
    for base in reversed(SFTConfig.__mro__):
        for name in vars(base).get("__annotations__", {}):
            found[name] = base.__qualname__
    return found


def type_hints() -> Any:
    """transformers' own parser, and validators: `typing.get_type_hints(SFTConfig)`."""
    return {name: str(hint) for name, hint in typing.get_type_hints(SFTConfig).items()}


def type_hints_of_init() -> Any:
    """Dependency injection: `get_type_hints(SFTConfig.__init__)`."""
    return attempt(lambda: {name: str(hint) for name, hint in typing.get_type_hints(SFTConfig.__init__).items()})


def members() -> Any:
    """Sphinx's autodoc: `inspect.getmembers(SFTConfig)`, public names."""
    return [name for name, _ in inspect.getmembers(SFTConfig) if not name.startswith("_")]


def members_by_class() -> Any:
    """pydoc: `inspect.classify_class_attrs`, and the class that each name is said to come from."""
    return [
        f"{each.name}: {each.kind} of {dotted(each.defining_class)}"
        for each in inspect.classify_class_attrs(SFTConfig)
        if not each.name.startswith("_")
    ]


def static_attributes() -> Any:
    """Debuggers: `inspect.getattr_static`, which asks no descriptor, on class and instance."""
    names = ("max_length", "packing", "learning_rate", "to_dict", "device")
    config = make(SFTConfig, max_length=3)
    return [[name, type(inspect.getattr_static(each, name)).__name__] for each in (SFTConfig, config) for name in names]


def names_of_the_bases() -> Any:
    """Reports of class trees: `__mro__`, and the way up by `__bases__[0]`."""
    way: list[Any] = [SFTConfig]
    while way[-1] is not object:
        way.append(way[-1].__bases__[0])
    return [dotted(base) for base in SFTConfig.__mro__], [dotted(base) for base in way]


def what_the_body_has() -> Any:
    """ms-swift: `'loss_weights' in DPOConfig.__dict__` tells one TRL from another."""
    names = (
        "loss_weights",
        "loss_type",
        "beta",
        "max_length",
        "__post_init__",
        "learning_rate",
        "no_such_name",
        "_VALID_DICT_FIELDS",
    )
    return {cls.__name__: [name for name in names if name in cls.__dict__] for cls in CLASSES}


def all_that_the_body_has() -> Any:
    """Stub generators: every public name in `vars(cls)`."""
    return {cls.__name__: [name for name in vars(cls) if not name.startswith("_")] for cls in CLASSES}


def default_values_in_the_body() -> Any:
    """Sweep tools: defaults read off the class (`SFTConfig.max_length`), and compared with the base's."""
    names = [
        name
        for name in dir(SFTConfig)
        if name in TrainingArguments.__dict__ or name in ("max_length", "packing", "eos_token")
    ]
    return {
        name: repr(getattr(SFTConfig, name))
        for name in names
        if not callable(getattr(SFTConfig, name)) and not name.startswith("__")
    }


def where_a_method_is() -> Any:
    """Profilers and tracebacks: module, name and line of methods, and of the class."""
    found = [SFTConfig.__post_init__, DPOConfig.__post_init__, SFTConfig.to_dict]
    return [
        [each.__module__, each.__qualname__, each.__code__.co_firstlineno] for each in found
    ], inspect.getsourcelines(SFTConfig)[1]


def source() -> Any:
    """Unsloth, and documentation: `inspect.getsource` of class and methods, and its fields by `ast`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(SFTConfig))).body[0]
    assert isinstance(tree, ast.ClassDef)
    method = inspect.getsource(SFTConfig.__post_init__)
    return (
        [ast.unparse(each.target) for each in tree.body if isinstance(each, ast.AnnAssign)],
        method,
        inspect.getmodule(SFTConfig).__name__,
    )


def names_of_the_class() -> Any:
    """Log lines: `repr`, module, name, doc, and what `pydoc` calls it."""
    return [
        [repr(cls), cls.__module__, cls.__qualname__, len(cls.__doc__ or ""), pydoc.describe(cls)] for cls in CLASSES
    ]


def where_the_class_is_found() -> Any:
    """Checks of an installation: all the places that TRL exports a config from hold one object."""
    import trl.trainer
    import trl.trainer.sft_config
    import trl.trainer.sft_trainer

    places = [trl, trl.trainer, trl.trainer.sft_config, trl.trainer.sft_trainer]
    return [place.SFTConfig is trl.SFTConfig for place in places], pydoc.locate("trl.SFTConfig") is trl.SFTConfig


def parameters_of_the_dataclass() -> Any:
    """Serialisers: `__dataclass_params__`, `__match_args__`, `is_dataclass`."""
    return repr(SFTConfig.__dataclass_params__), dataclasses.is_dataclass(SFTConfig), list(SFTConfig.__match_args__)


def attributes_of_an_instance() -> Any:
    """Debuggers: `dir(config)` less the class's, and the properties."""
    config = make(SFTConfig)
    return sorted(set(dir(config)) - set(dir(type(config)))), [
        name for name, _ in inspect.getmembers(SFTConfig, lambda each: isinstance(each, property))
    ]


def names_on_a_new_instance() -> Any:
    """Forks of trainers: `for name in vars(args)`, in order."""
    return {cls.__name__: list(vars(make(cls))) for cls in CLASSES}


def asked_for_an_extra() -> Any:
    """Trainers that look for an old option: `args.max_seq_length if hasattr(args, "max_seq_length") else 2048`."""
    config = make(SFTConfig)
    found = {
        name: getattr(config, name)
        for name in ("max_seq_length", "max_length", "unsloth_num_chunks")
        if hasattr(config, name)
    }
    return found, getattr(config, "max_seq_length", None) or getattr(config, "max_length", None)


def help_text() -> Any:
    """`help(SFTConfig)`: the heading, and the list of classes."""
    lines = pydoc.plain(pydoc.render_doc(SFTConfig)).splitlines()
    start = lines.index(" |  Method resolution order:")
    return lines[0], lines[start + 1 : lines.index(" |  ", start + 1)]


def bound_arguments() -> Any:
    """Decorators: `signature(cls).bind(...)`, defaults applied, and the class called with all of them."""
    bound = inspect.signature(SFTConfig).bind(
        "out", **{name: value for name, value in PLAIN.items() if name != "output_dir"}
    )
    bound.apply_defaults()
    config = SFTConfig(*bound.args, **bound.kwargs)
    refused = attempt(inspect.signature(SFTConfig).bind, no_such_option=1)
    return config == make(SFTConfig), config.to_dict(), list(vars(config)), refused


def config_class_of_a_trainer() -> Any:
    """Pipelines that find the config by the trainer: the annotation of `args` in `SFTTrainer.__init__`."""
    import trl

    annotation = inspect.signature(trl.SFTTrainer.__init__).parameters["args"].annotation
    return str(annotation), [dotted(cls) for cls in typing.get_args(annotation)]
