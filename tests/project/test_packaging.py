"""What is in the wheel and the sdist, and what installing and uninstalling them does to an empty environment."""

import configparser
import importlib.metadata
import json
import os
import re
import shutil
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from helpers import PACKAGE, ROOT, make_venv, run_child, site_packages
from installed import build, pip
from packaging.requirements import Requirement

START = """
    import json, sys
    print(json.dumps({
        "finders": sum(type(finder).__module__.startswith("unsloth_hook") for finder in sys.meta_path),
        "ours": sorted(name for name in sys.modules if name.startswith("unsloth")),
    }))
"""
OFF = {"finders": 0, "ours": []}


def files_of(project: Path) -> set[str]:
    """Return the files below a folder, as relative POSIX paths, without what Python and other tools leave there."""
    found = (path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file())
    return {path for path in found if "__pycache__" not in path}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the build backend and nothing else, so that an empty environment can build without an index."""
    folder, todo, seen = tmp_path_factory.mktemp("backend"), ["hatchling", "editables"], set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            os.symlink(distribution.locate_file(top), folder / top)
        for line in distribution.requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(requirement.name)
    return folder


def start(python: Path, value: str | None = "1") -> dict[str, object]:
    done = run_child(START, python=python, env={"UNSLOTH_HOOK": value})
    assert done.stderr == ""
    report: dict[str, object] = json.loads(done.stdout)
    return report


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def metadata_of(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (entry,) = (entry for entry in archive.namelist() if entry.endswith(f".dist-info/{name}"))
        return archive.read(entry).decode()


def test_the_wheel_has_the_package_and_the_start_up_files_at_its_root(wheel: Path) -> None:
    code = {f"unsloth_hook/{path}" for path in files_of(PACKAGE) if not path.endswith((".pth", ".start"))}
    names = names_in(wheel)
    example = "unsloth_hook/command/sitecustomize_example/sitecustomize.py"
    added = {"unsloth_hook.pth", "unsloth_hook.start", example}
    assert {name for name in names if ".dist-info/" not in name} == {*code, *added}
    assert "unsloth_hook/py.typed" in names
    assert wheel.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in ("unsloth_hook.pth", "unsloth_hook.start"):
            assert archive.read(name) == (PACKAGE / name).read_bytes()


def test_the_sdist_has_the_whole_project(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    folders = ("unsloth_hook", "sitecustomize_example", "tests", "docs")
    expected = {f"{folder}/{path}" for folder in folders for path in files_of(ROOT / folder)}
    expected |= {".ci/run", ".gitignore", ".mkdocs.yml", ".pre-commit-config.yaml", "pyproject.toml"}
    expected |= {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md"}
    assert names - {"PKG-INFO"} == expected


def test_a_wheel_from_the_sdist_is_the_same(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    assert build("wheel", source, tmp_path / "built").read_bytes() == wheel.read_bytes()


def test_the_metadata_is_what_the_project_promises(wheel: Path) -> None:
    metadata = Parser().parsestr(metadata_of(wheel, "METADATA"))
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    assert {item.name for item in requirements if item.marker is None} == {"importlib-metadata", "rich", "typer"}
    for_trl = [item for item in requirements if item.marker and item.marker.evaluate({"extra": "trl"})]
    assert {item.name for item in for_trl} == {"torch", "transformers", "trl"}
    assert {part.operator for item in for_trl for part in item.specifier} == {">="}
    assert set(metadata.get_all("Provides-Extra", [])) == {"trl", "tests", "docs", "benchmarks"}
    assert (metadata["Requires-Python"], metadata["License-Expression"]) == (">=3.10", "Apache-2.0")


def test_the_version_is_in_one_place(wheel: Path) -> None:
    metadata = Parser().parsestr(metadata_of(wheel, "METADATA"))
    assert f'__version__ = "{metadata["Version"]}"' in (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    assert not re.search(r"^version\s*=", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_the_entry_points_lead_to_something(wheel: Path) -> None:
    parsed = configparser.ConfigParser()
    parsed.read_string(metadata_of(wheel, "entry_points.txt"))
    assert parsed["console_scripts"]["unsloth-hook"] == "unsloth_hook.command.program:app"
    targets = [target for section in parsed.sections() for target in parsed[section].values()]
    run_child(
        """
        import pkgutil, sys
        for target in sys.argv[1:]:
            pkgutil.resolve_name(target)
        """,
        args=targets,
    )


@pytest.mark.parametrize("form", ["wheel", "sdist", "editable"])
def test_installed_it_works_and_uninstalled_it_leaves_nothing(
    form: str, wheel: Path, sdist: Path, backend: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source"  # an editable install must not depend on what else is in the work tree
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    python = make_venv(tmp_path / "venv")
    before, stock, sources = files_of(tmp_path / "venv"), start(python), files_of(source)
    what: list[str | Path] = {"wheel": [wheel], "sdist": [sdist], "editable": ["-e", source]}[form]
    pip("install", "--no-deps", "--no-build-isolation", *what, python=python, backend=backend)

    added = files_of(tmp_path / "venv") - before
    root = site_packages(python).relative_to(tmp_path / "venv").as_posix()
    assert {f"{root}/unsloth_hook.pth", f"{root}/unsloth_hook.start"} <= added
    assert (f"{root}/unsloth_hook/__init__.py" in added) == (form != "editable")
    assert files_of(source) == sources  # no egg-info, no build folder
    assert start(python)["finders"] == start(python, "on")["finders"] != 0
    assert start(python, None) == start(python, "0") == OFF

    pip("uninstall", "--yes", "unsloth-hook", python=python)
    assert files_of(tmp_path / "venv") == before
    assert [path for path in site_packages(python).rglob("*") if "unsloth" in path.name] == []
    assert start(python) == stock == OFF


def test_its_folder_removed_and_the_start_up_files_left_is_silence(wheel: Path, tmp_path: Path) -> None:
    python = make_venv(tmp_path)
    pip("install", "--no-deps", wheel, python=python)
    assert start(python) != OFF
    shutil.rmtree(site_packages(python) / "unsloth_hook")
    assert start(python) == OFF


@pytest.mark.parametrize("extra", [pytest.param("", marks=pytest.mark.whole), "[trl]"])
def test_installing_changes_no_version_of_what_the_user_has(wheel: Path, extra: str) -> None:
    """pip's own plan for the environment of these tests, which has torch, transformers and TRL."""
    output = pip("install", "--dry-run", "--quiet", "--report", "-", f"{wheel}{extra}", python=Path(sys.executable))
    planned = {item["metadata"]["name"] for item in json.loads(output)["install"]}
    assert planned <= {"unsloth-hook"}
