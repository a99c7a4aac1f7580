"""`unsloth-hook enable` and `disable`: on by a file in site-packages (issue 5, item 2)."""

import ctypes
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import PACKAGE, clean_env, deadlock_ends, make_venv, run_child, site_packages
from test_run import LIBRARIES

NAME = "unsloth_hook_enabled.pth"
STATE = """
    import sys
    loaded = [name for name in sys.modules if name.startswith("unsloth")]
    finders = [finder for finder in sys.meta_path if type(finder).__module__ == "unsloth_hook.finder"]
    route = __import__("unsloth_hook").status()["route"] if finders else None
    print(len(finders), route, bool(loaded))
"""
ON, OFF = "1 enable True\n", "0 None False\n"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python with the package installed, as files in its site-packages, and the libraries of the tests' Python."""
    python = make_venv(tmp_path / "venv", LIBRARIES)
    install(site_packages(python))
    return python


def install(folder: Path) -> None:
    shutil.copytree(PACKAGE, folder / "unsloth_hook", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PACKAGE / "unsloth_hook.pth", folder)


def hook(python: Path, *args: str, env: dict[str, str | None] | None = None, **options: Any) -> tuple[int, str, str]:
    command = [str(python), "-m", "unsloth_hook", *args]
    environ = clean_env(**{"PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd="/", **options)
    return done.returncode, done.stdout, done.stderr


def state(python: Path, **env: str | None) -> str:
    done = run_child(STATE, python=python, env=env)
    return done.stdout + done.stderr


def test_enabled_it_is_on_without_a_variable_and_disabled_it_leaves_nothing(python: Path) -> None:
    folder = site_packages(python)
    before = sorted(path.name for path in folder.iterdir())
    assert state(python) == OFF
    code, out, err = hook(python, "enable")
    assert (code, err) == (0, "")
    assert str(folder / NAME) in out
    assert "pip uninstall leaves it" in out
    assert state(python) == ON
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, NAME])
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o644  # others must be able to read it
    code, out, _ = hook(python, "disable")
    assert (code, out) == (0, f"removed {folder / NAME}\ndisabled\n")
    assert state(python) == OFF
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_variable_has_the_last_word(python: Path) -> None:
    hook(python, "enable")
    for value in ("0", "false", "No", " OFF "):
        assert state(python, UNSLOTH_HOOK=value) == OFF
    assert state(python, UNSLOTH_HOOK="") == ON
    assert state(python, UNSLOTH_HOOK="1") == "1 env True\n"
    said = state(python, UNSLOTH_HOOK="banana")
    assert said.startswith("0 None True\n")
    assert said.count("banana") == 1


def test_twice_is_once(python: Path) -> None:
    file = site_packages(python) / NAME
    assert hook(python, "disable") == (0, f"not enabled: no {NAME} in this environment\n", "")
    hook(python, "enable")
    before = file.stat()
    code, out, _ = hook(python, "enable")
    assert (code, out.startswith("enabled already")) == (0, True)
    assert file.stat() == before
    file.write_text("import os  # from another version\n")
    assert hook(python, "enable")[1].startswith("enabled:")
    assert state(python) == ON
    assert "UNSLOTH_HOOK=0 is set here" in hook(python, "enable", env={"UNSLOTH_HOOK": "0"})[1]


def test_the_package_gone_and_the_file_left_is_silence(python: Path, tmp_path: Path) -> None:
    """`pip uninstall` removes what it has installed, and this file is not among that."""
    hook(python, "enable")
    shutil.rmtree(site_packages(python) / "unsloth_hook")
    done = run_child(STATE, python=python, options=["-W", "error", "-X", "dev"])
    assert (done.stdout, done.stderr) == (OFF, "")


@pytest.mark.parametrize("failure", ["SystemExit(3)", "KeyboardInterrupt()", "ImportError('x')"])
def test_a_package_that_raises_does_not_stop_python(failure: str, python: Path) -> None:
    hook(python, "enable")
    (site_packages(python) / "unsloth_hook" / "_bootstrap.py").write_text(f"raise {failure}\n")
    assert run_child("print('started')", python=python).stdout == "started\n"


def drop_root() -> None:
    """Without CAP_DAC_OVERRIDE permissions hold for root too; for other users this does nothing."""
    ctypes.CDLL(None).prctl(24, 1)  # PR_CAPBSET_DROP


@pytest.fixture
def read_only(python: Path) -> Iterator[Path]:
    site_packages(python).chmod(0o555)
    yield python
    site_packages(python).chmod(0o755)


def test_a_read_only_site_packages_says_so(read_only: Path) -> None:
    file = site_packages(read_only) / NAME
    code, out, err = hook(read_only, "enable", preexec_fn=drop_root)
    assert (code, out) == (1, "")
    assert err == (
        f"unsloth-hook: cannot write {file}: Permission denied. Without it: UNSLOTH_HOOK=1, or unsloth-hook run "
        "COMMAND.\n"
    )
    assert not list(file.parent.glob(f"{NAME}*"))
    file.parent.chmod(0o755)
    hook(read_only, "enable")
    file.parent.chmod(0o555)
    code, _, err = hook(read_only, "disable", preexec_fn=drop_root)
    assert (code, file.exists()) == (1, True)
    assert f"cannot remove {file}: Permission denied" in err


def test_a_full_disk_leaves_nothing(python: Path) -> None:
    """A stand-in for the disk: a limit on the size of files, which fails the write in the same way."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    code, _, err = hook(python, "enable", preexec_fn=limit)
    assert code == 1
    assert "cannot write" in err
    assert "File too large" in err
    assert not list(site_packages(python).glob(f"{NAME}*"))


def test_no_site_packages_says_so(python: Path, tmp_path: Path) -> None:
    package = tmp_path / "elsewhere"
    install(package)
    shutil.rmtree(site_packages(python))
    env: dict[str, str | None] = {"PYTHONPATH": f"{package}{os.pathsep}{LIBRARIES}"}
    code, out, err = hook(python, "enable", env=env)
    assert (code, out) == (1, "")
    assert f"has no site-packages: {site_packages(python)} is not a folder" in err


def test_a_package_that_is_not_installed_here_is_not_enabled_here(tmp_path: Path) -> None:
    """`pip install --target`: the line would find the package only where PYTHONPATH is set by chance."""
    python = make_venv(tmp_path / "venv", LIBRARIES)
    install(tmp_path / "target")
    code, out, err = hook(python, "enable", env={"PYTHONPATH": str(tmp_path / "target")})
    assert (code, out) == (1, "")
    assert "does not find unsloth_hook" in err
    assert str(tmp_path / "target" / "unsloth_hook") in err
    assert not (site_packages(python) / NAME).exists()


@pytest.fixture
def system_python(tmp_path: Path) -> tuple[Path, dict[str, str | None], Path]:
    """A Python that is no virtual environment, as a system's: this one, with a home made of links and PEP 668's marker.

    Returns:
        The interpreter, the environment that makes it one, and its site-packages.
    """
    real, home = Path(sysconfig.get_path("stdlib")), tmp_path / "home"
    library = home / "lib" / real.name
    library.mkdir(parents=True)
    for entry in real.iterdir():
        if entry.name != "site-packages":
            (library / entry.name).symlink_to(entry)
    (library / "EXTERNALLY-MANAGED").write_text("[externally-managed]\nError=Use the system's package manager.\n")
    packages = library / "site-packages"
    packages.mkdir()
    (packages / "libraries.pth").write_text(f"{LIBRARIES}\n")
    install(packages)
    interpreter = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    return interpreter, {"PYTHONHOME": str(home), "PYTHONNOUSERSITE": "1"}, packages


def test_a_system_python_is_left_alone_unless_one_insists(
    system_python: tuple[Path, dict[str, str | None], Path],
) -> None:
    python, env, packages = system_python
    code, out, err = hook(python, "enable", env=env)
    assert (code, out) == (1, "")
    assert f"PEP 668: {packages.parent / 'EXTERNALLY-MANAGED'}" in err
    assert "python -m venv" in err
    assert not (packages / NAME).exists()
    code, _, err = hook(python, "enable", "--break-system-packages", env=env)
    assert (code, err) == (0, "")
    assert (packages / NAME).exists()
    assert hook(python, "disable", env=env)[0] == 0
    (packages.parent / "EXTERNALLY-MANAGED").unlink()
    assert hook(python, "enable", env=env)[0] == 0


def test_a_user_install_is_enabled_where_it_is(
    system_python: tuple[Path, dict[str, str | None], Path], tmp_path: Path
) -> None:
    python, env, packages = system_python
    (packages.parent / "EXTERNALLY-MANAGED").unlink()
    for path in (packages / "unsloth_hook.pth", packages / "unsloth_hook"):
        shutil.move(path, tmp_path / path.name)
    base = tmp_path / "user"
    env = {"PYTHONHOME": env["PYTHONHOME"], "PYTHONUSERBASE": str(base)}
    user = base / "lib" / packages.parent.name / "site-packages"
    install(user)
    code, out, err = hook(python, "enable", env=env)
    assert (code, err) == (0, "")
    assert str(user / NAME) in out
    assert state(python, **env) == ON
    assert hook(python, "disable", env=env)[1].startswith(f"removed {user / NAME}\n")


def test_two_at_once_leave_one_whole_file(python: Path) -> None:
    command = [str(python), "-m", "unsloth_hook", "enable"]
    processes = [subprocess.Popen(command, env=clean_env(), stdout=subprocess.DEVNULL) for _ in range(4)]
    for process in processes:
        with deadlock_ends(process):
            assert process.wait() == 0
    assert [path.name for path in site_packages(python).glob("unsloth_hook_enabled*")] == [NAME]
    assert state(python) == ON
