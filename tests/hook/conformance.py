"""What a program can see of an import, asked under several import hooks, of modules of every kind.

`python tests/hook/conformance.py` asks all of them and writes `tests/data/conformance.json` and
`docs/conformance.md`; `tests/hook/test_conformance.py` compares what it finds with the file. The TRL here is a
stand-in of a few lines: what is asked is how Python's import system answers, for each kind of module in which TRL
might come.
"""

import compileall
import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.resources
import importlib.util
import inspect
import io
import json
import os
import pdb
import pkgutil
import re
import runpy
import shutil
import site
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import stand_in
import standins
from helpers import DEADLOCK

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests" / "data" / "conformance.json"
PAGE = ROOT / "docs" / "conformance.md"
NAME = "trl.trainer.some_config"
PEERS = ("wrapt", "typeguard", "ddtrace")

BODY = (
    '"""A stand-in."""\n'
    + stand_in.CONFIG.format(name="SomeConfig")
    + """
during = [type(vars()["__loader__"]).__name__, type(vars()["__spec__"].loader).__name__]

def typed(number: int) -> int:
    return number

if __name__ == "__main__":
    print(sorted(vars()), __file__, __spec__.name, during)
"""
)
FILES = {
    "trl/trainer/some_config.py": BODY,
    "trl/trainer/failing_config.py": "def f():\n    raise ValueError('x')\n\nf()\n",
    "trl/trainer/warning_config.py": "import warnings\nwarnings.warn('w', stacklevel=2)\n",
    "trl/trainer/data.txt": "some data",
    "trl-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: trl\nVersion: 1.0\n",
    "trl-1.0.dist-info/RECORD": "trl/trainer/some_config.py,,\n",
}


# ---- the kinds of modules: the files, and what the process that imports them does first


def source(folder: Path) -> None:
    stand_in.make(folder, FILES)
    (folder / "trl-1.0.dist-info" / "__init__.py").unlink()


def without(*names: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        source(folder)
        for name in names:
            (folder / name).unlink()

    return prepare


def package(folder: Path) -> None:
    source(folder)
    home = folder / "trl" / "trainer" / "some_config"
    home.mkdir()
    shutil.move(home.with_suffix(".py"), home / "__init__.py")
    (home / "data.txt").write_text("more data")
    (home / "__main__.py").write_text("during = [type(__loader__).__name__, type(__spec__.loader).__name__]\n")


def bytecode(folder: Path) -> None:
    source(folder)
    compileall.compile_dir(folder / "trl", quiet=2, legacy=True)
    for file in (folder / "trl").rglob("*.py"):
        file.unlink()


def zipped(folder: Path) -> None:
    source(folder)
    with zipfile.ZipFile(folder / "trl.zip", "w") as archive:
        for top in ("trl", "trl-1.0.dist-info"):
            for file in sorted((folder / top).rglob("*")):
                archive.write(file, file.relative_to(folder))
            shutil.rmtree(folder / top)


def namespace(folder: Path) -> None:
    source(folder)
    home = folder / "trl" / "trainer" / "some_config"
    home.mkdir()
    shutil.move(home.with_suffix(".py"), home / "inner.py")


def editable_by(backend: str, settings: str, finder: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        source(folder)
        project = folder / "project"
        project.mkdir()
        shutil.move(folder / "trl", project / "trl")
        shutil.rmtree(folder / "trl-1.0.dist-info")
        standins.build_editable("trl", project, folder / "site", backend=backend, settings=settings, finder=finder)

    return prepare


def on_path(folder: Path) -> None:
    sys.path.insert(0, str(folder))


def in_zip(folder: Path) -> None:
    sys.path[:0] = [str(folder / "trl.zip"), str(folder)]


def in_site(folder: Path) -> None:
    on_path(folder)
    site.addsitedir(str(folder / "site"))  # runs the lines of its .pth files


def answered(make_loader: "Callable[[str], Any]", **spec: Any) -> Callable[[Path], None]:
    def enter(folder: Path) -> None:
        on_path(folder)
        home = str(folder / "trl" / "trainer")
        finder = standins.Answering(make_loader, name=NAME, **spec)
        if spec:
            finder.locations = [home]
        sys.meta_path.insert(0, finder)

    return enter


class LegacyLoader(standins.LegacyLoader):
    body = BODY


def wrapped(folder: Path) -> None:
    on_path(folder)
    sys.meta_path.insert(0, WrappingFinder())


class WrappingFinder:
    """Asks `PathFinder` and puts a loader of its own around the one found."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name == NAME else None
        if spec is not None:
            spec.loader = WrappingLoader(spec.loader)  # type: ignore[assignment]
        return spec


class WrappingLoader:
    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.real, name)


KINDS: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    "source": (source, on_path),
    "package": (package, on_path),
    "bytecode only": (bytecode, on_path),
    "zip": (zipped, in_zip),
    "namespace package": (namespace, on_path),
    "in a namespace package": (without("trl/__init__.py", "trl/trainer/__init__.py"), on_path),
    "editable by setuptools": (
        editable_by("setuptools.build_meta", '[tool.setuptools]\npackages = ["trl"]', "__editable___*_finder.py"),
        in_site,
    ),
    "editable by hatchling": (
        editable_by(
            "hatchling.build",
            '[tool.hatch.build]\ndev-mode-exact = true\n[tool.hatch.build.targets.wheel]\npackages = ["trl"]',
            "_editable_impl_trl.py",
        ),
        in_site,
    ),
    "wrapped loader": (source, wrapped),
    "loader with load_module only": (without("trl/trainer/some_config.py"), answered(LegacyLoader)),
    "finder that gives no loader": (source, answered(lambda name: None, is_package=True)),
}


# ---- the hooks: each switches itself on, and returns what says whether it has done its work


def no_hook() -> Callable[[types.ModuleType], bool]:
    return lambda module: False


def unsloth_hook() -> Callable[[types.ModuleType], bool]:
    os.environ["UNSLOTH_HOOK"] = "1"
    from unsloth_hook._bootstrap import start

    start()
    return lambda module: "unsloth_num_chunks" in module.SomeConfig.__dataclass_fields__


def wrapt() -> Callable[[types.ModuleType], bool]:
    import wrapt.importer

    seen: list[types.ModuleType] = []

    def register() -> None:  # it calls a hook once and then hooks that module no more
        wrapt.importer._post_import_hooks.pop(NAME, None)
        wrapt.importer.register_post_import_hook(seen.append, NAME)

    register()
    BEFORE_EACH_IMPORT.append(register)
    return lambda module: module in seen


def typeguard() -> Callable[[types.ModuleType], bool]:
    from typeguard import TypeCheckError, install_import_hook

    install_import_hook(["trl"])

    def works(module: types.ModuleType) -> bool:
        try:
            module.typed("no number")
        except TypeCheckError:
            return True
        return False

    return works


def ddtrace() -> Callable[[types.ModuleType], bool]:
    from ddtrace.internal.module import ModuleWatchdog

    seen: list[types.ModuleType] = []
    if ModuleWatchdog.is_installed():  # importing it may do that; it shall come last, as the others do
        ModuleWatchdog.uninstall()
    ModuleWatchdog.install()
    ModuleWatchdog.register_module_hook(NAME, seen.append)
    return lambda module: module in seen


HOOKS = {"no hook": no_hook, "unsloth_hook": unsloth_hook, "wrapt": wrapt, "typeguard": typeguard, "ddtrace": ddtrace}
IMPORTED_FIRST = {"typeguard": "typeguard", "wrapt": "wrapt", "ddtrace": "ddtrace.internal.module"}


BEFORE_EACH_IMPORT: list[Callable[[], None]] = []


# ---- the questions: a spec just found, and what is seen of the imported module


def forget() -> None:
    """Let the module be imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "trl"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    for prepare_hook in BEFORE_EACH_IMPORT:
        prepare_hook()


def found() -> Any:
    forget()
    return importlib.util.find_spec(NAME)


def loader() -> Any:
    return found().loader


def kind_of(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def code_of(code: types.CodeType) -> Any:
    return hashlib.sha1(code.co_code).hexdigest(), code.co_filename, code.co_names


def resources() -> Any:
    reader = loader().get_resource_reader(NAME)
    return reader and [kind_of(reader), sorted(map(str, reader.contents())), reader.is_resource("data.txt")]


def classes() -> Any:
    real = loader()
    bases = [importlib.machinery.SourceFileLoader, importlib.machinery.SourcelessFileLoader, importlib.abc.Loader]
    bases += [importlib.abc.InspectLoader, importlib.abc.ResourceLoader, importlib.abc.ExecutionLoader]
    return [isinstance(real, base) for base in bases]


def seen() -> Any:
    forget()
    return seen_of(importlib.import_module(NAME))


def seen_of(module: types.ModuleType) -> Any:
    spec: Any = module.__spec__
    names = ("__name__", "__doc__", "__package__", "__file__", "__cached__")
    return [
        [getattr(module, name, None) for name in names],
        [kind_of(module), list(getattr(module, "__path__", ())), sorted(vars(module)), vars(module).get("during")],
        [kind_of(module.__loader__), kind_of(spec.loader), module.__loader__ is spec.loader],
        [spec.name, spec.origin, spec.cached, spec.has_location, spec.parent, spec.loader_state, kind_of(spec)],
        [sys.modules[NAME] is module, vars(sys.modules["trl.trainer"]).get("some_config") is module],
    ]


def sources() -> Any:
    forget()
    module = importlib.import_module(NAME)
    return [inspect.getsource(module), inspect.getsource(module.SomeConfig), inspect.getsourcefile(module)]


def reloaded() -> Any:
    forget()
    module = importlib.import_module(NAME)
    for _ in range(3):
        assert importlib.reload(module) is module
    return seen_of(module)


def deleted() -> Any:
    forget()
    first = importlib.import_module(NAME)
    del sys.modules[NAME]
    second = importlib.import_module(NAME)
    return [first is not second, seen_of(second)]


def traced() -> Any:
    forget()
    try:
        exec(compile("import trl.trainer.failing_config", "<importer>", "exec"))
    except ValueError as error:
        frames = [(frame.filename, frame.lineno, frame.name) for frame in traceback.extract_tb(error.__traceback__)]
        return frames[1:], repr(error.__context__)


def warned() -> Any:
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile("\nimport trl.trainer.warning_config", "<importer>", "exec"))
    return [(str(warning.message), warning.filename, warning.lineno) for warning in caught]


def by_runpy() -> Any:
    forget()
    out = runpy.run_module(NAME, run_name="ran")
    return (
        sorted(out),
        out["__file__"],
        out["__cached__"],
        out["__spec__"].name,
        kind_of(out["__loader__"]),
        out["during"],
    )


def by_pdb() -> Any:
    forget()
    before = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["pdb", "-c", "continue", "-m", NAME], io.StringIO("")
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            pdb.main()
    except SystemExit as end:
        out.write(f"exit {end.code}")
    finally:
        sys.argv, sys.stdin = before
    return out.getvalue()


def by_load_module() -> Any:
    forget()
    importlib.import_module("trl.trainer")
    return seen_of(importlib.util.find_spec(NAME).loader.load_module(NAME))  # type: ignore[union-attr]


def walked() -> Any:
    forget()
    trl = importlib.import_module("trl")
    failed: list[str] = []
    names = [(info.name, info.ispkg) for info in pkgutil.walk_packages(trl.__path__, "trl.", failed.append)]
    return names, failed


def metadata() -> Any:
    distribution = importlib.metadata.distribution("trl")
    homes = importlib.metadata.packages_distributions() if sys.version_info >= (3, 10) else {}
    return distribution.version, sorted(map(str, distribution.files or ())), homes.get("trl")


def files() -> Any:
    forget()
    root = importlib.resources.files("trl.trainer")
    return kind_of(root), sorted(item.name for item in root.iterdir()), root.joinpath("data.txt").read_text()


QUESTIONS: dict[str, Callable[[], Any]] = {
    "get_source": lambda: loader().get_source(NAME),
    "get_code": lambda: code_of(loader().get_code(NAME)),
    "is_package": lambda: loader().is_package(NAME),
    "get_filename": lambda: loader().get_filename(NAME),
    "get_data": lambda: loader().get_data(loader().get_filename(NAME)),
    "get_resource_reader": resources,
    "spec.origin": lambda: found().origin,
    "spec.cached": lambda: found().cached,
    "spec.has_location": lambda: found().has_location,
    "the rest of the spec": lambda: [
        found().name,
        found().parent,
        found().loader_state,
        list(found().submodule_search_locations or ()),
        kind_of(found()),
    ],
    "methods of the loader": lambda: {name: hasattr(loader(), name) for name in standins.PROTOCOL},
    "isinstance of the loader": classes,
    "the module, and what it sees while executed": seen,
    "inspect.getsource": sources,
    "traceback": traced,
    "warnings": warned,
    "runpy": by_runpy,
    "reload": reloaded,
    "deletion from sys.modules": deleted,
    "load_module": by_load_module,
    "pkgutil.walk_packages": walked,
    "importlib.resources": files,
    "importlib.metadata": metadata,
    "pdb -m": by_pdb,
}


def answer(question: Callable[[], Any]) -> str:
    """What is answered, or how it fails, as text without addresses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = repr(question())
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def answers(kind: str, hook: str, folder: Path) -> dict[str, str]:
    """All answers for one kind under one hook, and under `works` whether the hook did what it is for."""
    KINDS[kind][1](folder)
    works = HOOKS[hook]()
    forget()
    told = {"works": answer(lambda: works(importlib.import_module(NAME)))}
    return told | {name: answer(question) for name, question in QUESTIONS.items()}


# ---- running them


def prepare(folder: Path) -> None:
    """Write the files of every kind, each in a folder of its own."""
    for kind, (make, _) in KINDS.items():
        (folder / kind).mkdir()
        make(folder / kind)


def ask(hook: str, folder: Path) -> dict[str, dict[str, str]]:
    """Ask all questions of all kinds under one hook: a child Python that forks once for each kind."""
    folders = [*sys.path[:1], *map(str, (ROOT / "tests" / "hook", ROOT / "tests" / "support", ROOT))]
    script = f"import sys; sys.path[:0] = {folders!r}; import conformance; "
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UNSLOTH", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-B", "-c", script + f"conformance.main({hook!r}, {str(folder)!r})"],
        cwd=folder,
        env={**env, "DD_TRACE_ENABLED": "false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false"},
        capture_output=True,
        text=True,
        timeout=DEADLOCK,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, dict[str, str]] = json.loads((folder / f"{hook}.json").read_text())
    return result


class WithoutTrl(importlib.machinery.FileFinder):
    """A folder's finder to which a TRL that is installed there, beside the hooks, does not exist."""

    def find_spec(self, fullname: str, target: "types.ModuleType | None" = None) -> Any:
        return None if fullname == "trl" else super().find_spec(fullname, target)


def hide_installed_trl() -> None:
    machinery = importlib.machinery
    loaders = [
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    ]
    for entry in sys.path:
        if Path(entry, "trl").is_dir():
            sys.path_importer_cache[entry] = WithoutTrl(entry, *loaders)


def main(hook: str, folder: str) -> None:
    """What the child does; the answers go to `<hook>.json` in the folder."""
    hide_installed_trl()
    if hook in IMPORTED_FIRST:
        importlib.import_module(IMPORTED_FIRST[hook])
    table = {}
    for kind in KINDS:
        out = Path(folder, f"{hook}.{kind}.json")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                out.write_text(json.dumps(answers(kind, hook, Path(folder, kind))))
                code = 0
            finally:
                traceback.print_exc()
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0, (hook, kind)
        table[kind] = json.loads(out.read_text())
    Path(folder, f"{hook}.json").write_text(json.dumps(table))


def compare(stock: Mapping[str, Mapping[str, str]], hooked: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """For each kind: whether the hook did its work, and the questions that are answered otherwise than without it."""
    return {
        kind: {
            "works": hooked[kind]["works"] == "True",
            "differs": [name for name in QUESTIONS if hooked[kind][name] != stock[kind][name]],
        }
        for kind in stock
    }


def page(record: Mapping[str, Any]) -> str:
    """The table as a page of the documentation."""
    hooks = list(record["table"])
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    lines = [
        "# How import hooks treat the import system",
        "",
        "The same questions were asked of the same module with and without a hook, for each kind of module in which a",
        "package may come. A number is that of the questions that were answered otherwise than without the hook; the",
        "list below names them. `–` says that the hook did not do its work there. Where there is no loader, or only a",
        "namespace package, there is no code to work on.",
        "",
        f"Questions ({len(QUESTIONS)}): {', '.join(QUESTIONS)}.",
        "",
        f"Run with {versions}.",
        "",
        "| kind of module | " + " | ".join(hooks) + " |",
        "| --- |" + " --- |" * len(hooks),
    ]
    for kind in KINDS:
        cells = [record["table"][hook][kind] for hook in hooks]
        shown = [
            ("as without" if not cell["differs"] else str(len(cell["differs"]))) + ("" if cell["works"] else " –")
            for cell in cells
        ]
        lines.append(f"| {kind} | " + " | ".join(shown) + " |")
    lines += ["", "## What differs", ""]
    for hook in hooks:
        for kind, cell in record["table"][hook].items():
            if cell["differs"]:
                lines.append(f"- {hook}, {kind}: {', '.join(cell['differs'])}")
    lines += [
        "",
        "typeguard rewrites the code that it checks, so that its code and what is run from it must differ.",
        "",
        "This page is written by `python tests/hook/conformance.py` from `tests/data/conformance.json`, which",
        "`tests/hook/test_conformance.py` compares with what it finds.",
    ]
    return "\n".join(lines) + "\n"


def write() -> None:
    """Ask everything anew; write the record and the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        told = {hook: ask(hook, folder) for hook in HOOKS}
    if "-v" in sys.argv:
        for hook, table in told.items():
            for kind, row in table.items():
                for question, text in row.items():
                    if text != told["no hook"][kind][question]:
                        print(hook, "|", kind, "|", question, "\n   ", told["no hook"][kind][question], "\n   ", text)
    record = {
        "versions": {
            "Python": ".".join(map(str, sys.version_info[:2])),
            **{name: importlib.metadata.version(name) for name in PEERS},
        },
        "table": {hook: compare(told["no hook"], told[hook]) for hook in HOOKS if hook != "no hook"},
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")


if __name__ == "__main__":
    write()
