"""Prints what an import costs that has nothing to do with TRL, for our finder and for others of its kind."""

import importlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pairs

WANTED = "trl.trainer.sft_config"
NAMES = ["json.decoder", "email.mime.text", "numpy.linalg", "concurrent.futures", "asyncio.events", "sqlite3", "zlib"]
NAMES += ["pandas.core.frame", "yaml.loader", "requests.adapters", "pathlib", "importlib.metadata", "os.path", "h5py"]
LIKE_OURS = ["torch.nn.functional", "transformers.models.auto", "urllib.request", "typing_extensions"]


def put_on_ours() -> None:
    from unsloth_hook.activation import activate

    activate("benchmark")


def put_on_wrapt() -> None:
    import wrapt.importer

    wrapt.importer.register_post_import_hook(lambda module: None, WANTED)
    if not any(isinstance(finder, wrapt.importer.ImportHookFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, wrapt.importer.ImportHookFinder())


def put_on_typeguard() -> None:
    import typeguard

    typeguard.install_import_hook([WANTED])


def put_on_ddtrace() -> None:
    from ddtrace.internal.module import ModuleWatchdog

    if not ModuleWatchdog.is_installed():
        ModuleWatchdog.install()


def put_on_beartype() -> None:
    from beartype.claw import beartype_package

    beartype_package("trl")


HOOKS = {
    "unsloth_hook": put_on_ours,
    "wrapt": put_on_wrapt,
    "typeguard": put_on_typeguard,
    "ddtrace": put_on_ddtrace,
    "beartype.claw": put_on_beartype,
}


class Nothing:
    """A finder that does nothing: the least that a finder written in Python costs."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        return None


class State:
    """The import system with one hook on, ready to be put in place and taken away again."""

    def __init__(self, put_on: Any) -> None:
        self.before = self.meta_path, self.path_hooks = list(sys.meta_path), list(sys.path_hooks)
        put_on()
        self.finders = [finder for finder in sys.meta_path if not any(finder is old for old in self.meta_path)]
        self.meta_path, self.path_hooks = list(sys.meta_path), list(sys.path_hooks)
        sys.meta_path[:], sys.path_hooks[:] = self.before


def asked(find_spec: Any, names: list[str]) -> Any:
    """A function that asks a finder for each name."""

    def ask() -> None:
        for name in names:
            find_spec(name, None)

    return ask


def importing(state: Any, folder: str, names: list[str]) -> Any:
    """A function that imports modules anew from a folder of their own, with one hook on."""

    def run() -> None:
        sys.meta_path[:] = state.meta_path
        sys.path.insert(0, folder)
        for name in names:
            __import__(name)
        for name in names:
            del sys.modules[name]
        del sys.path[0]

    sys.path_hooks[:] = state.path_hooks  # the importer of this folder is made by these, and kept
    sys.path_importer_cache.pop(folder, None)
    run()
    sys.path_hooks[:] = state.before[1]
    return run


def main(rounds: int) -> dict[str, Any]:
    sys.meta_path[:] = [finder for finder in sys.meta_path if "distutils" not in str(type(finder)).lower()]
    states = {"no hook": State(lambda: None), **{name: State(put_on) for name, put_on in HOOKS.items()}}
    before = list(sys.meta_path)
    found: dict[str, Any] = {"finders": {}, "like ours": {}, "imports": {}, "growth": {}}

    finders = {"a finder that does nothing": Nothing()}
    finders |= {name: state.finders[0] for name, state in states.items() if state.finders}
    sys.meta_path.insert(0, states["unsloth_hook"].finders[0])
    for key, names in (("finders", NAMES), ("like ours", LIKE_OURS)):
        functions = [asked(finder.find_spec, names) for finder in finders.values()]
        times = pairs.in_turns(functions, rounds, clock=time.thread_time)
        found[key] = {name: [one / len(names) for one in row] for name, row in zip(finders, times, strict=True)}
    ours = states["unsloth_hook"].finders[0]
    for count in (10, 100, 1_000, 10_000):
        many = asked(ours.find_spec, [f"package_{number}.module" for number in range(count)])
        (times,) = pairs.in_turns([many], max(5, rounds // 10), clock=time.thread_time)
        found["growth"][count] = times
    sys.meta_path[:] = before

    with tempfile.TemporaryDirectory() as folder:
        functions = []
        for index, state in enumerate(states.values()):
            place = Path(folder, str(index))
            place.mkdir()
            names = [f"nothing_of_note_{index}_{number}" for number in range(50)]
            for name in names:
                (place / f"{name}.py").touch()
            importlib.invalidate_caches()
            functions.append(importing(state, str(place), names))
        times = pairs.in_turns(functions, max(10, rounds // 4), clock=time.thread_time)
        found["imports"] = {name: [one / 50 for one in row] for name, row in zip(states, times, strict=True)}
    sys.meta_path[:] = before
    return found


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]))))
