"""All benchmarks, in one command: ``python tests/benchmarks`` from the repository's root.

It measures, writes ``docs/performance.json``, and from that the tables and plots of ``docs/performance.md``.
"""

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parents[1])]

import page  # noqa: E402
import pyperf  # noqa: E402
import rows  # noqa: E402


def machine() -> dict[str, Any]:
    """What pyperf says of the machine, without names of it."""
    metadata = pyperf.Run([1.0], collect_metadata=True).get_metadata()
    return {
        "processor": metadata.get("cpu_model_name", platform.machine()),
        "processors": metadata.get("cpu_count"),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": metadata.get("load_avg_1min"),
        "trl": page.version("trl"),
        "torch": page.version("torch").partition("+")[0],
        "transformers": page.version("transformers"),
        **{
            name: page.version(name) for name in ("wrapt", "typeguard", "beartype", "ddtrace", "coverage", "setuptools")
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python tests/benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, only to see that it works (some minutes)")
    parser.add_argument("--only", metavar="SECTION", choices=list(rows.SECTIONS), action="append", help="measure these")
    parser.add_argument("--unsloth", metavar="PYTHON", default="", help="a python that has the real Unsloth")
    parser.add_argument("-o", "--output", type=Path, default=page.RESULTS, help="the JSON (default: %(default)s)")
    parser.add_argument("--page", action="store_true", help="measure nothing: only write the page from the JSON")
    options = parser.parse_args()
    if not options.page:
        measure(options)
    if options.output == page.RESULTS:
        page.write(json.loads(options.output.read_text(encoding="utf-8")))
    missed = [
        row for row in json.loads(options.output.read_text(encoding="utf-8"))["rows"] if page.reached(row) is False
    ]
    for row in missed:
        print(f"not reached: {row['what']}: {row['value']:.3g} {row['unit']}, to reach {row['reach']:.3g}")
    return 0


def measure(options: argparse.Namespace) -> None:
    chosen = options.only or list(rows.SECTIONS)
    kept: list[dict[str, Any]] = []
    if options.only and options.output.exists():  # the other sections stay as they were
        kept = [row for row in json.loads(options.output.read_text())["rows"] if row["run"] not in chosen]
    for name in chosen:
        started = time.perf_counter()
        measured = rows.SECTIONS[name](options.quick, options.unsloth)
        print(f"{name}: {len(measured)} rows in {time.perf_counter() - started:.0f} s", flush=True)
        kept += [{"run": name, **row} for row in measured]
        results = {"machine": machine(), "quick": options.quick, "rows": kept}
        options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
