"""The engine: lets a callback see a module right after it is executed. Knows nothing of what it is used for."""

import _thread
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import FunctionType, ModuleType
    from typing import Any

    Callback = Callable[[ModuleType], None]


class PostImportFinder:
    """A finder that leaves the finding to others and wraps the loader of the modules that `select` picks.

    Args:
        prefixes: beginnings of the full names worth asking `select` about; every other import passes after one test.
        select: takes a full module name, returns the callback for that module or None.
    """

    def __init__(self, prefixes: tuple[str, ...], select: "Callable[[str], Callback | None]") -> None:
        self._prefixes = prefixes
        self._select = select
        self._thread = _thread._local()

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """The real spec with its loader wrapped, or None to let the import system go on (PEP 451)."""
        if sys.meta_path and sys.meta_path[0] is not self:
            self._step_forward()
        if not fullname.startswith(self._prefixes):
            return None
        callback = self._select(fullname)
        asking = vars(self._thread)
        depth: int = asking.get(fullname, 0)
        if callback is None or depth > 1:  # a finder that we ask may ask us, once: its callback comes after ours
            return None
        asking[fullname] = depth + 1
        try:
            spec = find_behind(self, fullname, path, target)
        except BaseException as error:
            without_frames(error, 2)
            raise
        finally:
            asking[fullname] = depth
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, PostImportLoader):
            spec.loader = PostImportLoader(spec, callback)  # type: ignore[assignment]
        return spec

    def _step_forward(self) -> None:
        # In front of us, a finder that answers for a whole package (typeguard's, pytest's) hides us; behind, we ask it.
        # Our hindmost place is kept for a thread that is walking the list now and has passed the first.
        if sys.meta_path.count(self) > 1:
            sys.meta_path.remove(self)
        if self in sys.meta_path:
            sys.meta_path.insert(0, self)


def find_behind(
    asking: object, fullname: str, path: "Sequence[str] | None", target: "ModuleType | None"
) -> "ModuleSpec | None":
    """The spec that the finders behind `asking` find. Those before it have been asked, or are asking it just now."""
    finders = sys.meta_path
    for finder in finders[finders.index(asking) + 1 if asking in finders else 0 :]:
        find_spec = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find_spec and find_spec(fullname, path, target)
        if spec is not None:
            return spec
    return None


def without_frames(error: BaseException, count: int) -> None:
    """Take the outermost frames off a traceback; a bare `raise` adds none (but on Python 3.10 brings them back)."""
    for _ in range(count):
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next


class PostImportLoader:
    """Stands in for the real loader until the module is executed; whatever the real one can do, this one can."""

    def __init__(self, spec: "ModuleSpec", callback: "Callback") -> None:
        self._spec = spec
        self._real = spec.loader
        self._callback = callback

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("__"):  # no part of the loader protocol, and asked for by copy before _real is there
            raise AttributeError(name)
        method = getattr(self._real, name)
        return self._and_callback(method) if name in ("exec_module", "load_module") else method

    def _and_callback(self, execute: "Callable[[Any], ModuleType | None]") -> "Callable[[Any], ModuleType | None]":
        def execute_and_call_back(argument: "Any") -> "ModuleType | None":  # a module, or for load_module its name
            self._spec.loader = self._real
            if getattr(argument, "__loader__", None) is self:
                argument.__loader__ = self._real
            try:
                loaded = execute(argument)
            except BaseException as error:
                without_frames(error, 1)
                raise
            self._callback(argument if loaded is None else loaded)
            return loaded

        return _as_of_importlib(execute_and_call_back)  # type: ignore[arg-type]


def _as_of_importlib(function: "FunctionType") -> "FunctionType":
    # By this name `warnings` knows the frames not to count, and the import statement those to trim off tracebacks.
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return function


for _function in (PostImportFinder.find_spec, find_behind):
    _as_of_importlib(_function)  # type: ignore[arg-type]
