"""Stand-in modules for the tests of the import machinery, in every form in which Python can find a module.

Nothing here comes from TRL: what is tested with these is the engine (`finder.py`), which knows nothing of TRL either.
"""

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import py_compile
import subprocess
import sys
import tempfile
import types
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

PACKAGE = "standin"
NAME = f"{PACKAGE}.some_config"
BODY = '''
"""A stand-in."""
during = (__loader__, __spec__.loader)
VALUE = 1
'''

# All that PEP 302, PEP 451, importlib.abc and importlib.resources ask of a loader.
PROTOCOL = (
    "create_module",
    "exec_module",
    "load_module",
    "module_repr",
    "get_code",
    "get_source",
    "get_data",
    "get_filename",
    "is_package",
    "get_resource_reader",
    "source_to_code",
    "path_stats",
    "path_mtime",
    "set_data",
    "name",
    "path",
    "archive",
    "prefix",
    "no_such_thing",
)
SPEC = (
    "name",
    "origin",
    "loader_state",
    "cached",
    "parent",
    "has_location",
)


class Answering:
    """Somebody else's finder: answers for one name with a loader of its own making."""

    locations: "list[str] | None" = None  # where to look for submodules, if the spec is a package's

    def __init__(self, make_loader: Callable[[str], Any], *, name: str = NAME, **spec: Any) -> None:
        self.make_loader, self.name, self.spec = make_loader, name, spec

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "types.ModuleType | None" = None
    ) -> "importlib.machinery.ModuleSpec | None":
        if name != self.name:
            return None
        spec = importlib.machinery.ModuleSpec(name, self.make_loader(name), **self.spec)
        if self.locations:
            spec.submodule_search_locations = self.locations
        return spec


class Recording:
    """Notes what it is asked, and leaves the answering to others."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def find_spec(self, *question: Any) -> None:
        if question[0].startswith(PACKAGE):
            self.asked.append(question)


class LegacyLoader:
    """`load_module` and nothing else: how loaders were before PEP 451 (Python 3.4)."""

    body = BODY

    def __init__(self, name: str) -> None:
        self.name = name

    def load_module(self, name: str) -> types.ModuleType:
        module = sys.modules.setdefault(name, types.ModuleType(name))
        module.__loader__ = self
        module.__spec__ = importlib.machinery.ModuleSpec(name, self)
        exec(self.body, vars(module))
        return module


class SmallestLoader:
    """`exec_module` and `create_module`, without a base class."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        exec(BODY, vars(module))


class OwnModule(types.ModuleType):
    """What `MakingLoader` makes; extension modules are made by their loader in the same way."""


class MakingLoader(SmallestLoader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:  # type: ignore[override]
        return OwnModule(spec.name)


class ClassLoader:
    """A loader that is a class and no instance, as `BuiltinImporter` and `FrozenImporter` are."""

    create_module = staticmethod(lambda spec: None)
    exec_module = staticmethod(lambda module: exec(BODY, vars(module)))


class InstrumentingLoader(importlib.machinery.SourceFileLoader):
    """Rewrites the source, as typeguard's and beartype's loaders do."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]
        return compile(bytes(data) + b"\nINSTRUMENTED = True\n", path, "exec", dont_inherit=True, optimize=_optimize)

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


class InstrumentingFinder:
    """Answers for the whole package by itself, as typeguard's finder does: asks `PathFinder` and no other finder."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "types.ModuleType | None" = None
    ) -> "importlib.machinery.ModuleSpec | None":
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = InstrumentingLoader(spec.loader.name, spec.loader.path)
        return spec


def source(folder: Path) -> None:
    (folder / PACKAGE).mkdir()
    (folder / PACKAGE / "__init__.py").touch()
    (folder / PACKAGE / "some_config.py").write_text(BODY)


def package(folder: Path) -> None:
    (folder / PACKAGE / "some_config").mkdir(parents=True)
    (folder / PACKAGE / "__init__.py").touch()
    (folder / PACKAGE / "some_config" / "__init__.py").write_text(BODY)
    (folder / PACKAGE / "some_config" / "data.txt").write_text("some data")


def bytecode(folder: Path) -> None:
    source(folder)
    file = folder / PACKAGE / "some_config.py"
    py_compile.compile(str(file), cfile=f"{file}c", doraise=True)
    file.unlink()


def zipped(folder: Path) -> None:
    with zipfile.ZipFile(folder / "modules.zip", "w") as archive:
        archive.writestr(f"{PACKAGE}/__init__.py", "")
        archive.writestr(f"{PACKAGE}/some_config.py", BODY)
    sys.path.insert(0, str(folder / "modules.zip"))


@functools.cache
def editable_standin() -> Path:
    """The site-packages folder of an editable install by setuptools, made once."""
    temporary = tempfile.TemporaryDirectory(prefix="editable-")
    editable_standin.temporary = temporary  # type: ignore[attr-defined]  # removed when the tests end
    project, site = Path(temporary.name, "project"), Path(temporary.name, "site")
    project.mkdir()
    source(project)
    build_editable(PACKAGE, project, site)
    return site


def editable(folder: Path) -> None:
    site = editable_standin()
    sys.path.insert(0, str(site))
    (finder,) = site.glob("__editable__*_finder.py")
    importlib.import_module(finder.stem).install()  # what the wheel's `.pth` line does


def answering(make_loader: Callable[[str], Any], **spec: Any) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        source(folder)
        (folder / PACKAGE / "some_config.py").unlink()
        sys.meta_path.append(Answering(make_loader, **spec))

    return make


def instrumented(folder: Path) -> None:
    source(folder)
    sys.meta_path.insert(0, InstrumentingFinder())


def hooked_by_wrapt(folder: Path) -> None:
    import wrapt.importer

    source(folder)
    wrapt.importer._post_import_hooks.pop(NAME, None)  # of the test before
    wrapt.register_post_import_hook(lambda module: setattr(module, "by_wrapt", True), NAME)
    if not any(isinstance(finder, wrapt.importer.ImportHookFinder) for finder in sys.meta_path):  # it installs it once
        sys.meta_path.insert(0, wrapt.importer.ImportHookFinder())


FORMS: dict[str, Callable[[Path], None]] = {
    "source": source,
    "package": package,
    "bytecode": bytecode,
    "zip": zipped,
    "editable": editable,
    "legacy loader": answering(LegacyLoader),
    "smallest loader": answering(SmallestLoader),
    "loader that makes the module": answering(MakingLoader),
    "class as loader": answering(lambda name: ClassLoader),
    "instrumented": instrumented,
    "wrapt": hooked_by_wrapt,
}


def build_editable(
    name: str,
    project: Path,
    site: Path,
    version: str = "1.0",
    *,
    backend: str = "setuptools.build_meta",
    settings: str = "",
    finder: str = "__editable___*_finder.py",
) -> None:
    """Let a build backend make an editable install of one package that has a finder, and install the wheel.

    Args:
        name: of the distribution and of the package, a folder in `project`.
        project: where the package is; gets a `pyproject.toml`.
        site: the site-packages folder to unpack the wheel into.
        version: of the distribution.
        backend: setuptools' or hatchling's.
        settings: TOML for the backend; by default what setuptools wants.
        finder: pattern of the file name of its finder.
    """
    table = settings or f'[tool.setuptools]\npackages = ["{name}"]'
    (project / "pyproject.toml").write_text(
        f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n'
        f'[project]\nname = "{name}"\nversion = "{version}"\n{table}\n'
    )
    out = project / "wheels"
    out.mkdir()
    command = f"import {backend} as it; it.build_editable({str(out)!r})"
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert list(site.glob(finder)), f"{backend} chose another kind of editable install"


def forget() -> None:
    """Take the stand-ins out of `sys.modules`, so that they are imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    importlib.invalidate_caches()


def look(module: types.ModuleType) -> dict[str, Any]:
    """What can be seen of a module from outside, and what it saw of itself while it was executed."""
    spec = module.__spec__
    assert spec is not None
    names = ("__name__", "__doc__", "__package__", "__file__", "__cached__", "__path__")
    plain = {name: value for name, value in vars(module).items() if name.isupper()}
    path = getattr(module, "__path__", None)
    return {
        "module": {name: getattr(module, name, None) for name in names} | {"__path__": path and list(path)},
        "type": type(module),
        "plain": plain,
        "spec": look_at_spec(spec),
        "loaders": [type(loader) for loader in (module.__loader__, spec.loader, *vars(module).get("during", ()))],
        "one loader": module.__loader__ is spec.loader,
        "registered": sys.modules[module.__name__] is module,
    }


def look_at_spec(spec: importlib.machinery.ModuleSpec) -> dict[str, Any]:
    """Everything that a spec says, apart from its loader."""
    where = spec.submodule_search_locations  # a namespace package's is of a type without equality
    return {name: getattr(spec, name) for name in SPEC} | {"submodule_search_locations": where and list(where)}


@contextlib.contextmanager
def in_front(*finders: Any) -> Iterator[None]:
    """With these finders at the beginning of `sys.meta_path`."""
    sys.meta_path[:0] = finders
    yield
    sys.meta_path[:] = [finder for finder in sys.meta_path if not any(finder is ours for ours in finders)]
