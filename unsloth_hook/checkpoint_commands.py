"""``unsloth-hook inspect`` and ``unsloth-hook convert``. Everything heavy is imported by the function that needs it."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Files, folders (each training_args.bin below), or URLs.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON list instead of a table.")]
UNREADABLE = "unreadable"
_EXIT = {"portable": 0, "not portable": 1, "unsafe": 2, UNREADABLE: 2}
_STYLE = {"portable": "green", "stray": "yellow", "moved": "yellow", "removed": "yellow", "not portable": "yellow"}
# Below this many files a second process costs more than it saves.
_FILES_PER_PROCESS = 250
# A table of rich costs a millisecond a row, and folds what a pipe wants on one line.
_ROWS_FOR_RICH = 200


def register(app: typer.Typer) -> None:
    """Add the two commands to the program."""
    app.command(name="inspect")(inspect)
    app.command(name="convert")(convert)


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
    files = _files(paths)
    chosen = [name.strip() for name in fields.split(",") if name.strip()]
    gc.disable()  # trees of opcodes hold no cycles, and the collector would walk through them again and again
    # The table of many files has room for the chosen fields only.
    wanted = chosen if chosen or (len(files) > 1 and not as_json) else None
    found = _inspect_all(files, wanted, jobs or min(os.cpu_count() or 1, 1 + len(files) // _FILES_PER_PROCESS))
    if as_json:
        _print_json(found)
    elif len(found) == 1:
        _show_one(found[0], chosen)
    else:
        _show_many(found, chosen)
    raise typer.Exit(max(_EXIT[each["verdict"]] for each in found))


def convert(
    paths: Paths,
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="Write below this folder.")] = "",
    in_place: Annotated[bool, typer.Option("--in-place", help="Replace the files themselves.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
    as_json: AsJson = False,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Files checked at a time, one process each.")] = 1,
) -> None:
    """Rewrite training_args.bin files so that they open with only transformers and TRL.

    Every result is opened by a Python without the hook before it replaces anything. Portable files are left alone.

    Exit code: 0 all done, 1 some value could not be carried (the table says which), 2 some file could not be converted.

    Examples:

        unsloth-hook convert outputs/ --in-place

        unsloth-hook convert old/training_args.bin -o new/
    """
    if bool(output) == in_place and not (dry_run and not output):
        _fail("say where to write: -o DIR, or --in-place (or --dry-run to see what would be done)")
    pairs = [(file, file) for file in _files(paths)] if not output else _targets(paths, output)
    results = _Converter(pairs, dry_run, jobs, quiet=as_json).run()
    if as_json:
        _print_json(results)
    else:
        _show_conversions(results)
    failed = any(result["status"] == "failed" for result in results)
    interrupted = len(results) < len(pairs)
    raise typer.Exit(130 if interrupted else 2 if failed else int(any(result["not_carried"] for result in results)))


def _fail(message: str) -> None:
    typer.echo(f"unsloth-hook: {message}", err=True)
    raise typer.Exit(2)


def _print_json(values: list[dict[str, Any]]) -> None:
    # One line per file: json indents in Python, which for a thousand files takes longer than reading them.
    lines = (json.dumps(value, allow_nan=False) for value in values)
    typer.echo("[\n" + ",\n".join(lines) + "\n]")


def _below(path: str) -> list[str] | None:
    """The checkpoints in a folder, or None for anything that is no folder."""
    from unsloth_hook import paths as files

    try:
        if not files.is_folder(path):
            return None
        found = files.checkpoints_below(path)
    except OSError as error:
        _fail(str(error))
    if not found:
        _fail(f"{path}: no {files.CHECKPOINT_NAME} in this folder or below it")
    return found


def _files(paths: list[str]) -> list[str]:
    return list(dict.fromkeys(file for path in paths for file in (_below(path) or [path])))


def _targets(paths: list[str], output: str) -> list[tuple[str, str]]:
    from unsloth_hook import paths as files

    pairs = []
    for path in paths:
        below = _below(path)
        for file in below or [path]:
            name = files.relative(file, path) if below else file.replace(os.sep, "/").rpartition("/")[2]
            pairs.append((file, files.join(output, name)))
    taken: dict[str, str] = {}
    for source, target in pairs:
        if taken.setdefault(target, source) != source:
            _fail(f"{source} and {taken[target]} would both be written to {target}; convert them one by one")
    return list(dict.fromkeys(pairs))


def inspect_one(path: str, fields: list[str] | None = None) -> dict[str, Any]:
    """One file's report as plain values; a file that cannot be read has the verdict "unreadable" and an ``error``."""
    from unsloth_hook.checkpoint import CheckpointError
    from unsloth_hook.inspection import inspect_checkpoint

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


def _console() -> Any:
    from rich.console import Console

    # Into a file or a pipe, a row is a line.
    return Console(width=None if sys.stdout.isatty() else 10_000)


def _table(*columns: str, title: str = "") -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _styled(word: str) -> Any:
    from rich.text import Text

    return Text(word, style=_STYLE.get(word, "bold red"))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = text if text.isprintable() else repr(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text):,} characters)"


def _show_one(found: dict[str, Any], chosen: list[str]) -> None:
    from rich.text import Text

    console = _console()
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
    names = _table("name in the pickle", "verdict", "note")
    for each in found["globals"]:
        names.add_row(Text(each["name"]), _styled(each["verdict"]), Text(each["note"]))
    console.print(names)
    values = _table("field", "value")
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

        table = _table(*columns)
        for path, verdict, *more in rows:
            table.add_row(Text(_short(path)), _styled(verdict), *(Text(_short(value)) for value in more))
        _console().print(table)
    else:
        texts = [columns, *([_short(value) for value in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        for row in texts:
            typer.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    verdicts = [each["verdict"] for each in found]
    counts = (f"{verdicts.count(word)} {word}" for word in _EXIT if word in verdicts)
    typer.echo(f"{len(found)} files: " + ", ".join(counts))


class _Converter:
    """Converts many files with ``jobs`` checking children. A bad file does not stop the rest; Ctrl-C stops cleanly."""

    def __init__(self, pairs: list[tuple[str, str]], dry_run: bool, jobs: int, quiet: bool) -> None:
        self.pairs = pairs
        self.dry_run = dry_run
        self.jobs = min(jobs, len(pairs))
        self.quiet = quiet
        self.own = threading.local()
        self.verifiers: list[Any] = []

    def run(self) -> list[dict[str, Any]]:
        from concurrent.futures import ThreadPoolExecutor

        results = []
        pool = ThreadPoolExecutor(self.jobs)
        try:
            futures = [pool.submit(self.one, source, target) for source, target in self.pairs]
            for future in self.progress(futures):
                results.append(future.result())
        except KeyboardInterrupt:
            typer.echo("unsloth-hook: interrupted; every file is either as it was or converted whole", err=True)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for verifier in list(self.verifiers):
                verifier.close()
            pool.shutdown(wait=True)
        return results

    def progress(self, futures: list[Any]) -> Iterator[Any]:
        if self.quiet or not sys.stderr.isatty():
            yield from futures
            return
        from rich.console import Console
        from rich.progress import track

        yield from track(futures, "converting", console=Console(stderr=True))

    def one(self, source: str, target: str) -> dict[str, Any]:
        from unsloth_hook.checkpoint import CheckpointError
        from unsloth_hook.conversion import convert_checkpoint

        try:
            return convert_checkpoint(source, target, dry_run=self.dry_run, verifier=self.verifier()).to_dict()
        except CheckpointError as error:
            return {"source": source, "target": target, "status": "failed", "error": str(error), "not_carried": []}

    def verifier(self) -> Any:
        from unsloth_hook.verifier import Verifier

        if not hasattr(self.own, "verifier"):
            self.own.verifier = Verifier()
            self.verifiers.append(self.own.verifier)
        return self.own.verifier


def _show_conversions(results: list[dict[str, Any]]) -> None:
    from rich.text import Text

    table = _table("file", "result", "class")
    for result in results:
        if result["status"] == "failed":
            table.add_row(
                Text(result["source"]), _styled("failed"), Text(result["error"].removeprefix(f"{result['source']}: "))
            )
        elif result["status"] != "already portable":
            lines = [
                result["was"] + (f" -> {result['now']}" if result["now"] != result["was"] else ""),
                *result["notes"],
            ]
            lines += [f"not carried: {lost['where']} (was {lost['was']}; None now)" for lost in result["not_carried"]]
            table.add_row(Text(result["source"]), Text(result["status"]), Text("\n".join(lines)))
    console = _console()
    if table.row_count:
        console.print(table)
    counts: dict[str, int] = {}
    for result in results:
        counts[result["status"]] = counts.get(result["status"], 0) + 1
    console.print(f"{len(results)} files: " + ", ".join(f"{count} {status}" for status, count in counts.items()))
