"""``unsloth-hook run``: any command with the hook on, in it and in the processes that it starts."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer

from .. import switch
from . import enable, printing

SITECUSTOMIZE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_sitecustomize")
OF_PYTHON = ("-m", "-c")
SCRIPTS = (".py", ".pyw", ".pyz")


class CannotRun(Exception):
    """The command cannot be started; the exit codes are the shell's."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def run(
    context: typer.Context,
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="What to run, and its arguments.")],
) -> None:
    """Start any command with the hook on, in it and in every Python that it starts.

    A script (train.py) or -m MODULE is run by this Python; anything else is a
    program on PATH. The command takes the place of this process: arguments,
    streams, signals and exit code are its own. What comes after COMMAND is left
    untouched, --help included. UNSLOTH_HOOK=0 keeps the hook off here too.

    Exit code: the command's; 127 if it is not found, 126 if it cannot be
    executed, 2 if none is given.

    Examples:

        unsloth-hook run train.py --epochs 3

        unsloth-hook run -m my_package.train

        unsloth-hook run torchrun --nproc-per-node 2 train.py

        unsloth-hook run accelerate launch train.py

        unsloth-hook run trl sft --config c.yaml
    """
    if command[0] == "-h":
        typer.echo(context.get_help())
        return
    try:
        raise typer.Exit(become(command))
    except CannotRun as error:
        printing.fail(str(error), error.exit_code)


def become(arguments: Sequence[str]) -> int:
    """Become a command, with the hook on.

    Args:
        arguments: the command and its arguments. A Python script, ``-m module`` or ``-c code`` is run by this Python,
            anything else is looked up on PATH.

    Returns:
        The exit code, where the platform has no exec (Windows); elsewhere this process is the command from here on.

    Raises:
        CannotRun: the command is not found (127), is no program (126), or is incomplete (2).
    """
    command = command_line(arguments)
    environ = dict(os.environ)
    if switch.wanted("run"):
        environ = environment(command[0], environ)
    else:
        switch.say(f"UNSLOTH_HOOK={environ['UNSLOTH_HOOK']} keeps the hook off: {arguments[0]} runs without it")
    return as_child(command, environ) if os.name == "nt" else replace(command, environ)


def command_line(arguments: Sequence[str]) -> list[str]:
    """The program and its arguments, with this Python put before what only a Python can run.

    Raises:
        CannotRun: an option stands where the command should be, or a Python is needed and unknown.
    """
    first, *rest = arguments
    if first in OF_PYTHON and not rest:
        raise CannotRun(f"{first} needs an argument: unsloth-hook run {first} ...", 2)
    if first[:2] in OF_PYTHON or (
        first.lower().endswith(SCRIPTS) and (os.path.exists(first) or not shutil.which(first))
    ):
        if not sys.executable:
            raise CannotRun(f"this Python does not know where it is: unsloth-hook run python {first} ...", 127)
        return [sys.executable, *arguments]
    if first.startswith("-"):
        hint = "options of Python go after its name: unsloth-hook run python -u train.py"
        raise CannotRun(f"there is no option {first}, and the command comes next; {hint}", 2)
    return list(arguments)


def environment(program: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the program, and every Python that it starts, has the hook on.

    Args:
        program: path or name.
        environ: the present environment. An UNSLOTH_HOOK that is on already (`first`) stays as it is.
    """
    changed = dict(environ)
    changed["UNSLOTH_HOOK"] = environ.get("UNSLOTH_HOOK", "").strip() or "1"
    changed["UNSLOTH_HOOK_ROUTE"] = "run"
    path = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if SITECUSTOMIZE not in path and not _reads_our_line(program):
        changed["PYTHONPATH"] = os.pathsep.join([SITECUSTOMIZE, *path])
    _undo_coercion(changed)
    return changed


def _reads_our_line(program: str) -> bool:
    """Does this program start the Python of this environment, and does that find ``unsloth_hook.pth``?"""
    folder = os.path.dirname(shutil.which(program) or program)
    here = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    return folder in here and any(os.path.isfile(os.path.join(site, "unsloth_hook.pth")) for site in enable.folders())


def _undo_coercion(environ: dict[str, str]) -> None:
    # In the C locale Python sets LC_CTYPE (PEP 538) and UTF-8 mode; a child that finds LC_CTYPE set has another mode.
    ours = sys.flags.utf8_mode and "utf8" not in sys._xoptions and not environ.get("PYTHONUTF8")
    if ours and sys.version_info < (3, 15):  # from 3.15 on UTF-8 mode is the default (PEP 686)
        environ.pop("LC_CTYPE", None)


def replace(command: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Replace this process by the command (POSIX exec): same process id, streams, signals and exit code.

    Raises:
        CannotRun: it cannot be started.
    """
    for name in ("SIGPIPE", "SIGXFZ", "SIGXFSZ"):  # Python ignores these, and what is ignored stays so through exec
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], list(command), environ)
    except OSError as error:
        path = shutil.which(command[0])
        if error.errno == errno.ENOEXEC and path:  # no #! line: what a shell does, and execvp of C
            os.execve("/bin/sh", ["sh", path, *command[1:]], environ)
        raise _cannot_run(command[0], error) from error


def as_child(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command as a child of this process, for platforms without exec; signals are handed on to it.

    Returns:
        Its exit code; 128 + n if signal n ended it.

    Raises:
        CannotRun: it cannot be started.
    """
    try:
        child = subprocess.Popen([shutil.which(command[0]) or command[0], *command[1:]], env=environ)
    except OSError as error:
        raise _cannot_run(command[0], error) from error

    def hand_on(number: int, frame: Any) -> None:
        child.send_signal(number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a console sends Ctrl-C to both
    for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), hand_on)
    code = child.wait()
    return code if code >= 0 else 128 - code


def _cannot_run(program: str, error: OSError) -> CannotRun:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        if shutil.which(program):
            return CannotRun(f"{program}: the program that its first line (#!) names does not exist", 127)
        where = "" if os.path.dirname(program) else " on PATH"
        return CannotRun(f"{program}: command not found{where}", 127)
    return CannotRun(f"{program}: cannot be executed: {error.strerror}", 126)
