"""Patched TRL config classes from the start, and checkpoints that open anywhere. The names load when asked for."""

_HOMES = {
    "install": "activation",
    "uninstall": "activation",
    "status": "report",
    "is_patched": "identity",
    "register_displaced": "identity",
    "load_ipython_extension": "ipython",
    "unload_ipython_extension": "ipython",
    "PatchError": "patching",
}
__all__ = list(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
