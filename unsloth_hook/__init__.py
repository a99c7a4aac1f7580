"""Patched TRL config classes from the start, and checkpoints that open anywhere. The names load when asked for."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .activation import install, uninstall
    from .checkpoints.conversion import convert_checkpoint
    from .checkpoints.errors import CheckpointError, CheckpointWarning, UnsafeCheckpointError
    from .checkpoints.inspection import inspect_checkpoint
    from .checkpoints.loading import load_training_args
    from .identity import is_patched, register_displaced
    from .ipython_extension import load_ipython_extension, unload_ipython_extension
    from .patching import PatchError
    from .status_report import status

__version__ = "0.1.0"
__all__ = [
    "CheckpointError",
    "CheckpointWarning",
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
    "CheckpointError": "checkpoints.errors",
    "CheckpointWarning": "checkpoints.errors",
    "PatchError": "patching",
    "UnsafeCheckpointError": "checkpoints.errors",
    "convert_checkpoint": "checkpoints.conversion",
    "inspect_checkpoint": "checkpoints.inspection",
    "install": "activation",
    "is_patched": "identity",
    "load_ipython_extension": "ipython_extension",
    "load_training_args": "checkpoints.loading",
    "register_displaced": "identity",
    "status": "status_report",
    "uninstall": "activation",
    "unload_ipython_extension": "ipython_extension",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
