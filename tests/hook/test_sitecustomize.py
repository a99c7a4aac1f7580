"""`sitecustomize_example/sitecustomize.py`: switches the hook on, and chains to what it shadows (contract 9)."""

import json
import os
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest
from helpers import ROOT, make_venv, run_child, site_packages

EXAMPLE = ROOT / "sitecustomize_example"

# What a user's own file can see of itself; compared with a stock process.
NOTING = """
    import builtins, sys
    builtins.ran = getattr(builtins, "ran", []) + [{name!r}]
    builtins.seen = {{
        "name": __name__, "file": __file__, "cached": __cached__, "package": __package__, "doc": __doc__,
        "spec": (__spec__.name, __spec__.origin, __spec__.has_location), "loader": repr(type(__loader__)),
        "itself": sys.modules["sitecustomize"].__dict__ is globals(),
    }}
"""

REPORT = """
    import builtins, json, sys
    module = sys.modules.get("sitecustomize")
    print(json.dumps({
        "ran": getattr(builtins, "ran", []), "seen": getattr(builtins, "seen", None),
        "module": module and module.__file__, "origin": module and module.__spec__.origin,
        "ours": sorted(name for name in sys.modules if name.split(".")[0] == "unsloth_hook"),
        "finders": sum(type(finder).__module__.startswith("unsloth_hook") for finder in sys.meta_path),
        "modules": sorted(sys.modules),
    }))
"""


@pytest.fixture(scope="module")
def with_hook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that can import the package, and has no ``.pth`` line: `sitecustomize` is the only route."""
    return make_venv(tmp_path_factory.mktemp("with"), ROOT)


@pytest.fixture
def without_hook(tmp_path: Path) -> Path:
    """A Python in which the package is not installed."""
    return make_venv(tmp_path / "without")


def noting(folder: Path, name: str, *more: str) -> Path:
    """Write a `sitecustomize.py` that notes that it ran, into a new folder of that name."""
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    text = textwrap.dedent(NOTING.format(name=name)) + "".join(f"{line}\n" for line in more)
    (folder / "sitecustomize.py").write_text(text)
    return folder


def start(python: Path, *path: Path, **options: Any) -> dict[str, Any]:
    """Start Python with these folders on PYTHONPATH and return what it reports; it must say nothing on stderr."""
    env = {"PYTHONPATH": os.pathsep.join(map(str, path)), **options.pop("env", {})}
    done = run_child(REPORT, python=python, env=env, **options)
    assert done.stderr == ""
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_it_switches_the_hook_on_and_stays_when_it_is_alone(with_hook: Path) -> None:
    report = start(with_hook, EXAMPLE)
    assert report["finders"] >= 1
    assert report["module"] == str(EXAMPLE / "sitecustomize.py")
    assert start(with_hook)["finders"] == 0


def test_status_names_the_route(with_hook: Path) -> None:
    script = "import unsloth_hook; print(unsloth_hook.status()['route'])"
    assert run_child(script, python=with_hook, env={"PYTHONPATH": str(EXAMPLE)}).stdout == "sitecustomize\n"


def test_it_imports_only_cheap_modules(with_hook: Path, without_hook: Path) -> None:
    stock = set(start(without_hook)["modules"])
    new = set(start(with_hook, EXAMPLE)["modules"]) - stock
    assert {name.split(".")[0] for name in new} == {"sitecustomize", "unsloth_hook"}
    assert set(start(without_hook, EXAMPLE)["modules"]) - stock == {"sitecustomize"}


@pytest.mark.parametrize("value", ["0", "false", "No", " OFF "])
def test_an_off_value_keeps_it_off(with_hook: Path, tmp_path: Path, value: str) -> None:
    report = start(with_hook, EXAMPLE, noting(tmp_path, "next"), env={"UNSLOTH_HOOK": value})
    assert (report["finders"], report["ours"], report["ran"]) == (0, [], ["next"])


def test_it_runs_the_next_as_stock_would(with_hook: Path, tmp_path: Path) -> None:
    following = noting(tmp_path, "next")
    report, stock = start(with_hook, EXAMPLE, following), start(with_hook, following)
    assert stock["ran"] == ["next"]
    for key in ("ran", "seen", "module", "origin"):
        assert report[key] == stock[key]
    off = start(with_hook, EXAMPLE, following, env={"UNSLOTH_HOOK": "0"})
    assert off == stock
    assert report["finders"] >= 1


def test_a_third_in_site_packages_runs_when_the_second_chains(with_hook: Path, tmp_path: Path) -> None:
    """Two on PYTHONPATH, a third in site-packages: ours, a copy of ours, and a user's."""
    python = make_venv(tmp_path / "three", ROOT)
    third = noting(tmp_path, "third")
    shutil.copy(third / "sitecustomize.py", site_packages(python))
    copy = tmp_path / "copy"
    shutil.copytree(EXAMPLE, copy)
    report = start(python, EXAMPLE, copy)
    assert report["ran"] == ["third"]
    assert report["module"] == str(site_packages(python) / "sitecustomize.py")
    assert report["finders"] >= 1


def test_only_the_next_runs_as_stock_runs_only_the_first(with_hook: Path, tmp_path: Path) -> None:
    second, third = noting(tmp_path, "second"), noting(tmp_path, "third")
    assert start(with_hook, EXAMPLE, second, third)["ran"] == ["second"]


def test_when_ours_is_second_and_hidden_nothing_of_it_runs(with_hook: Path, tmp_path: Path) -> None:
    report = start(with_hook, noting(tmp_path, "first"), EXAMPLE)
    assert (report["ran"], report["finders"]) == (["first"], 0)


def test_copies_make_no_loop(with_hook: Path, tmp_path: Path) -> None:
    copies = [EXAMPLE]
    for name in ("b", "c"):
        shutil.copytree(EXAMPLE, tmp_path / name)
        copies.append(tmp_path / name)
    (tmp_path / "link").symlink_to(EXAMPLE, target_is_directory=True)
    report = start(with_hook, *copies, tmp_path / "link", *copies, noting(tmp_path, "last"))
    assert report["ran"] == ["last"]
    # `site` drops doubles before it imports sitecustomize; a .pth line can put one back.
    python = make_venv(tmp_path / "double", ROOT)
    (site_packages(python) / "a.pth").write_text(f"import sys; sys.path[1:1] = [{str(EXAMPLE)!r}] * 2\n")
    assert start(python, EXAMPLE, tmp_path / "last")["ran"] == ["last"]


def test_a_copy_in_site_packages_works(tmp_path: Path) -> None:
    python = make_venv(tmp_path / "copied", ROOT, noting(tmp_path, "later"))
    shutil.copy(EXAMPLE / "sitecustomize.py", site_packages(python))
    report = start(python)
    assert report["finders"] >= 1
    assert report["ran"] == ["later"]


def test_the_next_may_be_in_a_zip(with_hook: Path, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", noting(tmp_path, "next"))
    report, stock = start(with_hook, EXAMPLE, Path(archive)), start(with_hook, Path(archive))
    assert report["ran"] == ["next"]
    assert report["seen"] == stock["seen"]


@pytest.mark.parametrize(
    "statement",
    [
        "raise RuntimeError('boom')",
        "raise ImportError('boom', name='sitecustomize')",
        "import no_such_module",
        "1 +",
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
    ],
)
def test_a_next_that_raises_is_reported_as_stock(with_hook: Path, tmp_path: Path, statement: str) -> None:
    following = noting(tmp_path, "next", statement)

    def outcome(*path: Path) -> tuple[int, str, str]:
        env = {"PYTHONPATH": os.pathsep.join(map(str, path))}
        script = "import sys; print('sitecustomize' in sys.modules, len(sys.meta_path))"
        done = run_child(script, python=with_hook, env={**env, "UNSLOTH_HOOK": "0"}, check=False)
        # Where Python prints a traceback (SystemExit, Ctrl-C), it has our frames: compare the words that it ends with.
        traceback = "Traceback" in done.stderr
        return done.returncode, done.stdout, done.stderr.splitlines()[-1] if traceback else done.stderr

    assert outcome(EXAMPLE, following) == outcome(following)


def test_the_hook_stays_on_when_the_next_raises(with_hook: Path, tmp_path: Path) -> None:
    env = {"PYTHONPATH": os.pathsep.join([str(EXAMPLE), str(noting(tmp_path, "next", "raise RuntimeError('boom')"))])}
    done = run_child(REPORT, python=with_hook, env=env)
    report = json.loads(done.stdout)
    assert report["finders"] >= 1
    assert report["module"] is None
    assert done.stderr.count("RuntimeError: boom") == 1


def test_it_is_silent_without_the_package_and_under_warnings_as_errors(
    with_hook: Path, without_hook: Path, tmp_path: Path
) -> None:
    following = noting(tmp_path, "next")
    for python in (with_hook, without_hook):
        report = start(python, EXAMPLE, following, options=["-W", "error"])
        assert report["ran"] == ["next"]
        assert (report["finders"] >= 1) == (python == with_hook)
    alone = start(without_hook, EXAMPLE, options=["-W", "error"])
    assert (alone["finders"], alone["module"]) == (0, str(EXAMPLE / "sitecustomize.py"))


@pytest.mark.parametrize("failure", ["Exception('x')", "SystemExit(3)", "KeyboardInterrupt()", "ImportError('x')"])
@pytest.mark.parametrize("where", ["__init__.py", "_bootstrap.py"])
def test_a_package_that_raises_does_not_stop_python(tmp_path: Path, failure: str, where: str) -> None:
    package = tmp_path / "broken" / "unsloth_hook"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / where).write_text(f"raise {failure}\n")
    report = start(make_venv(tmp_path / "venv", package.parent), EXAMPLE, noting(tmp_path, "next"))
    assert (report["ran"], report["finders"]) == (["next"], 0)
