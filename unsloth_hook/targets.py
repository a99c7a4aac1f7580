"""The policy: which modules and which classes. The file to edit for a new TRL release."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

PREFIX = "trl."
PARSERS = ("transformers.hf_argparser", "trl.scripts._hf_argparser")  # TRL has a copy of its own from 1.9 on
NOT_A_TRAINER = {"base_config", "model_config"}


def is_config_module(name: str) -> bool:
    """Is this full module name one whose config classes are patched?

    `trl.trainer.<x>_config`, or `trl.experimental.<pkg>.<x>_config` (where TRL 0.23 and later keep some).
    """
    return _is_named_config(name) and name.rpartition(".")[2] not in NOT_A_TRAINER


def _is_named_config(name: str) -> bool:
    package, _, last = name.rpartition(".")
    if not last.endswith("_config") or last.startswith("_"):
        return False
    parent, _, subpackage = package.rpartition(".")
    return package == "trl.trainer" or (parent == "trl.experimental" and not subpackage.startswith("_"))


def config_classes(module: "ModuleType") -> list[type]:
    """The public `*Config` classes that `module` itself defines and that derive from `TrainingArguments`."""
    return [cls for cls in _named_config(module) if _is_training_arguments(cls)]


def left_alone(name: str, module: "ModuleType") -> "dict[str, str]":
    """The public `*Config` classes of a module of TRL's that are not for the hook: reasons by full class name.

    Args:
        name: of the module; if TRL keeps no configs in modules of that name, there are none.
        module: the module.
    """
    if not _is_named_config(name):
        return {}
    if is_config_module(name):
        reason = "it does not derive from transformers.TrainingArguments"
        found = [cls for cls in _named_config(module) if not _is_training_arguments(cls)]
    else:
        reason = f"{name} holds no config of a trainer"
        found = _named_config(module)
    return {f"{name}.{cls.__qualname__}": reason for cls in found}


def is_generated_module(name: str) -> bool:
    """Is this the name of a module that Unsloth generates, `Unsloth<X>Trainer` in its compiled cache?"""
    last = name.rpartition(".")[2].removeprefix("unsloth_cache_")
    return last.startswith("Unsloth") and last.endswith("Trainer")


def is_generated_class(cls: type) -> bool:
    """Was this class defined in such a module, whatever name it has taken since?"""
    for function in list(vars(cls).values()):
        code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
        path = getattr(code, "co_filename", "").replace("\\", "/")
        if is_generated_module(path.rpartition("/")[2].removesuffix(".py")):
            return True
    return False


def _named_config(module: "ModuleType") -> list[type]:
    return [
        value
        for name, value in list(getattr(module, "__dict__", {}).items())  # anything may lie in sys.modules
        if name.endswith("Config")
        and isinstance(value, type)
        and value.__name__ == name
        and not name.startswith("_")
        and value.__module__ == module.__name__
    ]


def _is_training_arguments(cls: type) -> bool:
    # By name, since transformers must not be imported for the asking.
    return any(
        base.__name__ == "TrainingArguments" and base.__module__.startswith("transformers.") for base in cls.__mro__
    )
