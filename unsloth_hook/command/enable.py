"""``unsloth-hook enable`` and ``disable``: on by default in this environment, by a file in its site-packages."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
from typing import Annotated

import typer

from .. import switch
from . import printing

NAME = "unsloth_hook_enabled.pth"

# What `site` executes in every Python of the environment, with the package there or gone. A variable that is set to
# something else is the other line's business (unsloth_hook.pth). No .start file beside it (PEP 829): Python up to
# 3.17 executes this line silently, and a .start file would make noise once the package is uninstalled.
SOURCE = f"""\
import os
if os.environ.get('UNSLOTH_HOOK', '').strip().lower() in {("", *switch.ON)!r}:
    try:
        from unsloth_hook._bootstrap import start
        start('enable')
    except BaseException:
        pass
"""
LINE = f"import os; exec({SOURCE!r}, {{}})\n"

CHECK = "import sys; sys.exit(not any(type(finder).__module__ == 'unsloth_hook.finder' for finder in sys.meta_path))"
BREAK = "Even in a Python that belongs to the operating system (PEP 668)."


class CannotEnable(Exception):
    """The environment cannot be switched on or off; the text says why and what else to do."""


def enable(
    break_system_packages: Annotated[bool, typer.Option("--break-system-packages", help=BREAK)] = False,
) -> None:
    """Switch the hook on for every Python of this environment, without a variable.

    For notebook servers and images. Writes one file, unsloth_hook_enabled.pth,
    into site-packages, and proves that a new Python has the hook on.

    UNSLOTH_HOOK=0 still switches it off. `unsloth-hook disable` removes the file;
    `pip uninstall` does not, but without the package the file is silent.

    Exit code: 0 it is on, 1 it cannot be switched on (read-only, a system Python,
    no site-packages).
    """
    try:
        path, new = switch_on(break_system_packages=break_system_packages)
    except CannotEnable as error:
        printing.fail(str(error), 1)
    typer.echo(f"{'enabled' if new else 'enabled already'}: every Python of this environment starts with the hook on")
    typer.echo(f"by {path}")
    typer.echo("UNSLOTH_HOOK=0 still switches it off. unsloth-hook disable removes the file;")
    typer.echo("pip uninstall leaves it, and without the package it is silent.")
    if value := os.environ.get("UNSLOTH_HOOK", "").strip():
        typer.echo(f"note: UNSLOTH_HOOK={value} is set here and goes first")


def disable() -> None:
    """Undo `unsloth-hook enable`.

    The hook is then on only where UNSLOTH_HOOK, or another route, says so.

    Exit code: 0 it is off (also if it was before), 1 the file cannot be removed.
    """
    try:
        removed = switch_off()
    except CannotEnable as error:
        printing.fail(str(error), 1)
    for path in removed:
        typer.echo(f"removed {path}")
    typer.echo("disabled" if removed else f"not enabled: no {NAME} in this environment")


def folders() -> list[str]:
    """The site-packages folders that this Python reads, whether they exist or not."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return list(dict.fromkeys([sysconfig.get_path("purelib"), *site.getsitepackages(), *user]))


def enabled() -> list[str]:
    """The files, full paths, by which this environment is switched on."""
    return [path for folder in folders() if os.path.isfile(path := os.path.join(folder, NAME))]


def switch_on(*, break_system_packages: bool = False) -> tuple[str, bool]:
    """Switch the hook on in every Python of this environment. UNSLOTH_HOOK=0 still switches it off.

    The file appears whole or not at all, and stays only if a new Python proves to have the hook on.

    Args:
        break_system_packages: do so in a system Python too (as pip's option of that name).

    Returns:
        The file, and whether it is new.

    Raises:
        CannotEnable: the system's package manager owns this Python (PEP 668), there is no site-packages, it cannot be
            written, or a new Python does not find unsloth_hook.
    """
    path = os.path.join(_target(), NAME)
    if not break_system_packages:
        _refuse_system_python()
    if _content(path) == LINE:
        return path, False
    temporary = f"{path}.{os.getpid()}"  # not a name that `site` reads
    try:
        try:
            with open(temporary, "x", encoding="utf-8", newline="\n") as stream:
                stream.write(LINE)
            os.replace(temporary, path)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)
    except OSError as error:
        raise _cannot("write", path, error) from error
    _check(path)
    return path, True


def switch_off() -> list[str]:
    """Take the file away.

    Returns:
        The files that were removed; none if there was nothing.

    Raises:
        CannotEnable: one cannot be removed.
    """
    removed = []
    for path in enabled():
        try:
            os.unlink(path)
        except FileNotFoundError:  # another process was faster
            continue
        except OSError as error:
            raise _cannot("remove", path, error) from error
        removed.append(path)
    return removed


def _target() -> str:
    user = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    if user and os.path.isfile(os.path.join(user, "unsloth_hook.pth")):
        return user
    folder = sysconfig.get_path("purelib")
    if not os.path.isdir(folder):
        raise CannotEnable(f"this Python ({sys.executable}) has no site-packages: {folder} is not a folder. {INSTEAD}")
    return folder


def _refuse_system_python() -> None:
    # PEP 668: the marker holds for the interpreter that it lies beside, not for virtual environments made from it.
    marker = os.path.join(sysconfig.get_path("stdlib", sysconfig.get_default_scheme()), "EXTERNALLY-MANAGED")
    if sys.prefix == sys.base_prefix and os.path.isfile(marker):
        raise CannotEnable(
            f"this Python ({sys.executable}) belongs to the operating system (PEP 668: {marker}). Make a virtual "
            f"environment (python -m venv .venv), or insist with --break-system-packages. {INSTEAD}"
        )


def _content(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeError):
        return None


def _check(path: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UNSLOTH_HOOK", "PYTHONPATH"))}
    new = subprocess.run([sys.executable, "-c", CHECK], env=environ, capture_output=True, text=True)
    if new.returncode:
        os.unlink(path)
        said = f" It said: {new.stderr.strip()}" if new.stderr.strip() else ""
        raise CannotEnable(
            f"a new Python of this environment ({sys.executable}) does not find unsloth_hook, which runs from "
            f"{os.path.dirname(os.path.abspath(switch.__file__))} here; {path} is removed again. Install it in this "
            f"environment (pip install unsloth-hook).{said} {INSTEAD}"
        )


INSTEAD = "Without it: UNSLOTH_HOOK=1, or unsloth-hook run COMMAND."


def _cannot(what: str, path: str, error: OSError) -> CannotEnable:
    return CannotEnable(f"cannot {what} {path}: {error.strerror}. {INSTEAD}")
