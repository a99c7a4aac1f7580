"""For the child scripts: finds every public config class of the TRL that is installed, and constructs it.

It knows nothing of the hook, and the rule by which it finds the classes is written out anew.
"""

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


def public_configs():
    """Import all config modules, stable and experimental, and return their classes by name."""
    import trl
    from transformers import TrainingArguments

    root = os.path.dirname(trl.__file__)
    files = glob.glob(f"{root}/trainer/*_config.py") + glob.glob(f"{root}/experimental/*/*_config.py")
    modules = sorted("trl." + os.path.relpath(file, root)[: -len(".py")].replace(os.sep, ".") for file in files)
    return {
        name: value
        for module in modules
        for name, value in list(vars(importlib.import_module(module)).items())
        if name.endswith("Config") and not name.startswith("_") and isinstance(value, type)
        if value.__module__ == module and issubclass(value, TrainingArguments)
    }


def keywords(cls, **more):
    """What a config needs to be constructed on this machine, as keywords."""
    needs_server = any(base.__name__ == "ServerDistillationConfig" for base in cls.__mro__)
    return {**COMMON, **(REQUIRED if needs_server else {}), **more}


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
