"""For the child scripts: finds every public config class of the TRL that is installed, and constructs it.

It knows nothing of the hook, and the rule by which it finds the classes is written out anew.
"""

import ast
import builtins
import glob
import importlib
import os

COMMON = {"output_dir": "out", "use_cpu": True, "bf16": False, "report_to": "none"}
REQUIRED = {"teacher_model_server_url": "http://localhost:1"}  # by ServerDistillationConfig


def record_classes_as_written():
    """Keep every class that a class statement makes, so that the one TRL wrote is known and not guessed."""
    build, written = builtins.__build_class__, {}

    def record(function, name, *bases, **keywords):
        cls = build(function, name, *bases, **keywords)
        if name.endswith("Config"):
            written[f"{cls.__module__}.{cls.__qualname__}"] = cls
        return cls

    builtins.__build_class__ = record
    return written


def config_files(root):
    """The files of TRL's config modules by module name, stable ones first; `root` is TRL's folder."""
    files = sorted(glob.glob(f"{root}/trainer/*_config.py")) + sorted(glob.glob(f"{root}/experimental/*/*_config.py"))
    names = {"trl." + os.path.relpath(file, root)[: -len(".py")].replace(os.sep, "."): file for file in files}
    return {name: file for name, file in names.items() if not name.endswith((".base_config", ".model_config"))}


def by_key(pairs):
    """Modules and values by one key for each config: its name, "ORPOConfig-in-orpo" for the second of that name.

    TRL 0.26 to 0.28 have a config in `trl.experimental` and a shim of the same name in its old place.
    """
    result = {}
    for module, name, value in pairs:
        result[name if name not in result else f"{name}-in-{module.split('.')[2]}"] = value
    return result


def declared_configs(root):
    """Full names by key of the configs that the files of a TRL declare, which is read and not imported."""
    pairs = []
    for module, file in config_files(root).items():
        with open(file, encoding="utf-8") as stream:
            names = [node.name for node in ast.parse(stream.read()).body if isinstance(node, ast.ClassDef)]
        pairs += [(module, name, f"{module}.{name}") for name in names if is_public_config(name)]
    return by_key(pairs)


def public_configs():
    """Import all config modules, stable and experimental, and return their classes by the same keys."""
    import trl
    from transformers import TrainingArguments

    return by_key(
        (module, name, value)
        for module in config_files(os.path.dirname(trl.__file__))
        for name, value in list(vars(importlib.import_module(module)).items())
        if is_public_config(name) and isinstance(value, type)
        if value.__module__ == module and issubclass(value, TrainingArguments)
    )


def is_public_config(name):
    return name.endswith("Config") and not name.startswith("_")


def keywords(cls, **more):
    """What a config needs to be constructed on this machine, as keywords, and what keeps the time of day out of it."""
    needs_server = any(base.__name__ == "ServerDistillationConfig" for base in cls.__mro__)
    has_time = "logging_dir" in cls.__dataclass_fields__  # transformers 4
    return {**COMMON, **(REQUIRED if needs_server else {}), **({"logging_dir": "logs"} if has_time else {}), **more}


def options(cls, *more):
    """The same as command line options."""
    return [text for name, value in keywords(cls).items() for text in (f"--{name}", str(value))] + list(more)


def full_name(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


def attempt(function, *args, **kwargs):
    """What a call returns, or its error as text."""
    try:
        return function(*args, **kwargs)
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
