"""The ``unsloth-hook`` program. Each module of commands registers its own; none imports torch, TRL or transformers."""

from __future__ import annotations

import typer

from unsloth_hook import checkpoint_commands, doctor_command, launch_commands

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


for commands in (checkpoint_commands, launch_commands, doctor_command):
    commands.register(app)
