"""The line in ``unsloth_hook.pth``: gated by the variable, and never in Python's way (contract 9)."""

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from helpers import PACKAGE, ROOT, make_venv, run_child, site_packages
from render_pth import SOURCE, TARGET, render

LINE = TARGET.read_text(encoding="utf-8")

ON = ["1", "true", "yes", "on", "TRUE", "Yes", " on "]
OFF = [None, "", " ", "0", "false", "no", "off", "FALSE", "No", " Off\t"]

REPORT = """
    import json, sys
    print(json.dumps({
        "modules": sorted(sys.modules), "meta_path": [getattr(f, "__name__", type(f).__name__) for f in sys.meta_path],
        "ours": sorted(name for name in sys.modules if name.split(".")[0] == "unsloth_hook"),
        "finders": sum(type(finder).__module__.startswith("unsloth_hook") for finder in sys.meta_path),
    }))
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has never heard of the hook."""
    return make_venv(tmp_path_factory.mktemp("plain"))


def report(**options: Any) -> dict[str, Any]:
    """Start Python, which must say nothing on stderr, and return what it reports."""
    done = run_child(REPORT, **options)
    assert done.stderr == ""
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def venv_with_line(folder: Path, *paths: Path) -> Path:
    python = make_venv(folder, *paths)
    (site_packages(python) / TARGET.name).write_text(LINE)
    return python


def broken_package(folder: Path, where: str, text: str) -> Path:
    """Make a package of our name with one file that misbehaves, and return the folder to import it from."""
    package = folder / "unsloth_hook"
    package.mkdir(parents=True)
    for name in ("__init__.py", "_bootstrap.py"):
        (package / name).write_text(text if name == where else "")
    return folder


def test_the_line_is_made_from_the_readable_source() -> None:
    assert render(SOURCE.read_text(encoding="utf-8")) == LINE, "run: python tests/hook/render_pth.py"


def test_it_is_one_line_that_site_executes() -> None:
    assert LINE.startswith("import ")
    assert LINE.count("\n") == 1
    assert LINE.isascii()


def test_both_start_up_files_call_the_one_name_that_never_changes() -> None:
    """An old line may meet a new package and the reverse (setuptools #2983)."""
    assert (PACKAGE / "unsloth_hook.start").read_text() == "unsloth_hook._bootstrap:start\n"
    assert "from unsloth_hook._bootstrap import start" in LINE


@pytest.mark.parametrize("value", OFF)
def test_off_is_as_if_it_were_not_installed(plain: Path, value: str | None) -> None:
    assert report(env={"UNSLOTH_HOOK": value}) == report(python=plain)


@pytest.mark.parametrize("value", ON)
def test_on_installs_the_finder(value: str) -> None:
    assert report(env={"UNSLOTH_HOOK": value})["finders"] >= 1


def test_on_imports_only_our_own_few_modules(plain: Path) -> None:
    new = set(report(env={"UNSLOTH_HOOK": "1"})["modules"]) - set(report(python=plain)["modules"])
    assert {name.split(".")[0] for name in new} == {"unsloth_hook"}


def test_any_other_value_is_off_with_one_line_on_stderr() -> None:
    done = run_child(REPORT, env={"UNSLOTH_HOOK": "banana"})
    assert json.loads(done.stdout)["finders"] == 0
    assert done.stderr.count("\n") == 1
    assert "UNSLOTH_HOOK" in done.stderr
    assert "banana" in done.stderr


def test_executed_twice_it_installs_once(tmp_path: Path) -> None:
    """A virtual environment may run each line twice (cpython #65720)."""
    once = report(env={"UNSLOTH_HOOK": "1"})
    python = venv_with_line(tmp_path, ROOT)
    (site_packages(python) / TARGET.name).write_text(LINE * 2)
    assert report(python=python, env={"UNSLOTH_HOOK": "1"}) == once


@pytest.mark.parametrize(("value", "compiled"), [(None, 0), ("", 0), ("1", 1)])
def test_it_compiles_nothing_when_unset(value: str | None, compiled: int) -> None:
    script = f"""
        import builtins, os  # before `exec`, which an import needs, is replaced
        real, count = exec, []
        builtins.exec = lambda *args: count.append(args)
        real({LINE!r})
        print(len(count))
    """
    options = ["-S"]  # no line of an installed package before this one
    done = run_child(script, options=options, env={"UNSLOTH_HOOK": value, "PYTHONPATH": str(ROOT)})
    assert done.stdout == f"{compiled}\n"


def test_start_called_again_by_another_route_installs_once() -> None:
    again = "from unsloth_hook._bootstrap import start; start(); start('sitecustomize'); start()"
    done = run_child(f"{again}\n{textwrap.dedent(REPORT)}", env={"UNSLOTH_HOOK": "1"})
    assert json.loads(done.stdout) == report(env={"UNSLOTH_HOOK": "1"})


def test_it_needs_no_name_of_site_and_leaves_none() -> None:
    script = f"""
        def line():
            exec({LINE!r})
            return sorted(locals())
        namespace = {{"__builtins__": __builtins__}}
        exec({LINE!r}, namespace)
        print(line(), sorted(namespace))
    """
    for value in ("0", "1"):
        named = run_child(script, options=["-S"], env={"UNSLOTH_HOOK": value, "PYTHONPATH": str(ROOT)}).stdout
        assert named in ("['os'] ['__builtins__', 'os']\n", "[] ['__builtins__', 'os']\n")


def test_the_package_gone_and_the_line_left_is_silence(tmp_path: Path, plain: Path) -> None:
    python = venv_with_line(tmp_path)
    on, stock = report(python=python, env={"UNSLOTH_HOOK": "1"}), report(python=plain)
    assert on == stock
    done = run_child(args=["-W", "error", "-c", "pass"], python=python, env={"UNSLOTH_HOOK": "1"})
    assert (done.stdout, done.stderr) == ("", "")


def test_a_package_without_the_bootstrap_is_silence(tmp_path: Path) -> None:
    (tmp_path / "old" / "unsloth_hook").mkdir(parents=True)
    (tmp_path / "old" / "unsloth_hook" / "__init__.py").touch()
    assert report(python=venv_with_line(tmp_path / "venv", tmp_path / "old"), env={"UNSLOTH_HOOK": "1"})["finders"] == 0


FAILURES = ["Exception('x')", "SystemExit(3)", "KeyboardInterrupt()", "BaseException()"]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("__init__.py", "raise {}"),
        ("_bootstrap.py", "raise {}"),
        ("_bootstrap.py", "def start(): raise {}"),
        ("_bootstrap.py", "def __getattr__(name): raise {}"),
    ],
)
def test_a_package_that_raises_lets_python_start(tmp_path: Path, where: str, text: str, failure: str) -> None:
    folder = broken_package(tmp_path / "broken", where, text.format(failure))
    python = venv_with_line(tmp_path / "venv", folder)
    done = run_child(args=["-c", "pass"], python=python, env={"UNSLOTH_HOOK": "1"})
    assert (done.stdout, done.stderr) == ("", "")
    assert report(python=python, env={"UNSLOTH_HOOK": "1"})["finders"] == 0


# Runs in `site` before our line: makes one step of the real start-up raise, then takes itself away.
SABOTAGE = """
import builtins, sys

class Raise:
    def __init__(self, name):
        self.name = name

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            raise {failure}

class MetaPath(list):
    def insert(self, *args):
        raise {failure}

    append = insert

    def __setitem__(self, *args):
        raise {failure}

step = {step!r}
if step == "meta_path":
    sys.meta_path = MetaPath(sys.meta_path)
else:
    sys.meta_path.insert(0, Raise(step))
"""


def modules_at_start() -> list[str]:
    """Our own modules that a real start-up imports: each import is a step that can fail."""
    ours: list[str] = report(env={"UNSLOTH_HOOK": "1"})["ours"]
    return ours


def test_every_import_of_the_real_start_up_made_to_raise_leaves_no_finder(tmp_path: Path) -> None:
    python = venv_with_line(tmp_path, ROOT)
    sabotage = site_packages(python) / "a_sabotage.py"
    (site_packages(python) / "a_sabotage.pth").write_text("import a_sabotage\n")
    steps = [*modules_at_start(), "meta_path"]
    assert "unsloth_hook._bootstrap" in steps
    for step in steps:
        for failure in FAILURES:
            sabotage.write_text(SABOTAGE.format(step=step, failure=failure))
            done = run_child(REPORT, python=python, env={"UNSLOTH_HOOK": "1"})
            assert json.loads(done.stdout)["finders"] == 0, (step, failure)
