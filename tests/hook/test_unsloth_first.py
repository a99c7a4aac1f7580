"""`UNSLOTH_HOOK=first` where there is no Unsloth, or one that cannot be imported. For the real one see tests/unsloth.

The `unsloth` packages here are stand-ins: what they stand for is a package that imports TRL and its kin, or fails to.
"""

import json
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from helpers import run_child

LINE = "unsloth_hook: UNSLOTH_HOOK=first: unsloth cannot be imported ({}); going on without"

# Prints which package's __init__ was executed, and in what order: an audit hook sees what importlib executes.
COUNT = """
import sys

executed = []

def count(event, args):
    code = args[0] if event == "exec" else None
    *_, package, file = ("", "", *getattr(code, "co_filename", "").replace("\\\\", "/").split("/"))
    if file == "__init__.py" and package in ("trl", "transformers", "peft", "unsloth"):
        executed.append(package)

sys.addaudithook(count)
"""
DESCRIBE = """
import importlib, json, sys

def describe(name):
    module = importlib.import_module(name)
    loader = module.__spec__.loader
    return {
        "loader": type(loader).__name__,
        "one loader": module.__loader__ is loader,
        "spec": module.__spec__.name,
        "initializing": bool(getattr(module.__spec__, "_initializing", False)),
        "same": sys.modules[name] is module,
    }

from trl.trainer.sft_config import SFTConfig

print(json.dumps({
    "executed": executed,
    "modules": {name: describe(name) for name in ("trl", "transformers")},
    "fields": "unsloth_num_chunks" in SFTConfig.__dataclass_fields__,
    "config": [SFTConfig.__module__, SFTConfig.__qualname__],
    "first": [type(finder).__name__ for finder in sys.meta_path if type(finder).__name__ == "UnslothFirstFinder"],
}))
"""


def first(tmp_path: Path, script: str, unsloth: "str | None" = None, **options: object) -> "tuple[dict, list[str]]":
    """Run a script under `UNSLOTH_HOOK=first`, with a stand-in for Unsloth: what it saw, and standard error."""
    if unsloth is not None:
        (tmp_path / "unsloth").mkdir()
        (tmp_path / "unsloth" / "__init__.py").write_text(unsloth)
    env = {"UNSLOTH_HOOK": "first", "PYTHONPATH": str(tmp_path)}
    done = run_child(COUNT + script, env=env, **options)  # type: ignore[arg-type]
    ours = [line for line in done.stderr.splitlines() if line.startswith("unsloth_hook:")]
    return json.loads(done.stdout.splitlines()[-1]), ours


@pytest.fixture(scope="module")
def stock() -> dict:
    """The same script without the hook."""
    return json.loads(run_child(f"{COUNT}{DESCRIBE}", env={"UNSLOTH_HOOK": "0"}).stdout.splitlines()[-1])


def check(seen: dict, stock: dict, first_of_all: str) -> None:
    """All is as stock, but for the fields and for what came first; nothing is executed more often."""
    assert seen["fields"] and not stock["fields"]
    assert seen["config"] == stock["config"]
    assert seen["modules"] == stock["modules"]
    assert seen["executed"][0] == first_of_all
    assert Counter(seen["executed"]) - Counter(["unsloth"]) == Counter(stock["executed"])


def test_without_unsloth_one_line_says_so_and_the_rest_works(tmp_path: Path, stock: dict) -> None:
    seen, ours = first(tmp_path, "import trl\n" + DESCRIBE)
    assert ours == [LINE.format("ModuleNotFoundError: No module named 'unsloth'")]
    check(seen, stock, "trl")
    assert seen["first"] == []


whole = pytest.mark.whole
MISSING = ("import nosuchpackage", "ModuleNotFoundError: No module named 'nosuchpackage'")


@pytest.mark.parametrize(
    ("unsloth", "error"),
    [
        pytest.param("raise RuntimeError('no GPU here')", "RuntimeError: no GPU here", marks=whole, id="raises"),
        pytest.param(*MISSING, marks=whole, id="misses a package"),
        pytest.param("import trl\nraise ImportError('half way')", "ImportError: half way", id="fails half way"),
    ],
)
def test_an_unsloth_that_fails_is_one_line_too(tmp_path: Path, stock: dict, unsloth: str, error: str) -> None:
    seen, ours = first(tmp_path, "import trl\n" + DESCRIBE, unsloth)
    assert ours == [LINE.format(error)]
    check(seen, stock, "unsloth")
    assert seen["first"] == []


@pytest.mark.parametrize("who", [pytest.param("trl", marks=whole), "transformers"])
def test_what_unsloth_imported_is_not_executed_again(tmp_path: Path, stock: dict, who: str) -> None:
    seen, ours = first(tmp_path, f"import {who}\n" + DESCRIBE, "import transformers, trl")
    assert ours == []
    check(seen, stock, "unsloth")


@whole
def test_an_unsloth_that_imports_less_is_no_trouble(tmp_path: Path, stock: dict) -> None:
    seen, ours = first(tmp_path, "import transformers\n" + DESCRIBE, "")
    assert ours == []
    check(seen, stock, "unsloth")


def test_a_look_without_an_import_brings_no_unsloth(tmp_path: Path) -> None:
    script = """
    import importlib.util, json, sys
    spec = importlib.util.find_spec("transformers")
    source = spec.loader.get_source("transformers")
    print(json.dumps([spec.name, spec.origin[-11:], len(source) > 1000, "unsloth" in sys.modules]))
    """
    seen, ours = first(tmp_path, textwrap.dedent(script), "raise RuntimeError")
    assert ours == []
    assert seen == ["transformers", "__init__.py", True, False]


# A finder behind ours at which both threads meet: then each has been found before either is loaded.
TOGETHER = """
import threading
from importlib.machinery import PathFinder

class Together:
    meeting = threading.Barrier(2)
    def find_spec(self, name, path=None, target=None):
        if name in ("trl", "transformers") and not Together.meeting.broken:
            try:
                Together.meeting.wait(1)
            except threading.BrokenBarrierError:
                pass
            Together.meeting.abort()

sys.meta_path.insert(sys.meta_path.index(PathFinder), Together())
"""
THREADS = """
import faulthandler, threading, time
faulthandler.dump_traceback_later(1000, exit=True)
failed = []
def take(name, after):
    time.sleep(after)
    try:
        __import__(name)
    except BaseException as error:
        failed.append(repr(error))
threads = [threading.Thread(target=take, args=pair) for pair in PAIRS]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
faulthandler.cancel_dump_traceback_later()
assert not failed, failed
"""
PAIRS = {
    "found at the same moment": (TOGETHER, [("trl", 0), ("transformers", 0)]),
    "submodules, found at the same moment": (
        TOGETHER,
        [("trl.trainer.sft_config", 0), ("transformers.utils.generic", 0)],
    ),
    "trl, while Unsloth is imported for transformers": ("", [("trl", 0.25), ("transformers", 0)]),
    "transformers, while Unsloth is imported for trl": ("", [("trl", 0), ("transformers.utils.generic", 0.25)]),
    "transformers, while Unsloth executes it": ("", [("trl", 0), ("transformers", 0.75)]),
    "both, while Unsloth is imported by the program": ("", [("unsloth", 0), ("trl", 0.25), ("transformers", 0.25)]),
}
SLOW = """
import time
time.sleep(0.5)
import transformers
time.sleep(0.5)
import transformers.utils.generic, trl.trainer.sft_config
"""


# Small stand-ins: it is importlib's locks that are tried here; tests/unsloth does it with the real packages.
PACKAGES = {
    "unsloth/__init__.py": SLOW,
    "trl/__init__.py": "import transformers",
    "trl/trainer/__init__.py": "",
    "trl/trainer/sft_config.py": "",
    "transformers/__init__.py": "import time; time.sleep(0.5)",
    "transformers/utils/__init__.py": "",
    "transformers/utils/generic.py": "import transformers",
}
SHOW = """
import json
print(json.dumps([executed, [type(sys.modules[name].__spec__.loader).__name__ for name in ("trl", "transformers")]]))
"""


def in_threads(tmp_path: Path, how: str, **packages: str) -> "tuple[list, list[str]]":
    """Two or three threads import at once: the packages that were executed and their loaders, and standard error."""
    for name, text in (PACKAGES | packages).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before, pairs = PAIRS[how]
    return first(tmp_path, f"{before}\nPAIRS = {pairs}\n{THREADS}{SHOW}")


@pytest.mark.parametrize("how", PAIRS)
def test_threads_do_not_wait_for_each_other(tmp_path: Path, how: str) -> None:
    (executed, loaders), ours = in_threads(tmp_path, how)
    assert ours == []
    assert executed == ["unsloth", "transformers", "trl"]
    assert loaders == ["SourceFileLoader", "SourceFileLoader"]


def test_two_threads_and_an_unsloth_that_fails_are_one_line(tmp_path: Path) -> None:
    fails = {"unsloth/__init__.py": "import time\ntime.sleep(0.5)\nraise RuntimeError('no GPU here')"}
    (executed, loaders), ours = in_threads(tmp_path, "found at the same moment", **fails)
    assert ours == [LINE.format("RuntimeError: no GPU here")]
    assert sorted(set(executed)) == ["transformers", "trl", "unsloth"]
    assert loaders == ["SourceFileLoader", "SourceFileLoader"]
