"""The engine: lets a callback see a module right after it is executed. Knows nothing of what it is used for."""

import _thread
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, TypeVar

    F = TypeVar("F")
    Callback = Callable[[ModuleType], None]


def _as_of_importlib(function: "F") -> "F":
    # By this name `warnings` knows the frames not to count, and the import statement those to trim off tracebacks.
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")  # type: ignore
    return function


class PostImportFinder:
    """A finder that leaves the finding to others and wraps the loader of the modules that `select` picks.

    Args:
        prefixes: beginnings of the full names worth asking `select` about; every other import passes after one test.
        select: takes a full module name, returns the callback for that module or None.
        catch_up: asked when another finder has been in front and may have hidden this one. As long as it returns a
            callback, that is called after the next module, whichever it is.
    """

    def __init__(
        self,
        prefixes: tuple[str, ...],
        select: "Callable[[str], Callback | None]",
        catch_up: "Callable[[], Callback | None]" = lambda: None,
    ) -> None:
        self._prefixes, self._select, self._thread = prefixes, select, _thread._local()
        self._initials = frozenset(prefix[0] for prefix in prefixes)  # most names pass here: a third of a startswith
        self._catch_up = catch_up
        self._front: object = self  # None: come and look at every import

    @_as_of_importlib
    def find_spec(self, fullname: str, path: "Any" = None, target: "ModuleType | None" = None) -> "ModuleSpec | None":
        """The real spec with its loader wrapped, or None to let the import system go on (PEP 451)."""
        callback = None
        try:
            if sys.meta_path[0] is not self._front:
                callback = self._step_forward()
            if fullname[0] in self._initials and fullname.startswith(self._prefixes):
                callback = self._select(fullname) or callback
        except IndexError:  # no finders to ask, or no name
            return None
        asking = vars(self._thread)  # a finder that we ask may ask us, once: its callback comes after ours
        if callback is None or (depth := asking.get(fullname, 0)) > 1:
            return None
        asking[fullname] = depth + 1
        try:
            spec = find_behind(self, fullname, path, target)
        except BaseException as error:
            without_frames(error, 2)
            raise
        finally:
            asking[fullname] = depth
        if spec is not None and spec.loader is not None and not hasattr(spec.loader, "_stepping_aside"):
            spec.loader = PostImportLoader(spec, callback)  # type: ignore[assignment]
        return spec

    def _step_forward(self) -> "Callback | None":
        # In front of us, a finder that answers for a whole package (typeguard's, pytest's) hides us; behind, we ask it.
        finders = sys.meta_path
        if self not in finders:
            return None
        if finders[0] is not self:
            finders.insert(0, self)
            self._front = None
        elif finders.count(self) > 1 and not _another_thread_imports():  # and may walk the list, past us already
            del finders[len(finders) - 1 - finders[::-1].index(self)]
        callback = self._catch_up()
        if callback is None and finders.count(self) == 1:
            self._front = self
        return callback


def _another_thread_imports() -> bool:
    references = getattr(sys.modules["_frozen_importlib"], "_module_locks", {})  # private; from CPython 3.10 on
    locks = [reference() for reference in list(references.values())]
    return any(getattr(lock, "owner", None) not in (None, _thread.get_ident()) for lock in locks)


@_as_of_importlib
def find_behind(asking: object, fullname: str, path: "Any", target: "ModuleType | None") -> "ModuleSpec | None":
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
        self._spec, self._real, self._callback = spec, spec.loader, callback

    __class__ = property(lambda self: type(self._real))  # for isinstance

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("__"):  # no part of the loader protocol, and asked for by copy before _real is there
            raise AttributeError(name)
        try:
            method = getattr(self._real, name)
        except AttributeError as error:
            without_frames(error, 1)
            raise
        return self._stepping_aside(method, name) if name in ("exec_module", "load_module", "get_code") else method

    def _stepping_aside(self, execute: "Callable[[Any], Any]", name: str) -> "Callable[[Any], Any]":
        @_as_of_importlib
        def step_aside(argument: "Any") -> "Any":  # a module, or but for exec_module its name
            self._spec.loader = self._real  # after get_code too: `runpy` runs the code itself, with this spec
            if getattr(argument, "__loader__", None) is self:
                argument.__loader__ = self._real
            try:
                result = execute(argument)
            except BaseException as error:
                without_frames(error, 1)
                raise
            if name != "get_code":
                self._callback(argument if result is None else result)
            return result

        return step_aside
