"""`unsloth-hook doctor`: each way to break an environment has a finding of its own (issue 5, deliverable 3).

The built wheel is in an environment of its own; what is broken is that environment. Doctor examines it from the process
of the tests, which saves its own start; in CI the same tests also let it run within the broken environment.
"""

import contextlib
import ctypes
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import ROOT, clean_env, make_venv, run_child, site_packages
from installed import build, pip

from unsloth_hook.command import doctor_checks, doctor_facts
from unsloth_hook.command.program import app
from unsloth_hook.releases import versions_tried

ON = {"UNSLOTH_HOOK": "1"}
EXAMPLE = ROOT / "sitecustomize_example"
STRAY = ROOT / "tests" / "data"


class Place:
    """One environment with the wheel in it, and a working directory.

    Args:
        folder: an empty one, for both.
        wheel: what pip writes into site-packages; None for nothing.
        paths: more folders to import from.
        within: run doctor in this environment, not in the process of the tests.
    """

    def __init__(self, folder: Path, wheel: Path | None, *paths: Path, within: bool = False) -> None:
        self.within = within
        self.python = make_venv(folder / "venv", *paths)
        self.site = site_packages(self.python)
        self.cwd = folder / "cwd"
        self.cwd.mkdir()
        self.told: dict[str, Any] = {}
        if wheel:
            shutil.copytree(wheel, self.site, dirs_exist_ok=True)

    def doctor(
        self,
        *args: str | Path,
        env: dict[str, str | None] | None = None,
        within: bool = False,
        options: Sequence[str] = (),
    ) -> dict[str, Any]:
        """What doctor says of this environment, as JSON; the exit code and the remedies are looked at here.

        Args:
            args: of doctor; by default none within the environment, and its Python from outside.
            env: variables to set.
            within: run doctor in this environment, whatever the other tests do.
            options: of the interpreter within.
        """
        words = ["doctor", "--json", *map(str, args)]
        env = ON if env is None else env
        if within or self.within or options:
            run = run_child(
                args=["-m", "unsloth_hook", *words],
                options=options,
                python=self.python,
                cwd=self.cwd,
                check=False,
                env=env,
            )
            code, output = run.returncode, run.stdout
            assert code in (0, 1), run.stderr
        else:
            code, output = self.from_outside(words if args else [*words, str(self.python)], env)
        told: dict[str, Any] = json.loads(output)
        assert code == int(any(item["level"] == "problem" for item in told["findings"]))
        for item in told["findings"]:
            assert item["what"] and item["remedy"] and "\n" not in item["what"] + item["remedy"]
        self.told = told
        return told

    def from_outside(self, words: list[str], env: Mapping[str, str | None]) -> tuple[int, str]:
        """The exit code and the output of a command in this process, with the environment that a child would have."""
        wanted, output = clean_env(**env), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output):
            patch.chdir(self.cwd)
            for name in set(os.environ) - set(wanted):
                patch.delenv(name)
            for name, value in wanted.items():
                patch.setenv(name, value)
            with pytest.raises(SystemExit) as end:
                app(words, prog_name="unsloth-hook")
        return int(end.value.code or 0), output.getvalue()

    def problems(self, *args: str | Path, **options: Any) -> list[str]:
        told = self.doctor(*args, **options)
        return [item["name"] for item in told["findings"] if item["level"] == "problem"]

    def notes(self) -> list[str]:
        return [item["name"] for item in self.told["findings"] if item["level"] == "note"]

    def finding(self, name: str) -> dict[str, str]:
        (found,) = (item for item in self.told["findings"] if item["name"] == name)
        return dict(found)

    def fates(self, name: str) -> list[str]:
        return [item["fate"] for item in self.told["files"] if item["path"].endswith(name)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip writes into site-packages for the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    wheel = build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))
    pip("install", "--no-deps", "--no-compile", wheel, python=make_venv(folder))
    site = site_packages(folder / "bin" / "python")
    (site / "_paths.pth").unlink()
    return site


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The libraries of the tests' own Python without the hook, which may be installed there."""
    folder = tmp_path_factory.mktemp("libraries")
    for place in dict.fromkeys([sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]):
        for entry in os.scandir(place):
            if "unsloth" not in entry.name and not entry.name.endswith(".pth") and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry.path)
    return folder


@pytest.fixture(scope="module")
def without_trl(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What doctor itself needs, and no TRL, torch or transformers."""
    folder = tmp_path_factory.mktemp("without-trl")
    for entry in os.scandir(libraries):
        if not re.match(r"(trl|torch|transformers|accelerate)\b", entry.name):
            (folder / entry.name).symlink_to(os.path.realpath(entry.path))
    return folder


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.whole)], ids=["from outside", "within"])
def place(request: pytest.FixtureRequest, tmp_path: Path, installed: Path, libraries: Path) -> Place:
    return Place(tmp_path, installed, libraries, within=request.param)


def metadata(folder: Path, name: str, version: str) -> None:
    """An installed distribution of which there is only the metadata: a stand-in, since doctor reads nothing else."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def other_sitecustomize(folder: Path, text: str = "") -> Path:
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text)
    return folder


# --- nothing is wrong


def test_a_sound_environment_has_no_findings(place: Place) -> None:
    told = place.doctor(within=True)
    assert told["findings"] == []
    assert (told["active"], told["route"], told["variable"]) == (True, "env", "1")
    assert place.fates("unsloth_hook.pth") == ["ran"]
    (start,) = place.fates("unsloth_hook.start")
    assert start == ("not read before Python 3.15" if sys.version_info < (3, 15) else "ran")
    assert told["meta_path"][0] == "unsloth_hook.finder.PostImportFinder"
    assert told["trl_found_by"] == "unsloth_hook.finder.PostImportFinder"
    assert told["hook"]["file"] == str(place.site / "unsloth_hook" / "__init__.py")


def test_versions_are_those_of_the_metadata_beside_what_was_tried(place: Place) -> None:
    from importlib.metadata import version

    shown = {item["package"]: item for item in place.doctor()["versions"]}
    assert shown["trl"]["installed"] == version("trl")
    assert shown["torch"]["installed"] == version("torch")
    assert shown["python"]["installed"] == ".".join(map(str, sys.version_info[:3]))
    assert shown["unsloth"]["installed"] is None
    assert shown["trl"]["tried"] == list(versions_tried.tried("trl"))


@pytest.mark.parametrize("name", ["torch", "transformers", "trl"])
def test_nothing_of_trl_is_imported(place: Place, name: str) -> None:
    (place.site / name).mkdir()
    (place.site / name / "__init__.py").write_text(f"open({str(place.cwd / 'imported')!r}, 'w')")
    place.doctor()
    assert place.told["active"]
    assert not (place.cwd / "imported").exists()


def test_the_route_by_sitecustomize_and_by_enable(place: Place) -> None:
    (place.site / "unsloth_hook.pth").unlink()
    assert place.problems(env={"PYTHONPATH": str(EXAMPLE)}) == []
    assert place.told["route"] == "sitecustomize"
    assert place.fates("sitecustomize.py") == ["ran"]
    run_child(args=["-m", "unsloth_hook", "enable"], python=place.python)
    assert place.problems(env={}) == []
    assert place.told["route"] == "enable"
    assert place.fates("unsloth_hook_enabled.pth") == ["ran"]


# --- the variable


@pytest.mark.parametrize("value", [None, "", "  "])
def test_variable_unset(place: Place, value: str | None) -> None:
    assert place.problems(env={"UNSLOTH_HOOK": value}) == ["variable-unset"]
    assert not place.told["active"]
    assert place.fates("unsloth_hook.pth") == ["ran, and left the hook off"]
    assert "export UNSLOTH_HOOK=1" in place.finding("variable-unset")["remedy"]


@pytest.mark.parametrize("value", ["0", "off"])
def test_variable_off(place: Place, value: str) -> None:
    run_child(args=["-m", "unsloth_hook", "enable"], python=place.python)
    assert place.problems(env={"UNSLOTH_HOOK": value, "PYTHONPATH": str(EXAMPLE)}) == ["variable-off"]
    assert place.fates("unsloth_hook_enabled.pth") == ["ran, and left the hook off"]


def test_variable_with_a_value_that_is_not_understood(place: Place) -> None:
    assert place.problems(env={"UNSLOTH_HOOK": "ture"}) == ["variable-unknown"]
    assert "'ture'" in place.finding("variable-unknown")["what"]


def test_variable_with_a_misspelt_name(place: Place) -> None:
    assert place.problems(env={**ON, "UNSLOTH_HOOK_STRIKT": "1"}) == ["variable-name"]
    assert "UNSLOTH_HOOK_STRICT" in place.finding("variable-name")["remedy"]
    assert place.problems(env={**ON, "UNSLOTH_HOOK_STRICT": "1"}) == []


def test_first_without_unsloth(place: Place) -> None:
    assert place.problems(env={"UNSLOTH_HOOK": "first"}) == ["first-without-unsloth"]


# --- the files


def test_pth_deleted(place: Place) -> None:
    (place.site / "unsloth_hook.pth").unlink()
    (place.site / "unsloth_hook.start").unlink()
    assert place.problems() == ["pth-missing"]
    assert str(place.python) in place.finding("pth-missing")["remedy"]


def test_pth_where_python_does_not_read_it(place: Place, tmp_path: Path) -> None:
    """`pip install --target`: a folder on PYTHONPATH is no site-packages."""
    target = tmp_path / "target"
    target.mkdir()
    for entry in [*place.site.glob("unsloth_hook*")]:
        shutil.move(entry, target)
    assert place.problems(env={**ON, "PYTHONPATH": str(target)}) == ["pth-not-read"]
    assert place.fates("unsloth_hook.pth") == ["not read in this folder"]


def test_pth_that_is_not_as_installed(place: Place) -> None:
    (place.site / "unsloth_hook.pth").write_text("# emptied\n")
    assert place.problems() == ["pth-failed"]


def test_package_gone_and_pth_left(place: Place, tmp_path: Path, libraries: Path) -> None:
    other = Place(tmp_path / "other", None, libraries)
    shutil.copy(place.site / "unsloth_hook.pth", other.site)
    assert place.problems(other.python) == ["package-missing"]
    found = place.finding("package-missing")
    assert str(other.site / "unsloth_hook.pth") in found["what"]
    assert str(other.python) in found["remedy"]
    assert place.told["python"]["executable"] == str(other.python)
    assert place.fates("unsloth_hook.pth") == ["failed"]


def test_package_broken(place: Place, tmp_path: Path, installed: Path, libraries: Path) -> None:
    other = Place(tmp_path / "other", installed, libraries)
    (other.site / "unsloth_hook" / "activation.py").write_text("import nothing_of_that_name\n")
    assert place.problems(other.python) == ["package-broken", "start-up-message"]
    assert "nothing_of_that_name" in place.finding("package-broken")["what"]


def test_two_copies_of_the_hook(place: Place, installed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(installed / "unsloth_hook", copy / "unsloth_hook")
    assert place.problems(env={**ON, "PYTHONPATH": str(copy)}, within=True) == ["two-copies"]
    assert str(place.site) in place.finding("two-copies")["remedy"]


def test_editable_installs(place: Place, tmp_path: Path) -> None:
    (info,) = place.site.glob("unsloth_hook-*.dist-info")
    source = tmp_path / "source"
    (info / "direct_url.json").write_text(json.dumps({"url": source.as_uri(), "dir_info": {"editable": True}}))
    source.mkdir()
    assert place.problems() == []
    assert place.notes() == ["editable"]
    source.rmdir()
    assert place.problems() == ["editable-gone"]
    assert str(source) in place.finding("editable-gone")["what"]


def test_what_an_editable_install_left(place: Place, tmp_path: Path) -> None:
    left = place.site / "__editable__.trl-1.0.0.pth"
    left.write_text(f"{tmp_path / 'gone'}\n")
    assert place.problems() == ["editable-gone"]
    assert place.finding("editable-gone")["remedy"] == f"delete {left}"


def test_our_sitecustomize_shadowed(place: Place, tmp_path: Path) -> None:
    (place.site / "unsloth_hook.pth").unlink()
    theirs = other_sitecustomize(tmp_path / "theirs")
    path = f"{theirs}{os.pathsep}{EXAMPLE}"
    assert place.problems(env={"PYTHONPATH": path}) == ["sitecustomize-shadowed"]
    assert str(theirs / "sitecustomize.py") in place.finding("sitecustomize-shadowed")["what"]
    assert place.fates("sitecustomize.py") == ["ran", "did not run"]


def test_our_sitecustomize_shadowing(place: Place, tmp_path: Path) -> None:
    theirs = other_sitecustomize(tmp_path / "theirs")
    ours = other_sitecustomize(tmp_path / "ours", "from unsloth_hook._bootstrap import start\nstart('sitecustomize')\n")
    path = f"{ours}{os.pathsep}{theirs}"
    assert place.problems(env={"PYTHONPATH": path}) == ["sitecustomize-shadowing"]
    assert place.problems(env={"PYTHONPATH": f"{EXAMPLE}{os.pathsep}{theirs}"}) == []  # the example hands on
    assert place.fates("sitecustomize.py") == ["ran", "ran"]


def test_read_only_site_packages(place: Place) -> None:
    place.site.chmod(0o555)
    try:
        told = subprocess.run(
            [place.python, "-m", "unsloth_hook", "doctor", "--json"],
            env=clean_env(UNSLOTH_HOOK="1"),
            cwd=place.cwd,
            capture_output=True,
            preexec_fn=bound_by_modes if os.geteuid() == 0 else None,
        )
    finally:
        place.site.chmod(0o755)
    (found,) = json.loads(told.stdout)["findings"]
    assert (found["name"], found["level"], told.returncode) == ("site-packages-read-only", "note", 0)
    assert str(place.site) in found["what"]


def bound_by_modes() -> None:
    """Give up root's right to write everywhere (prctl PR_CAPBSET_DROP, CAP_DAC_OVERRIDE), for what is executed next."""
    assert ctypes.CDLL(None, use_errno=True).prctl(24, 1, 0, 0, 0) == 0


# --- options of the interpreter


@pytest.mark.parametrize("own", [False, True], ids=["examined", "own"])
def test_option_S(place: Place, libraries: Path, own: bool) -> None:
    env = {**ON, "PYTHONPATH": f"{place.site}{os.pathsep}{libraries}"}
    found = place.problems(env=env, options=["-S"]) if own else place.problems(place.python, "-S")
    assert found == ["option-S"]
    assert set(place.fates("unsloth_hook.pth")) == {"not read: -S"}
    assert place.told["python"]["options"] == ["-S"]
    if not own:
        assert place.problems(place.python, "-S", env={}) == ["variable-unset"]
        assert place.notes() == ["option-S"]


@pytest.mark.parametrize("own", [False, True], ids=["examined", "own"])
@pytest.mark.parametrize("option", ["-I", "-E"])
def test_options_that_ignore_PYTHONPATH(place: Place, option: str, own: bool) -> None:
    (place.site / "unsloth_hook.pth").unlink()
    env = {"PYTHONPATH": str(EXAMPLE)}
    found = place.problems(env=env, options=[option]) if own else place.problems(place.python, option, env=env)
    assert found == [f"option-{option[1]}"]
    assert place.fates("sitecustomize.py") == ["not read"]


@pytest.mark.parametrize("option", ["-I", "-E"])
def test_options_that_do_no_harm_are_a_note(place: Place, option: str) -> None:
    assert place.problems(place.python, option) == []
    assert place.notes() == [f"option-{option[1]}"]
    assert place.told["active"]


# --- the meta path and TRL

FINDER = """\
import sys

behind = list(sys.meta_path)[1:]


class Greedy:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if {stays} and sys.meta_path[0] is not cls:
            sys.meta_path.remove(cls)
            sys.meta_path.insert(0, cls)
        if name.startswith({names!r}):
            specs = (finder.find_spec(name, path, target) for finder in behind)
            return next((spec for spec in specs if spec), None)


sys.meta_path.insert(0, Greedy)
"""


def finder_in_front(place: Place, names: tuple[str, ...], stays: bool) -> None:
    """A finder that sitecustomize puts in front of the hook's; it answers for these names and does not ask the hook's.

    The hook's finder steps forward at the next import that reaches it, unless the other one does so as well.
    """
    (place.site / "greedy.py").write_text(FINDER.format(names=names, stays=stays))
    (place.site / "sitecustomize.py").write_text("import greedy\n")


IS_PATCHED = (
    "import trl, unsloth_hook; print(unsloth_hook.is_patched(trl.SFTConfig), unsloth_hook.status()['bypassed'])"
)


def test_finder_bypassed(place: Place) -> None:
    """A finder that answers for everything; that TRL's class is then stock is tried, too."""
    finder_in_front(place, ("",), stays=True)
    assert place.problems(within=True) == ["bypassed"]
    assert "greedy.Greedy" in place.finding("bypassed")["what"]
    small_trl(place.site)
    patched, _, bypassed = run_child(IS_PATCHED, python=place.python, env=ON).stdout.partition(" ")
    assert patched == "False"
    assert "trl.trainer.sft_config" in bypassed


def test_finder_in_front_that_does_not_keep_us_from_trl(place: Place) -> None:
    """The hook's finder steps forward; that a config is then patched is tried, too."""
    finder_in_front(place, ("trl",), stays=False)
    assert place.problems() == []
    assert place.notes() == ["finder-in-front"]
    assert place.told["meta_path"][0] == "greedy.Greedy"
    small_trl(place.site)
    assert run_child(IS_PATCHED, python=place.python, env=ON).stdout == "True {}\n"


def test_finder_removed(place: Place) -> None:
    (place.site / "zz.pth").write_text("import sys; del sys.meta_path[0], sys.meta_path[-1]\n")
    assert place.problems(within=True) == ["finder-removed"]


def test_trl_absent(tmp_path: Path, installed: Path, without_trl: Path) -> None:
    place = Place(tmp_path, installed, without_trl, within=True)
    assert place.problems() == ["trl-missing"]
    assert place.told["trl_found_by"] is None


def test_trl_shadowed_by_a_folder(place: Place) -> None:
    (place.cwd / "trl").mkdir()
    (place.cwd / "trl" / "__init__.py").write_text("")
    assert place.problems() == ["trl-shadowed"]
    assert str(place.cwd / "trl") in place.finding("trl-shadowed")["what"]


def small_trl(folder: Path) -> None:
    """A TRL of one config module, which imports something before it as the real one does: a stand-in that is quick."""
    trainer = folder / "trl" / "trainer"
    trainer.mkdir(parents=True)
    (trainer.parent / "__init__.py").write_text("import colorsys\nfrom trl.trainer.sft_config import SFTConfig\n")
    (trainer / "__init__.py").write_text("")
    (trainer / "sft_config.py").write_text(
        "import dataclasses\n"
        "class TrainingArguments: pass\n"
        "TrainingArguments.__module__ = 'transformers.training_args'\n"
        "@dataclasses.dataclass\n"
        "class SFTConfig(TrainingArguments):\n    max_length: int = 1\n"
    )


def test_trl_imported_before_the_hook(place: Place) -> None:
    small_trl(place.site)
    (place.site / "a_early.pth").write_text("import trl.trainer.sft_config\n")
    assert "late" in place.problems()


# --- versions


@pytest.mark.parametrize(("version", "where"), [("99.0.0", "newer"), ("0.1.0", "older")])
def test_trl_outside_what_was_tried(tmp_path: Path, installed: Path, libraries: Path, version: str, where: str) -> None:
    changed = tmp_path / "changed"
    changed.mkdir()
    for entry in os.scandir(libraries):
        if not entry.name.startswith("trl-"):
            (changed / entry.name).symlink_to(os.path.realpath(entry.path))
    metadata(changed, "trl", version)
    place = Place(tmp_path, installed, changed, within=True)
    assert place.problems() == ["trl-untried"]
    assert where in place.finding("trl-untried")["what"]
    assert "unsloth-hook verify" in place.finding("trl-untried")["remedy"]


def test_torch_that_was_not_tried_is_a_note(place: Place) -> None:
    metadata(place.site, "torch", "99.0")
    assert place.problems() == []
    assert place.notes() == ["torch-untried"]


def test_unsloth_older_than_its_fix_with_the_hook_off(place: Place) -> None:
    metadata(place.site, "unsloth", "2026.7.1")
    assert place.problems(env={}) == ["variable-unset", "unsloth-old"]
    assert "2026.8" in place.finding("unsloth-old")["remedy"]
    assert place.problems() == []
    (place.site / "unsloth-2026.7.1.dist-info").rename(place.site / "unsloth-2026.8.1.dist-info")
    (place.site / "unsloth-2026.8.1.dist-info" / "METADATA").write_text("Name: unsloth\nVersion: 2026.8.1\n")
    assert place.problems(env={}) == ["variable-unset"]


def test_versions_compare_as_numbers() -> None:
    assert versions_tried.release("2.13.0+cpu") == (2, 13, 0)
    assert versions_tried.release("unknown") == ()
    assert versions_tried.release("1.9.0") < versions_tried.release("1.16.0")
    assert (
        versions_tried.compare("trl", versions_tried.tried("trl")[0])
        == versions_tried.compare("trl", "1.0")
        == "within"
    )
    assert versions_tried.compare("python", f"{versions_tried.tried('python')[1].rpartition('.')[0]}.99") == "within"


# --- the working directory


def test_stray_checkpoint(place: Place) -> None:
    run = place.cwd / "outputs" / "checkpoint-1"
    run.mkdir(parents=True)
    state = "import sys,pickle,types;m=types.ModuleType('UnslothSFTTrainer');sys.modules[m.__name__]=m;"
    make = "m.UnslothSFTConfig=type('UnslothSFTConfig',(),{'__module__':m.__name__});c=m.UnslothSFTConfig();c.seed=1;"
    write = f"pickle.dump(c,open({str(run / 'training_args.bin')!r},'wb'),2)"
    run_child(args=["-c", state + make + write], python=place.python)
    assert place.problems() == ["stray-checkpoint"]
    assert "UnslothSFTTrainer" in place.finding("stray-checkpoint")["what"]
    assert place.finding("stray-checkpoint")["remedy"].startswith("unsloth-hook convert ")
    shutil.copytree(run, run.with_name("checkpoint-2"))
    assert place.problems() == ["stray-checkpoint"]
    assert "1 more" in place.finding("stray-checkpoint")["what"]
    assert place.finding("stray-checkpoint")["remedy"] == "unsloth-hook convert --in-place ."


def test_unsafe_checkpoint(place: Place) -> None:
    (place.cwd / "training_args.bin").write_bytes(b"cposix\nsystem\n(S'echo'\ntR.")
    assert place.problems() == ["unsafe-checkpoint"]


def test_the_search_has_its_limits(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    far = place.cwd / "a" / "b" / "c" / "d"
    for folder in (far, place.cwd / ".hidden", place.cwd / "node_modules"):
        folder.mkdir(parents=True)
        (folder / "training_args.bin").write_bytes(b"cposix\nsystem\n(S'echo'\ntR.")
    (place.cwd / "loop").symlink_to(place.cwd)
    assert place.problems() == []
    for number in range(50):
        (place.cwd / f"{number:02}.txt").write_text("")
    (place.cwd / "z").mkdir()
    (place.cwd / "z" / "training_args.bin").write_bytes(b"cposix\nsystem\n(S'echo'\ntR.")
    assert len(doctor_facts._search(str(place.cwd))[0]) == 1
    monkeypatch.setattr(doctor_facts, "MOST_ENTRIES", 40)
    assert doctor_facts._search(str(place.cwd))[0] == ()


@pytest.mark.parametrize("name", ["unsloth_compiled_cache/UnslothSFTTrainer.py", "UnslothGRPOTrainer.py"])
def test_compiled_cache(place: Place, name: str) -> None:
    file = place.cwd / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    assert place.problems() == ["compiled-cache"]
    metadata(place.site, "unsloth", "2026.10.9")
    assert place.problems() == []
    assert place.notes() == ["compiled-cache"]


# --- the command


def test_a_python_that_cannot_be_started(place: Place) -> None:
    for args, said in ((["/nowhere/python"], "cannot be started"), (["/bin/true"], "does not answer")):
        done = run_child(args=["-m", "unsloth_hook", "doctor", *args], python=place.python, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr and done.stderr.count("\n") == 1


def test_an_unknown_option_is_refused(place: Place) -> None:
    done = run_child(args=["-m", "unsloth_hook", "doctor", "--jsno"], python=place.python, check=False)
    assert done.returncode == 2
    assert "--jsno" in done.stderr


def test_modules_in_the_working_directory_do_not_disturb(place: Place) -> None:
    for name in ("json", "os", "site", "typing", "importlib"):
        (place.cwd / f"{name}.py").write_text("raise SystemExit('not me')")
    words = "from unsloth_hook.command import doctor_facts as e; print(e.examine(cwd=__import__('sys').argv[1]).active)"
    assert run_child(words, args=[str(place.cwd)], python=place.python, env=ON).stdout == "True\n"


def test_start_up_code_that_prints_does_not_disturb(place: Place) -> None:
    (place.site / "zz.pth").write_text("import sys; print('hello', end=''); print('oops', file=sys.stderr)\n")
    words = ["-m", "unsloth_hook", "doctor"]
    done = run_child(args=words, python=place.python, env=ON)
    assert "No problems" in done.stdout


@pytest.fixture
def terminal(place: Place) -> Callable[..., list[str]]:
    """The lines of doctor's tables on a terminal of 80 columns."""

    def show(**env: str) -> list[str]:
        pty = pytest.importorskip("pty", reason="platform: no pseudo-terminals")
        script = (
            "import pty, sys; code = pty.spawn([sys.executable, '-m', 'unsloth_hook', 'doctor']); sys.exit(code >> 8)"
        )
        del pty
        done = run_child(script, python=place.python, env={"COLUMNS": "80", **env}, check=False)
        assert done.returncode == 1
        return done.stdout.replace("\r", "").splitlines()  # with what selects colours

    return show


def test_readable_at_80_columns_and_without_colour(terminal: Callable[..., list[str]]) -> None:
    shown = terminal(NO_COLOR="1", TERM="xterm")
    assert not [line for line in shown if re.search(r"\x1b\[[0-9;]*3[0-7]", line)]
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown]
    assert [
        line for line in lines if len(line) > 80 and not line.startswith(("start-up file", "unsloth_hook", "Py"))
    ] == []
    assert lines[0] == "The hook is off."
    assert any("\x1b[1;31m" in line for line in terminal(TERM="xterm-256color"))


def test_piped_it_has_no_escapes_and_each_remedy_on_one_line(place: Place) -> None:
    told = place.doctor(env={})
    words = ["-m", "unsloth_hook", "doctor"]
    done = run_child(args=words, python=place.python, cwd=place.cwd, check=False, env={"LC_ALL": "C"})
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    for item in told["findings"]:
        assert item["name"] in done.stdout
        assert any(item["remedy"] in line for line in done.stdout.splitlines())
    assert done.stdout.endswith("1 problem, no notes.\n")


def test_every_check_is_in_the_table() -> None:
    module = vars(doctor_checks)
    checks = {
        value
        for name, value in module.items()
        if callable(value) and getattr(value, "__module__", "") == doctor_checks.__name__
    }
    named = {check for check in checks if "Iterator" in str(getattr(check, "__annotations__", {}).get("return"))}
    assert named == set(doctor_checks.CHECKS)


# --- the docs


def test_troubleshooting_lists_every_finding() -> None:
    source = (ROOT / "unsloth_hook" / "command" / "doctor_checks.py").read_text(encoding="utf-8")
    names = {*re.findall(r'(?:Finding\(|OPTIONS.*?\(|: \()\s*"([a-zA-Z-]+)"', source)}
    names |= {f"{package}-untried" for package in versions_tried.PACKAGES}
    assert {"variable-unset", "option-S", "bypassed", "off", "trl-untried"} <= names
    listed = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").partition("## What doctor finds")[2]
    rows = [row.split("|")[1] for row in listed.splitlines() if row.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == names


def test_limits_names_what_was_tried() -> None:
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    table = text.partition("## What was tried")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines() if row.startswith("| ")]
    order = ("trl", "transformers", "torch", "accelerate", "unsloth")
    assert rows[2:] == [[each.get(name, "-") for name in order] for each in versions_tried.TRIED]
    assert all(each["python"].startswith("3.11.") for each in versions_tried.TRIED)
