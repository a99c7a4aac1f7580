"""``unsloth-hook inspect``. Everything heavy is imported by the function that needs it."""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Annotated, Any

import typer

from . import printing
from .file_arguments import AsJson, Paths, files

UNREADABLE = "unreadable"
_EXIT = {"portable": 0, "not portable": 1, "unsafe": 2, UNREADABLE: 2}
_STYLE = {"portable": "green", "stray": "yellow", "moved": "yellow", "removed": "yellow", "not portable": "yellow"}
# Below this many files a second process costs more than it saves.
_FILES_PER_PROCESS = 250
# A table of rich costs a millisecond a row, and folds what a pipe wants on one line.
_ROWS_FOR_RICH = 200


def inspect(
    paths: Paths,
    as_json: AsJson = False,
    fields: Annotated[str, typer.Option(metavar="NAME,NAME", help="Show only these fields (one column each).")] = "",
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=0, help="Processes; 0 chooses by the number of files.")] = 0,
) -> None:
    """Say what a training_args.bin holds, without running anything of it.

    Shows the class, every name in the pickle (portable, stray, moved, removed or unsafe), the values, and a verdict.
    Tokens are never shown.

    Exit code: 0 all portable, 1 some not portable, 2 some unsafe or unreadable.

    Examples:

        unsloth-hook inspect outputs/checkpoint-500

        unsloth-hook inspect runs/ --fields learning_rate,seed
    """
    found_files = files(paths)
    chosen = [name.strip() for name in fields.split(",") if name.strip()]
    gc.disable()  # trees of opcodes hold no cycles, and the collector would walk through them again and again
    # The table of many files has room for the chosen fields only.
    wanted = chosen if chosen or (len(found_files) > 1 and not as_json) else None
    found = _inspect_all(
        found_files, wanted, jobs or min(os.cpu_count() or 1, 1 + len(found_files) // _FILES_PER_PROCESS)
    )
    if as_json:
        printing.print_json(found)
    elif len(found) == 1:
        _show_one(found[0], chosen)
    else:
        _show_many(found, chosen)
    raise typer.Exit(max(_EXIT[each["verdict"]] for each in found))


def inspect_one(path: str, fields: list[str] | None = None) -> dict[str, Any]:
    """One file's report as plain values; a file that cannot be read has the verdict "unreadable" and an ``error``."""
    from ..checkpoints.errors import CheckpointError
    from ..checkpoints.inspection import inspect_checkpoint

    try:
        return inspect_checkpoint(path, fields).to_dict()
    except CheckpointError as error:
        return {"path": path, "verdict": UNREADABLE, "error": str(error)}


def _inspect_all(files: list[str], fields: list[str] | None, jobs: int) -> list[dict[str, Any]]:
    # A file system in memory belongs to this process.
    if jobs == 1 or len(files) == 1 or any(file.startswith("memory:") for file in files):
        return [inspect_one(file, fields) for file in files]
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(jobs) as pool:
        chunk = max(1, len(files) // (jobs * 2))
        return list(pool.map(inspect_one, files, [fields] * len(files), chunksize=chunk))


def _styled(word: str) -> Any:
    from rich.text import Text

    return Text(word, style=_STYLE.get(word, "bold red"))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text):,} characters)"


def _show_one(found: dict[str, Any], chosen: list[str]) -> None:
    from rich.text import Text

    console = printing.console()
    if "error" in found:
        console.print(Text.assemble(_styled(UNREADABLE), f": {found['error']}"))
        return
    console.print(Text.assemble(f"{found['path']} ({found['format']}): ", _styled(found["verdict"])))
    now = found["opens_as"]
    if found["config_class"]:
        console.print(
            Text(f"class {found['config_class']}" + (f", opens as {now}" if now != found["config_class"] else ""))
        )
    for note in found["notes"]:
        console.print(Text(f"note: {note}"))
    names = printing.table("name in the pickle", "verdict", "note")
    for each in found["globals"]:
        names.add_row(Text(each["name"]), _styled(each["verdict"]), Text(each["note"]))
    console.print(names)
    values = printing.table("field", "value")
    for name, value in found["fields"].items():
        if chosen or not name.startswith("_"):
            values.add_row(Text(name), Text(_short(value)))
    console.print(values)


def _show_many(found: list[dict[str, Any]], chosen: list[str]) -> None:
    rows = []
    for each in found:
        what = each.get("error", "").removeprefix(f"{each['path']}: ") or each.get("config_class", "")
        rows.append([each["path"], each["verdict"], what, *(each.get("fields", {}).get(name, "") for name in chosen)])
    columns = ["file", "verdict", "class", *chosen]
    if len(rows) <= _ROWS_FOR_RICH and sys.stdout.isatty():
        from rich.text import Text

        table = printing.table(*columns)
        for path, verdict, *more in rows:
            table.add_row(Text(_short(path)), _styled(verdict), *(Text(_short(value)) for value in more))
        printing.console().print(table)
    else:
        printing.print_columns([columns, *([_short(value) for value in row] for row in rows)])
    verdicts = [each["verdict"] for each in found]
    counts = (f"{verdicts.count(word)} {word}" for word in _EXIT if word in verdicts)
    typer.echo(f"{len(found)} files: " + ", ".join(counts))
