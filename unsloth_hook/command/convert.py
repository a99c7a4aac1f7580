"""``unsloth-hook convert``. Everything heavy is imported by the function that needs it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from . import printing
from .file_arguments import AsJson, Paths, below, files


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
        printing.fail("say where to write: -o DIR, or --in-place (or --dry-run to see what would be done)")
    pairs = [(file, file) for file in files(paths)] if not output else _targets(paths, output)
    results = _Converter(pairs, dry_run, jobs, quiet=as_json).run()
    if as_json:
        printing.print_json(results)
    else:
        _show_conversions(results)
    failed = any(result["status"] == "failed" for result in results)
    interrupted = len(results) < len(pairs)
    raise typer.Exit(130 if interrupted else 2 if failed else int(any(result["not_carried"] for result in results)))


def _targets(paths: list[str], output: str) -> list[tuple[str, str]]:
    from ..checkpoints.paths import join, relative

    pairs = []
    for path in paths:
        found = below(path)
        for file in found or [path]:
            name = relative(file, path) if found else file.replace(os.sep, "/").rpartition("/")[2]
            pairs.append((file, join(output, name)))
    taken: dict[str, str] = {}
    for source, target in pairs:
        if taken.setdefault(target, source) != source:
            printing.fail(f"{source} and {taken[target]} would both be written to {target}; convert them one by one")
    return list(dict.fromkeys(pairs))


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
            printing.say("interrupted; every file is either as it was or converted whole")
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
        from ..checkpoints.conversion import convert_checkpoint
        from ..checkpoints.errors import CheckpointError

        try:
            return convert_checkpoint(source, target, dry_run=self.dry_run, verifier=self.verifier()).to_dict()
        except CheckpointError as error:
            return {"source": source, "target": target, "status": "failed", "error": str(error), "not_carried": []}

    def verifier(self) -> Any:
        from ..checkpoints.stock_python import Verifier

        if not hasattr(self.own, "verifier"):
            self.own.verifier = Verifier()
            self.verifiers.append(self.own.verifier)
        return self.own.verifier


def _show_conversions(results: list[dict[str, Any]]) -> None:
    from rich.text import Text

    table = printing.table("file", "result", "class")
    for result in results:
        if result["status"] == "failed":
            table.add_row(
                Text(result["source"]),
                Text("failed", "bold red"),
                Text(result["error"].removeprefix(f"{result['source']}: ")),
            )
        elif result["status"] != "already portable":
            lines = [
                result["was"] + (f" -> {result['now']}" if result["now"] != result["was"] else ""),
                *result["notes"],
            ]
            lines += [f"not carried: {lost['where']} (was {lost['was']}; None now)" for lost in result["not_carried"]]
            table.add_row(Text(result["source"]), Text(result["status"]), Text("\n".join(lines)))
    console = printing.console()
    if table.row_count:
        console.print(table)
    counts: dict[str, int] = {}
    for result in results:
        counts[result["status"]] = counts.get(result["status"], 0) + 1
    console.print(f"{len(results)} files: " + ", ".join(f"{count} {status}" for status, count in counts.items()))
