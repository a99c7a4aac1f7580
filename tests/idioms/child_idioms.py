"""Run every idiom in a fork of its own, and print what each told as one JSON object. Takes "late" or nothing.

The files with idioms are imported once, and TRL with them: by the time of the first fork their names are bound. "late"
means that the hook is switched on after that.
"""

import contextlib
import importlib
import inspect
import io
import json
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
FILES = ("copying", "deriving", "looking", "mocking", "parsing", "registering", "serialising", "tracking")

# What differs from one run to the next: addresses, and the folder with host and time that transformers 4 logs into.
PASSING = ((re.compile(r"0x[0-9a-f]{6,}"), "0x…"), (re.compile(r"[A-Z][a-z]{2}\d\d_\d\d-\d\d-\d\d_[\w.-]+"), "NOW"))


def plain(value: Any) -> Any:
    """For `json`: sets in order, the rest by name."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return f"{type(value).__name__}: {value!r}"


def place_of(warned: warnings.WarningMessage) -> list[Any]:
    """A warning, and where it points; code that dataclasses write has a line for each field, which says nothing."""
    generated = warned.filename == "<string>"
    line = None if generated else warned.lineno
    return [warned.category.__name__, str(warned.message), Path(warned.filename).name, line]


def tell(idiom: Callable[[], Any]) -> str:
    """All that one idiom shows, as JSON."""
    told: dict[str, Any] = {}
    printed = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(record=True) as warned,
    ):
        os.chdir(folder)
        warnings.simplefilter("always")
        try:
            told["returned"] = idiom()
        except (Exception, SystemExit) as error:
            told["raised"] = f"{type(error).__name__}: {error}"
            told["raised at"] = Path(traceback.extract_tb(error.__traceback__)[-1].filename).name
        told["printed"] = printed.getvalue()
        told["warned"] = [place_of(each) for each in warned]
        text = json.dumps(told, default=plain, ensure_ascii=False).replace(os.path.realpath(folder), "FOLDER")
        os.chdir("/")
    for pattern, word in PASSING:
        text = pattern.sub(word, text)
    return text


def in_a_fork(idiom: Callable[[], Any]) -> Any:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with open(writing, "w", encoding="utf-8") as pipe:
                pipe.write(tell(idiom))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"{idiom.__name__}: {os.waitstatus_to_exitcode(status)}"
    return json.loads(text)


def main(when: str) -> None:
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(FOLDER))
    modules = [importlib.import_module(name) for name in FILES]
    if when == "late":
        import unsloth_hook

        unsloth_hook.install()
    seen = {}
    for module in modules:
        for name, idiom in vars(module).items():
            if inspect.isfunction(idiom) and idiom.__module__ == module.__name__ and not name.startswith("_"):
                assert name not in seen, f"two idioms called {name}"
                seen[name] = in_a_fork(idiom)
    print(json.dumps(seen))
