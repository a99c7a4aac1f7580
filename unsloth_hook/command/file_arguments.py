"""Which files ``inspect`` and ``convert`` mean by PATH..., and the options that they share."""

from __future__ import annotations

from typing import Annotated

import typer

from . import printing

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Files, folders (each training_args.bin below), or URLs.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON list instead of a table.")]


def below(path: str) -> list[str] | None:
    """The checkpoints in a folder, or None for anything that is no folder."""
    from ..checkpoints import paths

    try:
        if not paths.is_folder(path):
            return None
        found = paths.checkpoints_below(path)
    except OSError as error:
        printing.fail(str(error))
    if not found:
        printing.fail(f"{path}: no {paths.CHECKPOINT_NAME} in this folder or below it")
    return found


def files(paths: list[str]) -> list[str]:
    """Each file once, in the order in which they were given."""
    return list(dict.fromkeys(file for path in paths for file in (below(path) or [path])))
