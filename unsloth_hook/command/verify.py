"""``unsloth-hook verify``: shows what `verify_configs` found."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from . import printing


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

    from . import verify_configs

    results: list[dict[str, Any]] = []
    try:
        modules = verify_configs.config_modules()
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("verifying", total=len(modules))
            for found in verify_configs.verify(modules):
                results += found
                progress.advance(task)
    except verify_configs.CannotVerify as error:
        printing.fail(str(error), error.exit_code)
    if as_json:
        typer.echo(json.dumps(results, indent=2))
    else:
        _show(results)
    raise typer.Exit(int(any(found["result"] == verify_configs.FAILED for found in results)))


def _show(results: list[dict[str, Any]]) -> None:
    rows = [["result", "config", "of", "extras"]]
    for found in results:
        module, _, last = found["config"].rpartition(".")
        rows.append([found["result"], last, module.rpartition(".")[0], str(len(found["fields"]))])
    printing.print_columns(rows, ["", *(found["reason"] for found in results)])
    counts = {word: sum(found["result"] == word for found in results) for word in ("ok", "as stock", "failed")}
    typer.echo(f"{len(results)} configs: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count))
