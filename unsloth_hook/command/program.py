"""The ``unsloth-hook`` program: a line for each command. None of them imports torch, TRL or transformers for itself."""

from __future__ import annotations

from typing import Any

import typer

from .convert import convert
from .doctor import doctor
from .enable import disable, enable
from .inspect import inspect
from .run import run
from .verify import verify

app = typer.Typer(
    name="unsloth-hook",
    help="Unsloth's extra fields on TRL's config classes, and checkpoints that open anywhere.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes around the help would cost as much time as everything else in it
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def main() -> None:
    """A callback keeps the sub-command's name even while there is only one."""


# What follows COMMAND or PYTHON is that program's own, also where it looks like an option of ours.
_OF_ANOTHER: dict[str, Any] = {"allow_interspersed_args": False, "ignore_unknown_options": True}

app.command()(inspect)
app.command()(convert)
app.command(context_settings={**_OF_ANOTHER, "help_option_names": ["--help"]}, no_args_is_help=True)(run)
app.command()(enable)
app.command()(disable)
app.command()(verify)
app.command(context_settings=_OF_ANOTHER)(doctor)
