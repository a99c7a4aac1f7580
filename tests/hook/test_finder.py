"""The engine alone (contract 10), on stand-in modules: no TRL, so it is fast and runs on every Python we support."""

import _imp
import copy
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import linecache
import sys
import textwrap
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import standins
import wrapt.importer
from helpers import DEADLOCK, PACKAGE, ROOT, run_child
from standins import FORMS, NAME, PROTOCOL, forget, in_front, look, look_at_spec

from unsloth_hook.finder import PostImportFinder, PostImportLoader


class Hook:
    """Our finder, wanting `NAME` and the modules beside it, and the modules that its callback was given."""

    def __init__(self) -> None:
        self.seen: list[types.ModuleType] = []
        self.finder = PostImportFinder((f"{standins.PACKAGE}.",), self.select)

    def select(self, name: str) -> "Callable[[types.ModuleType], None] | None":
        return self.callback if name.endswith("_config") else None

    def callback(self, module: types.ModuleType) -> None:
        module.HOOKED = vars(module).get("HOOKED", 0) + 1  # type: ignore[attr-defined]
        self.seen.append(module)

    def __enter__(self) -> "Hook":
        sys.meta_path.insert(0, self.finder)
        return self

    def __exit__(self, *exception: object) -> None:
        while self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, import_state: None) -> Iterator[Path]:
    """A folder on `sys.path`; whatever is imported from it is forgotten afterwards."""
    sys.path.insert(0, str(tmp_path))
    forget()
    yield tmp_path
    linecache.clearcache()


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, folder: Path) -> str:
    FORMS[request.param](folder)
    name: str = request.param
    return name


def stock_look() -> dict[str, Any]:
    seen = look(importlib.import_module(NAME))
    forget()
    return seen


def stock_spec() -> importlib.machinery.ModuleSpec:
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    forget()
    return spec


# ---- every form in which Python finds a module


@pytest.mark.filterwarnings("ignore::ImportWarning")  # Python's, on loaders without exec_module
def test_a_module_of_any_form_is_seen_once_after_its_execution_and_is_as_stock(form: str) -> None:
    stock = stock_look()
    with Hook() as hook:
        module = importlib.import_module(NAME)
    assert hook.seen == [module]
    assert vars(module).pop("HOOKED") == vars(module)["VALUE"] == 1
    assert look(module) == stock
    assert not any(issubclass(type_, PostImportLoader) for type_ in stock["loaders"])


def test_the_spec_of_any_form_differs_in_its_loader_only(form: str) -> None:
    stock = stock_spec()
    with Hook():
        importlib.util.find_spec("such_a_module_is_nowhere")  # ours steps to the front
        spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert hasattr(spec.loader, "_stepping_aside")  # ours, or a proxy of it: wrapt's
    assert look_at_spec(spec) == look_at_spec(stock)
    assert vars(spec).keys() == vars(stock).keys()
    assert type(spec) is type(stock)


def test_the_loader_of_any_form_can_do_what_the_real_one_can_and_no_more(form: str) -> None:
    real = stock_spec().loader
    with Hook():
        loader: Any = importlib.util.find_spec(NAME).loader  # type: ignore[union-attr]
    assert {name: hasattr(loader, name) for name in PROTOCOL} == {name: hasattr(real, name) for name in PROTOCOL}

    answers: Any = {
        "get_code": lambda its: its.get_code(NAME).co_code,
        "get_source": lambda its: its.get_source(NAME),
        "get_filename": lambda its: its.get_filename(NAME),
        "is_package": lambda its: its.is_package(NAME),
        "get_data": lambda its: its.get_data(its.get_filename(NAME)),
        "get_resource_reader": lambda its: type(its.get_resource_reader(NAME)),
        "path": lambda its: its.path,
        "create_module": lambda its: type(its.create_module(stock_spec())),
    }
    for name, ask in answers.items():
        if hasattr(real, name):
            assert outcome(ask, loader) == outcome(ask, real), name


def outcome(ask: Callable[[Any], Any], loader: Any) -> Any:
    """What a loader answers, or how it refuses."""
    try:
        return ask(loader)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_load_module_calls_back_too(form: str) -> None:
    """PEP 302's way, which `pkgutil` and old launchers take."""
    if not hasattr(stock_spec().loader, "load_module"):
        assert form in ("smallest loader", "loader that makes the module", "class as loader")
        return
    importlib.import_module(standins.PACKAGE)
    with Hook() as hook:
        loader: Any = importlib.util.find_spec(NAME).loader  # type: ignore[union-attr]
        module = loader.load_module(NAME)
    assert module is sys.modules[NAME]
    assert hook.seen == [module]
    assert type(module.__loader__) is type(module.__spec__.loader) is not PostImportLoader


@pytest.mark.filterwarnings("ignore::ImportWarning")
def test_reloading_any_form_wraps_once(form: str) -> None:
    with Hook() as hook:
        module = importlib.import_module(NAME)
        stock = look(module)
        for _ in range(100):
            assert importlib.reload(module) is module
    assert hook.seen == [module] * 101
    assert look(module) | {"plain": None} == stock | {"plain": None}
    assert vars(module)["HOOKED"] == 101


def test_both_instrumentation_and_callback_take_effect(folder: Path) -> None:
    FORMS["instrumented"](folder)
    with Hook():
        module = importlib.import_module(NAME)
    assert vars(module)["INSTRUMENTED"] is True
    assert vars(module)["HOOKED"] == 1


def test_wrapts_hook_sees_what_ours_has_done(folder: Path) -> None:
    """wrapt asks `importlib.util.find_spec`, and so us while we ask it; it calls its hooks when that loader is done."""
    FORMS["wrapt"](folder)
    with Hook():
        for _ in range(2):  # in front of ours, then behind
            forget()
            wrapt.importer._post_import_hooks.pop(NAME, None)
            wrapt.register_post_import_hook(lambda module: setattr(module, "seen", vars(module).get("HOOKED")), NAME)
            assert vars(importlib.import_module(NAME))["seen"] == 1


# ---- how the real spec is found


def test_the_other_finders_are_asked_what_the_import_system_asks(folder: Path) -> None:
    FORMS["source"](folder)

    def questions(recording: standins.Recording) -> list[tuple[Any, ...]]:
        module = importlib.import_module(NAME)
        importlib.reload(module)
        forget()
        return recording.asked

    with in_front(stock := standins.Recording()):
        questions(stock)
    with in_front(behind := standins.Recording()), Hook():
        questions(behind)
    # Equal, since a module compares by identity: the same name, the package's very path, the module to reload.
    assert [(name, list(path) if path else path) for name, path, _ in behind.asked] == [
        (name, list(path) if path else path) for name, path, _ in stock.asked
    ]
    assert [target and target.__name__ for *_, target in behind.asked] == [None, None, NAME]
    assert [target and target.__name__ for *_, target in stock.asked] == [None, None, NAME]


def test_find_spec_of_importlib_is_never_called(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On reload it returns the module's own spec, and it takes import locks."""
    FORMS["source"](folder)

    def never(*question: object) -> None:
        raise AssertionError(f"find_spec{question}")

    monkeypatch.setattr(importlib.util, "find_spec", never)
    with Hook() as hook:
        importlib.reload(importlib.import_module(NAME))
    assert len(hook.seen) == 2


def test_a_module_whose_spec_is_none_reloads(folder: Path) -> None:
    """ddtrace PR 9809: `importlib.util.find_spec` raises `ValueError` for it."""
    FORMS["source"](folder)
    with Hook() as hook:
        module = importlib.import_module(NAME)
        module.__spec__ = None
        importlib.reload(module)
        assert type(module.__spec__.loader) is importlib.machinery.SourceFileLoader
    assert hook.seen == [module, module]


def test_two_thousand_reloads_wrap_once(folder: Path) -> None:
    """ddtrace #5345: each reload wrapped what the one before had left."""
    FORMS["source"](folder)
    (folder / standins.PACKAGE / "some_config.py").write_text(
        "import sys\nframe, depth = sys._getframe(), 0\nwhile frame := frame.f_back:\n    depth += 1\n"
    )
    with Hook() as hook:
        module = importlib.import_module(NAME)
        importlib.reload(module)
        depth = module.depth
        for _ in range(1998):
            importlib.reload(module)
    assert len(hook.seen) == 2000
    assert module.depth == depth
    assert type(module.__loader__) is type(module.__spec__.loader) is importlib.machinery.SourceFileLoader  # type: ignore[union-attr]


def test_a_finder_that_answers_with_the_same_spec_again_wraps_once(folder: Path) -> None:
    FORMS["source"](folder)

    class Remembering:
        spec = stock_spec()

        def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
            return self.spec if name == NAME else None

    with in_front(Remembering()), Hook() as hook:
        assert importlib.util.find_spec(NAME) is importlib.util.find_spec(NAME) is Remembering.spec
        module = importlib.import_module(NAME)
        importlib.reload(module)
    assert hook.seen == [module, module]
    assert type(Remembering.spec.loader) is importlib.machinery.SourceFileLoader


def test_deleted_and_imported_again_it_is_seen_again(folder: Path) -> None:
    FORMS["source"](folder)
    with Hook() as hook:
        first = importlib.import_module(NAME)
        forget()
        second = importlib.import_module(NAME)
    assert hook.seen == [first, second]
    assert first is not second


def test_what_does_not_exist_fails_as_ever(folder: Path) -> None:
    FORMS["source"](folder)

    def failures() -> list[Any]:
        answers = [importlib.util.find_spec(f"{standins.PACKAGE}.no_config")]
        for name in (f"{standins.PACKAGE}.no_config", f"{standins.PACKAGE}.no.such_config", f"{NAME}.sub_config"):
            with pytest.raises(ModuleNotFoundError) as failed:
                importlib.import_module(name)
            answers.append((str(failed.value), failed.value.name, failed.value.path))
        forget()
        return answers

    stock = failures()
    with Hook() as hook:
        assert failures() == stock
    assert [module.__name__ for module in hook.seen] == [NAME]


def test_modules_that_nobody_selects_are_not_touched(folder: Path) -> None:
    FORMS["source"](folder)
    (folder / standins.PACKAGE / "other.py").write_text(standins.BODY)
    (folder / "standin_config.py").write_text(standins.BODY)  # shares the letters of the prefix, not the package
    with Hook() as hook, in_front(recording := standins.Recording()):
        sys.meta_path.remove(recording)
        sys.meta_path.insert(1, recording)
        for name in (f"{standins.PACKAGE}.other", "standin_config"):
            assert hook.finder.find_spec(name) is None
            importlib.import_module(name)
    assert hook.seen == []
    assert [name for name, *_ in recording.asked] == ["standin", "standin.other", "standin_config"]  # each once


# ---- specs without a loader, finders without find_spec


@pytest.mark.parametrize("is_package", [True, False])
def test_a_spec_without_a_loader_passes_through(folder: Path, is_package: bool) -> None:
    FORMS["source"](folder)
    (folder / standins.PACKAGE / "some_config.py").unlink()
    sys.meta_path.append(standins.Answering(lambda name: None, is_package=is_package))

    def result() -> Any:
        try:
            return look(importlib.import_module(NAME))
        except ImportError as error:
            return str(error), error.name
        finally:
            forget()

    stock = result()
    with Hook() as hook:
        assert result() == stock
        spec = importlib.util.find_spec(NAME)
        assert spec is not None and spec.loader is None
    assert hook.seen == []


def test_a_namespace_package_is_as_stock(folder: Path) -> None:
    FORMS["source"](folder)
    (folder / standins.PACKAGE / "some_config.py").unlink()
    (folder / standins.PACKAGE / "some_config").mkdir()
    (folder / standins.PACKAGE / "some_config" / "inner_config.py").write_text(standins.BODY)
    stock = stock_look()
    with Hook() as hook:
        module = importlib.import_module(NAME)
        inner = importlib.import_module(f"{NAME}.inner_config")
    vars(module).pop("HOOKED", None)
    assert look(module) == stock
    assert inner in hook.seen


@pytest.mark.filterwarnings("ignore::ImportWarning")  # Python's up to 3.11, on such a finder
def test_a_finder_without_find_spec_is_passed_over(folder: Path) -> None:
    """As `importlib` does."""
    FORMS["source"](folder)

    class Old:
        def find_module(self, name: str, path: Any = None) -> None:  # PEP 302's
            return None

    with in_front(Old()), Hook() as hook:
        importlib.import_module(NAME)
    assert len(hook.seen) == 1


# ---- the loader as an object


def test_the_real_loader_is_back_when_only_exec_module_is_called(folder: Path) -> None:
    FORMS["source"](folder)
    with Hook() as hook:
        spec: Any = importlib.util.find_spec(NAME)
        module = importlib.util.module_from_spec(spec)
        assert type(module.__loader__) is PostImportLoader
        spec.loader.exec_module(module)
    assert [type(loader) for loader in module.during[:2]] == [importlib.machinery.SourceFileLoader] * 2
    assert hook.seen == [module]


def test_a_loader_that_somebody_set_meanwhile_is_left_alone(folder: Path) -> None:
    """wrapt's and `LazyLoader` put their own in `__loader__` and call ours."""
    FORMS["source"](folder)
    with Hook():
        spec: Any = importlib.util.find_spec(NAME)
        loader, module = spec.loader, importlib.util.module_from_spec(spec)
        module.__loader__ = theirs = object()  # type: ignore[assignment]
        loader.exec_module(module)
    assert module.__loader__ is theirs


def test_lazy_loader_around_ours(folder: Path) -> None:
    FORMS["source"](folder)
    with Hook() as hook:
        spec: Any = importlib.util.find_spec(NAME)
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        spec.loader.exec_module(module)
        assert hook.seen == []
        assert module.VALUE == 1
        assert hook.seen == [module]
        assert module.HOOKED == 1
    assert type(module) is types.ModuleType


def test_the_loader_can_be_copied(folder: Path) -> None:
    """`copy` asks a half-made object for attributes: no endless `__getattr__`."""
    FORMS["source"](folder)
    with Hook():
        loader: Any = importlib.util.find_spec(NAME).loader  # type: ignore[union-attr]
    assert copy.copy(loader).get_source(NAME) == standins.BODY
    assert not hasattr(loader, "__wrapped__")
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = loader.no_such_thing


# ---- exceptions and warnings of the module


def frames_of(error: "pytest.ExceptionInfo[BaseException]") -> list[tuple[str, int, str]]:
    frames = [(str(entry.path), entry.lineno, entry.name) for entry in error.traceback]
    assert not any("unsloth_hook" in path for path, *_ in frames)
    return frames


def by_statement() -> None:
    import standin.some_config  # noqa: F401


def by_function() -> None:
    importlib.import_module(NAME)


# On Python 3.10 an exception on its way has its traceback beside `__traceback__`; no frame can be taken off that.
EXACT = [by_statement, by_function] if sys.version_info >= (3, 11) else [by_statement]


@pytest.mark.parametrize("importing", EXACT)
def test_a_module_that_raises_is_not_seen_and_leaves_no_frame_of_ours(
    folder: Path, importing: Callable[[], None]
) -> None:
    FORMS["source"](folder)
    for failure in ("ValueError('x')", "ImportError('x', name='y', path='z')", "KeyboardInterrupt", "SystemExit(3)"):
        (folder / standins.PACKAGE / "some_config.py").write_text(f"def f():\n    raise {failure}\n\nf()\n")
        frames = []
        for hook in (None, Hook()):
            if hook:
                sys.meta_path.insert(0, hook.finder)
            with pytest.raises(BaseException) as failed:  # noqa: B017, PT011
                importing()
            frames.append(frames_of(failed))
            assert failed.value.__context__ is None and failed.value.__cause__ is None
            assert NAME not in sys.modules
            forget()
        assert hook is not None and hook.seen == []
        hook.__exit__()
        assert frames[0] == frames[1], failure


def test_a_module_that_fails_once_is_seen_when_it_succeeds(folder: Path) -> None:
    FORMS["source"](folder)
    file = folder / standins.PACKAGE / "some_config.py"
    file.write_text("raise ValueError")
    with Hook() as hook:
        with pytest.raises(ValueError):
            importlib.import_module(NAME)
        file.write_text(standins.BODY + "# of another size, for the bytecode cache\n")
        importlib.invalidate_caches()
        module = importlib.import_module(NAME)
    assert hook.seen == [module]
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader


def test_what_the_callback_raises_reaches_the_importer_and_the_module_is_gone(folder: Path) -> None:
    FORMS["source"](folder)

    def refuse(module: types.ModuleType) -> None:
        raise RuntimeError("refused")

    sys.meta_path.insert(0, PostImportFinder((f"{standins.PACKAGE}.",), lambda name: refuse))
    with pytest.raises(RuntimeError, match="refused"):
        importlib.import_module(NAME)
    assert NAME not in sys.modules


def test_a_warning_of_the_module_points_at_its_importer(folder: Path) -> None:
    """`warnings` skips the frames of `importlib`, by their file names, and no others."""
    FORMS["source"](folder)
    (folder / standins.PACKAGE / "some_config.py").write_text("import warnings\nwarnings.warn('w', stacklevel=2)\n")
    (folder / "importer.py").write_text("\n\nimport standin.some_config\n")
    places = []
    for hook in (None, Hook()):
        if hook:
            sys.meta_path.insert(0, hook.finder)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            importlib.import_module("importer")
        places.append([(Path(warning.filename).name, warning.lineno) for warning in caught])
        forget()
        del sys.modules["importer"]
    assert places == [[("importer.py", 3)]] * 2


class Blocking:
    """Import blockers raise from `find_spec`."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == NAME:
            raise self.error


@pytest.mark.parametrize("importing", EXACT)
@pytest.mark.parametrize(
    "error", [ImportError("blocked"), *([ValueError("x"), KeyboardInterrupt()] if sys.version_info >= (3, 11) else [])]
)
def test_a_finder_that_raises_leaves_no_frame_of_ours(
    folder: Path, error: BaseException, importing: Callable[[], None]
) -> None:
    FORMS["source"](folder)
    frames = []
    for hook in (None, Hook()):
        with in_front(Blocking(error.with_traceback(None))):
            if hook:
                sys.meta_path.insert(0, hook.finder)
            with pytest.raises(type(error)) as failed:
                importing()
            frames.append(frames_of(failed))
            if hook:
                hook.__exit__()
        forget()
    assert frames[0] == frames[1]


# ---- beside other finders


class RestOfTheMetaPath:
    """Delegates to the finders behind it, and marks what they find."""

    asked = 0

    def others(self) -> list[Any]:
        return sys.meta_path[sys.meta_path.index(self) + 1 :]  # type: ignore[arg-type]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != NAME:
            return None
        self.asked += 1
        for finder in self.others():
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                spec.loader = Marking(spec.loader)
                return spec
        return None


class AllOthers(RestOfTheMetaPath):
    """Delegates to every finder but itself, as cuml.accel's does."""

    def others(self) -> list[Any]:
        return [finder for finder in sys.meta_path if finder is not self]


class ImportlibUtil(RestOfTheMetaPath):
    """Delegates to `importlib.util.find_spec`, with a note of its own against asking itself (wrapt, ddtrace)."""

    def others(self) -> list[Any]:
        return [self.Importlib] if self.asked == 1 else []

    class Importlib:
        find_spec = staticmethod(lambda name, path, target: importlib.util.find_spec(name))


class SteppingForward(RestOfTheMetaPath):
    """Wants to be the first, as ours does."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if sys.meta_path[0] is not self:
            sys.meta_path.remove(self)  # type: ignore[arg-type]
            sys.meta_path.insert(0, self)  # type: ignore[arg-type]
        return super().find_spec(name, path, target)


class Marking:
    """A loader around another that marks the module."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def exec_module(self, module: Any) -> None:
        self.real.exec_module(module)
        module.MARKED = True


KINDS = [
    RestOfTheMetaPath,
    ImportlibUtil,
    AllOthers,
    SteppingForward,
]


@pytest.mark.parametrize("place", ["in front of ours", "behind ours"])
@pytest.mark.parametrize("kind", KINDS)
def test_beside_a_finder_that_delegates_both_take_effect(
    folder: Path, kind: type[RestOfTheMetaPath], place: str
) -> None:
    """And end. One that asks us while we ask it has us in its chain twice, which callbacks must bear."""
    FORMS["source"](folder)
    importlib.import_module(standins.PACKAGE)
    with in_front(theirs := kind()), Hook() as hook:
        if place == "in front of ours":
            sys.meta_path.remove(theirs)  # type: ignore[arg-type]
            sys.meta_path.insert(0, theirs)  # type: ignore[arg-type]
        for _ in range(3):
            sys.modules.pop(NAME, None)
            hook.seen.clear()
            theirs.asked = 0
            module = importlib.import_module(NAME)
            assert vars(module)["MARKED"] is True
            assert 1 <= len(hook.seen) <= 2
            assert hook.seen[0] is hook.seen[-1] is module


def test_two_of_ours_that_want_different_modules(folder: Path) -> None:
    FORMS["source"](folder)
    (folder / "other_config.py").touch()
    seen: list[str] = []
    other = PostImportFinder(("other_config",), lambda name: lambda module: seen.append(module.__name__))
    with in_front(other), Hook() as hook:
        for _ in range(3):
            for name in (NAME, "other_config"):
                sys.modules.pop(name, None)
                importlib.import_module(name)
    assert seen == ["other_config"] * 3
    assert len(hook.seen) == 3


def test_the_same_finder_twice_on_the_meta_path(folder: Path) -> None:
    FORMS["source"](folder)
    with Hook() as hook:
        sys.meta_path.insert(2, hook.finder)  # type: ignore[arg-type]
        module = importlib.import_module(NAME)
    assert hook.seen == [module]


def test_the_same_thread_may_ask_for_another_module_while_it_finds_one(folder: Path) -> None:
    FORMS["source"](folder)
    (folder / standins.PACKAGE / "inner_config.py").write_text(standins.BODY)

    class Importing:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name == NAME:
                importlib.import_module(f"{standins.PACKAGE}.inner_config")

    with in_front(Importing()), Hook() as hook:
        importlib.import_module(NAME)
    assert [module.__name__ for module in hook.seen] == [f"{standins.PACKAGE}.inner_config", NAME]


# ---- the first place on the meta path


def test_it_steps_to_the_front_past_a_finder_that_would_hide_it(folder: Path) -> None:
    FORMS["source"](folder)
    with Hook() as hook:
        sys.meta_path.insert(0, theirs := standins.InstrumentingFinder())
        others = [finder for finder in sys.meta_path if finder is not hook.finder]
        importlib.util.find_spec("such_a_module_is_nowhere")
        assert sys.meta_path[0] is hook.finder
        assert sys.meta_path[1] is theirs
        assert [finder for finder in sys.meta_path if finder is not hook.finder] == others
        module = importlib.import_module(NAME)
    assert vars(module)["INSTRUMENTED"] is True
    assert hook.seen == [module]


def test_the_meta_path_does_not_grow_while_finders_compete_for_the_front(folder: Path) -> None:
    with in_front(SteppingForward()), Hook():
        for number in range(5):
            importlib.util.find_spec(f"such_a_module_{number}")
        length = len(sys.meta_path)
        for number in range(50):
            importlib.util.find_spec(f"such_a_module_{number}")
        assert len(sys.meta_path) == length


def test_taken_off_it_does_not_put_itself_back(folder: Path) -> None:
    FORMS["source"](folder)
    with Hook() as hook:
        pass
    before = list(sys.meta_path)
    assert hook.finder.find_spec("such_a_module_is_nowhere") is None
    assert sys.meta_path == before


def test_asked_while_the_meta_path_is_empty_it_finds_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Hook() as hook:
        monkeypatch.setattr(sys, "meta_path", [])
        found = hook.finder.find_spec(NAME)
        monkeypatch.undo()
    assert found is None


def test_a_thread_that_walks_the_meta_path_meets_it_though_it_steps_forward_meanwhile(folder: Path) -> None:
    """Up to Python 3.13 `importlib` walks the list itself, and lets go of its lock between two finders."""
    for passed in (0, 1, 2, 3):
        with Hook() as hook, in_front(standins.Recording(), standins.Recording()):
            walk = iter(sys.meta_path)
            met = [next(walk) for _ in range(passed)]
            hook.finder.find_spec("such_a_module_is_nowhere")  # another thread's import
            with in_front(standins.Recording()):
                hook.finder.find_spec("such_a_module_is_nowhere")
                assert hook.finder in [*met, *walk]


# ---- threads


def in_thread(function: Callable[[], Any]) -> "tuple[threading.Thread, list[Any]]":
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    return thread, results


def test_no_lock_is_held_and_nothing_is_in_progress_while_a_module_is_executed(folder: Path) -> None:
    """While one thread executes the module, another finds it (and gets a wrapped loader) and imports its neighbour."""
    FORMS["source"](folder)
    (folder / standins.PACKAGE / "some_config.py").write_text(
        "import _imp, standins\nLOCKED = _imp.lock_held()\nstandins.while_executed()\n"
    )
    (folder / standins.PACKAGE / "inner_config.py").write_text(standins.BODY)
    results: list[Any] = []

    def while_executed() -> None:
        def other() -> Any:
            spec = hook.finder.find_spec(NAME, sys.modules[standins.PACKAGE].__path__)
            return type(spec.loader), importlib.import_module(f"{standins.PACKAGE}.inner_config").HOOKED  # type: ignore[union-attr]

        thread, found = in_thread(other)
        thread.join(DEADLOCK)
        results.extend(found)

    standins.while_executed = while_executed  # type: ignore[attr-defined]
    with Hook() as hook:
        module = importlib.import_module(NAME)
    assert results == [(PostImportLoader, 1)]
    assert module.LOCKED is _imp.lock_held() is False


def test_two_threads_that_find_the_same_module_at_once_both_get_it_wrapped(folder: Path) -> None:
    FORMS["source"](folder)
    path = importlib.import_module(standins.PACKAGE).__path__
    both = threading.Barrier(2)

    class Meeting:
        def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
            if name == NAME:
                both.wait(DEADLOCK)

    with Hook() as hook:
        sys.meta_path.insert(1, Meeting())
        threads = [in_thread(lambda: type(hook.finder.find_spec(NAME, path).loader)) for _ in range(2)]  # type: ignore[union-attr]
        for thread, _ in threads:
            thread.join(DEADLOCK)
    assert [results for _, results in threads] == [[PostImportLoader]] * 2


# ---- what it costs, and where it runs

BARE = f"""
    import sys
    before = set(sys.modules)
    sys.path.append({str(ROOT)!r})
    import unsloth_hook.finder
    print(sorted(set(sys.modules) - before))
"""


def test_it_imports_nothing() -> None:
    done = run_child(BARE, python=sys.executable, options=["-S", "-I"])
    assert done.stdout == "['unsloth_hook', 'unsloth_hook.finder']\n"


def test_finder_py_is_small() -> None:
    assert len((PACKAGE / "finder.py").read_text(encoding="utf-8").splitlines()) < 150


def test_it_works_in_a_sub_interpreter(folder: Path) -> None:
    FORMS["source"](folder)
    inner = f"""
        import sys
        sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]
        from unsloth_hook.finder import PostImportFinder
        seen = []
        sys.meta_path.insert(0, PostImportFinder(("standin.",), lambda name: seen.append))
        import standin.some_config as module
        with open({str(folder / "seen")!r}, "a") as file:
            print([module.__name__ for module in seen], type(module.__loader__).__name__, file=file)
    """
    done = run_child(
        f"""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        exec({textwrap.dedent(inner)!r}, {{}})
        for _ in range(2):
            made = interpreters.create()
            print(interpreters.run_string(made, {textwrap.dedent(inner)!r}))
            interpreters.destroy(made)
        """,
        python=sys.executable,
    )
    assert done.stdout == "None\nNone\n"
    assert (folder / "seen").read_text() == "['standin.some_config'] SourceFileLoader\n" * 3


@pytest.mark.parametrize("trace", [False, True])
def test_source_and_file_are_found_by_inspect(folder: Path, trace: bool) -> None:
    """Also while a debugger or coverage traces."""
    FORMS["source"](folder)
    (folder / standins.PACKAGE / "some_config.py").write_text("class Some:\n    x = 1\n")
    before = sys.gettrace()
    if trace:
        sys.settrace(lambda *event: None)
    try:
        with Hook():
            module = importlib.import_module(NAME)
    finally:
        sys.settrace(before)
    assert inspect.getsource(module.Some) == "class Some:\n    x = 1\n"
    assert inspect.getsourcefile(module) == module.__file__
    assert json.dumps(linecache.getlines(str(module.__file__)))
