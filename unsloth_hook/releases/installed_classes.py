"""Finds where an installed package keeps a class by looking at its source, without importing any of it."""

from __future__ import annotations

import ast
import importlib.util
import os
import pkgutil
import re
import sys
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from typing import NamedTuple


class Definition(NamedTuple):
    """A top-level class: ``kind`` is "dataclass", "enum" or "class", ``bases`` as the source writes them."""

    kind: str
    bases: tuple[str, ...]


class Home(NamedTuple):
    """Where a class lives: a module's dotted name and a name in it."""

    module: str
    name: str


_CLASS = re.compile(r"^class[ \t]+(\w+)[ \t]*(?:\(([^)]*)\))?[ \t]*:", re.MULTILINE)


@cache
def _spec(module: str) -> ModuleSpec | None:
    root, *rest = module.split(".")
    try:
        spec = sys.modules[root].__spec__ if root in sys.modules else importlib.util.find_spec(root)
        for depth in range(len(rest)):
            if spec is None or spec.submodule_search_locations is None:
                return None
            # Not importlib.util.find_spec: for a submodule that imports the parents.
            spec = PathFinder.find_spec(".".join([root, *rest[: depth + 1]]), _folders(spec))
    except (ImportError, ValueError, AttributeError):
        return None
    return spec


def _folders(spec: ModuleSpec) -> list[str]:
    # transformers 5, once its deferred parts are imported, has Path objects there, which PathFinder passes over.
    return [os.fspath(folder) for folder in spec.submodule_search_locations or ()]


def exists(module: str) -> bool:
    """Whether ``module`` (dotted) can be found. Nothing is imported."""
    return _spec(module) is not None


@cache
def source(module: str) -> str | None:
    """The source text of ``module``, from a folder or a zip; None if there is no such module or it has no source."""
    spec = _spec(module)
    get_source = getattr(spec.loader, "get_source", None) if spec else None
    if spec is None or get_source is None:
        return None
    try:
        text = get_source(spec.name)
    except (ImportError, OSError, SyntaxError, UnicodeError):
        return None
    return text if isinstance(text, str) else None


@cache
def submodules(package: str) -> tuple[str, ...]:
    """The last names of the modules in ``package``, sorted."""
    spec = _spec(package)
    return tuple(sorted(info.name for info in pkgutil.iter_modules(_folders(spec)))) if spec else ()


@cache
def classes(module: str) -> dict[str, Definition]:
    """The top-level classes that the source of ``module`` defines, by name."""
    text = source(module) or ""
    found = {}
    for match in _CLASS.finditer(text):
        bases = tuple(base.strip() for base in (match[2] or "").split(",") if base.strip())
        decorators = text[: match.start()].rpartition("\n\n")[2]
        if re.search(r"^@(dataclasses\.)?dataclass\b", decorators, re.MULTILINE):
            kind = "dataclass"
        elif any(base.endswith(("Enum", "Flag")) for base in bases):
            kind = "enum"
        else:
            kind = "class"
        found[match[1]] = Definition(kind, bases)
    return found


@cache
def _imports(module: str) -> dict[str, Home]:
    text = source(module)
    if text is None:
        return {}
    spec = _spec(module)
    package = module if spec and spec.submodule_search_locations is not None else module.rpartition(".")[0]
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*parts, *([node.module] if node.module else [])])
            found.update({alias.asname or alias.name: Home(origin, alias.name) for alias in node.names})
    return found


def definition(module: str, name: str) -> tuple[Home, Definition] | None:
    """Follow ``from x import y`` from ``module`` to the class that ``name`` is bound to there.

    Returns:
        The class's home and definition, or None if ``name`` is no class that the sources show.
    """
    home = Home(module, name)
    for _ in range(5):
        if found := classes(home.module).get(home.name):
            return home, found
        if not re.search(rf"\b{re.escape(home.name)}\b", source(home.module) or ""):
            return None
        try:
            imported = _imports(home.module).get(home.name)
        except (SyntaxError, ValueError):
            return None
        if imported is None:
            return None
        home = imported
    return None


def mentions(module: str, name: str) -> bool:
    """Whether the source of ``module`` binds ``name`` at its top level, to a function, an import or a value."""
    text = source(module) or ""
    if not re.search(rf"\b{re.escape(name)}\b", text):
        return False
    try:
        if name in _imports(module):
            return True
    except (SyntaxError, ValueError):
        return True
    pattern = (
        rf"^(?:async )?(?:def|import)\s+{re.escape(name)}\b|^{re.escape(name)}\s*[:=]|^import\s.*\b{re.escape(name)}\b"
    )
    return re.search(pattern, text, re.MULTILINE) is not None


@cache
def enum_values(home: Home) -> frozenset[object] | None:
    """The values of an enum's members, or None if its source does not show them all (``auto()``, computed ones)."""
    text = source(home.module) or ""
    match = re.search(rf"^class[ \t]+{re.escape(home.name)}\b.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    try:
        body = ast.parse(match[0]).body[0] if match else None
    except SyntaxError:
        return None
    values: set[object] = set()
    for node in getattr(body, "body", []):
        if isinstance(node, ast.Assign):
            if not isinstance(node.value, ast.Constant):
                return None
            values.add(node.value.value)
    return frozenset(values) or None


def _squash(name: str) -> str:
    return name.replace("_", "").lower()


def _modules(ending: str) -> list[str]:
    stable = [f"trl.trainer.{name}" for name in submodules("trl.trainer") if name.endswith(ending)]
    packages = [f"trl.experimental.{name}" for name in submodules("trl.experimental")]
    return stable + [
        f"{package}.{name}" for package in packages for name in submodules(package) if name.endswith(ending)
    ]


@cache
def in_trl(stem: str, what: str = "Config") -> Home | None:
    """Where the installed TRL keeps a config or trainer, stable or experimental.

    Found by TRL's own convention: ``<Stem>Config`` is in ``<stem>_config``, with underscores between its words
    (``NashMD`` in ``nash_md``). A shim that only extends a class of its own name (TRL 0.26 to 0.28) gives way to that.

    Args:
        stem: the class's name without its last word: "SFT", "NashMD", "GRPOWithReplayBuffer".
        what: the last word, "Config" or "Trainer".

    Returns:
        The home, or None if this TRL does not have it (or there is no TRL).
    """
    wanted, ending = stem + what, "_" + what.lower()
    named = [module for module in _modules(ending) if _squash(module.rpartition(".")[2]) == _squash(stem + ending)]
    found = [
        (Home(module, name), defined)
        for module in named or [*_modules(ending), "trl.trainer.utils"]
        for name, defined in classes(module).items()
        if (_squash(name) == _squash(wanted) if named else name == wanted)
    ]
    real = [home for home, defined in found if not any(base.lstrip("_") == home.name for base in defined.bases)]
    homes = real or [home for home, _ in found]
    return homes[0] if homes else None


@cache
def version(package: str) -> str:
    """The installed version of ``package``, "" if it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def forget() -> None:
    """Drop what was learned, after a package was installed or removed in this process."""
    for function in (_spec, source, submodules, classes, _imports, enum_values, in_trl, version):
        function.cache_clear()
