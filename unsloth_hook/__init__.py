"""Patched TRL config classes from the start, and checkpoints that open anywhere. The names load when asked for."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .activation import install, uninstall
    from .checkpoint import CheckpointError, UnsafeCheckpointError
    from .conversion import convert_checkpoint
    from .identity import is_patched, register_displaced
    from .inspection import inspect_checkpoint
    from .ipython import load_ipython_extension, unload_ipython_extension
    from .loading import load_training_args
    from .patching import PatchError
    from .report import status

__version__ = "0.1.0"
__all__ = [
    "CheckpointError",
    "PatchError",
    "UnsafeCheckpointError",
    "convert_checkpoint",
    "inspect_checkpoint",
    "install",
    "is_patched",
    "load_ipython_extension",
    "load_training_args",
    "register_displaced",
    "status",
    "uninstall",
    "unload_ipython_extension",
]
_HOMES = {
    "CheckpointError": "checkpoint",
    "PatchError": "patching",
    "UnsafeCheckpointError": "checkpoint",
    "convert_checkpoint": "conversion",
    "inspect_checkpoint": "inspection",
    "install": "activation",
    "is_patched": "identity",
    "load_ipython_extension": "ipython",
    "load_training_args": "loading",
    "register_displaced": "identity",
    "status": "report",
    "uninstall": "activation",
    "unload_ipython_extension": "ipython",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
