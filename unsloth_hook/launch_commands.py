"""``unsloth-hook run``, ``enable``, ``disable`` and ``verify``. Each imports what it needs when it is called."""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer

BREAK = "Even in a Python that belongs to the operating system (PEP 668)."


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    # What follows COMMAND is the command's own, -h and --help and -- too.
    untouched = {"allow_interspersed_args": False, "ignore_unknown_options": True, "help_option_names": ["--help"]}
    app.command(name="run", context_settings=untouched, no_args_is_help=True)(run)
    app.command(name="enable")(enable)
    app.command(name="disable")(disable)
    app.command(name="verify")(verify)


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
    from unsloth_hook import running

    if command[0] == "-h":
        typer.echo(context.get_help())
        return
    try:
        raise typer.Exit(running.run(command))
    except running.CannotRun as error:
        _say(str(error))
        raise typer.Exit(error.exit_code) from error


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
    from unsloth_hook import enabling

    try:
        path, new = enabling.enable(break_system_packages=break_system_packages)
    except enabling.CannotEnable as error:
        _say(str(error))
        raise typer.Exit(1) from error
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
    from unsloth_hook import enabling

    try:
        removed = enabling.disable()
    except enabling.CannotEnable as error:
        _say(str(error))
        raise typer.Exit(1) from error
    for path in removed:
        typer.echo(f"removed {path}")
    typer.echo("disabled" if removed else f"not enabled: no {enabling.NAME} in this environment")


def verify(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead of a table.")] = False,
) -> None:
    """Prove that every config of the installed TRL opens where there is no hook.

    Imports each of them under the hook, saves one with its extra fields set, and
    opens the file in a Python in which the hook is blocked.

    Exit code: 0 all open, 1 one does not (or UNSLOTH_HOOK=0 keeps the hook off),
    2 there is no TRL.
    """
    from rich.console import Console
    from rich.progress import Progress

    from unsloth_hook import verifying

    results: list[dict[str, Any]] = []
    try:
        modules = verifying.config_modules()
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("verifying", total=len(modules))
            for found in verifying.verify(modules):
                results += found
                progress.advance(task)
    except verifying.CannotVerify as error:
        _say(str(error))
        raise typer.Exit(error.exit_code) from error
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    else:
        _show(results)
    raise typer.Exit(int(any(found["result"] == verifying.FAILED for found in results)))


def _show(results: list[dict[str, Any]]) -> None:
    rows = [("result", "config", "of", "extras")]
    for found in results:
        module, _, last = found["config"].rpartition(".")
        rows.append((found["result"], last, module.rpartition(".")[0], str(len(found["fields"]))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, reason in zip(rows, ["", *(found["reason"] for found in results)], strict=True):
        typer.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        if reason:
            typer.echo(f"  {reason}")
    counts = {word: sum(found["result"] == word for found in results) for word in ("ok", "as stock", "failed")}
    typer.echo(f"{len(results)} configs: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count))


def _say(message: str) -> None:
    typer.echo(f"unsloth-hook: {message}", err=True)
