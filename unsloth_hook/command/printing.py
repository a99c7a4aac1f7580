"""How the commands print: tables, JSON, and one line on standard error for what went wrong."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def say(message: str) -> None:
    """One line on standard error."""
    typer.echo(f"unsloth-hook: {message}", err=True)


def fail(message: str, exit_code: int = 2) -> NoReturn:
    """Say why, and end the command."""
    say(message)
    raise typer.Exit(exit_code)


def print_json(values: list[dict[str, Any]]) -> None:
    """A JSON list with one line for each value: json indents in Python, which for a thousand files takes seconds."""
    lines = (json.dumps(value, allow_nan=False) for value in values)
    typer.echo("[\n" + ",\n".join(lines) + "\n]")


def console() -> Console:
    """A terminal as wide as it is; into a file or a pipe, a row is a line."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 10_000)


def table(*columns: str) -> Table:
    """An empty table of rich's that folds what does not fit."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def print_columns(rows: list[list[str]], notes: list[str] | None = None) -> None:
    """Rows in columns, without rich: a millisecond less for each. A note, if it has one, comes below its row."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, note in zip(rows, notes or [""] * len(rows), strict=True):
        typer.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        if note:
            typer.echo(f"  {note}")
