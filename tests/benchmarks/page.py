"""The tables and plots of ``docs/performance.md``, from ``docs/performance.json``."""

import importlib.metadata
import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = DOCS / "performance.json"
PAGE = DOCS / "performance.md"
Row = dict[str, Any]


def version(name: str) -> str:
    """The version of a distribution, "" if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def reached(row: Row) -> bool | None:
    """Is the figure reached? None if the row has none."""
    if row["reach"] is None:
        return None
    return bool((abs(row["value"]) if row["what"] == "ours, off" else row["value"]) <= row["reach"])


def number(value: float, unit: str) -> str:
    """A number as the tables show it."""
    if unit == "ratio":
        return f"{value:.3f}" if value < 10 else f"{value:,.0f}"
    text = f"{value:,.2f}" if abs(value) < 10 else f"{value:,.0f}"
    return f"{text} {unit.replace('us', 'µs')}"


def table(results: dict[str, Any], section: str) -> str:
    """One section as a Markdown table."""
    lines = ["| what | against | median | middle half | to reach |", "| --- | --- | --- | --- | --- |"]
    for row in results["rows"]:
        if row["section"] == section:
            unit = row["unit"]
            told = {True: "reached", False: "**not reached**", None: ""}[reached(row)]
            aim = f"{number(row['reach'], unit)}: {told}" if told else ""
            spread = f"{number(row['low'], unit)} to {number(row['high'], unit)}" if row["samples"] > 1 else ""
            lines.append(f"| {row['what']} | {row['against']} | {number(row['value'], unit)} | {spread} | {aim} |")
    return "\n".join(lines)


def about(results: dict[str, Any]) -> str:
    """The machine, in one sentence."""
    told = results["machine"]
    names = ("trl", "transformers", "torch", "wrapt", "typeguard", "beartype", "ddtrace", "coverage", "setuptools")
    versions = ", ".join(f"{name} {told[name]}" for name in names if told.get(name))
    return (
        f"Measured on {told['system']} with {told['processors']} processors ({told['processor']}), "
        f"Python {told['python']}, {versions}; load {told['load']} when it ended, its own included."
    )


def render(text: str, results: dict[str, Any]) -> str:
    """The page with everything between its marks written anew."""

    def fill(match: "re.Match[str]") -> str:
        name = match[1]
        content = about(results) if name == "machine" else table(results, name)
        return f"<!-- from performance.json: {name} -->\n\n{content}\n\n<!-- end -->"

    return re.sub(r"<!-- from performance\.json: (\w+) -->.*?<!-- end -->", fill, text, flags=re.DOTALL)


def write(results: dict[str, Any]) -> None:
    """Write the page and its plots."""
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    for name in ("start", "imports", "swap", "use"):
        plot(results, name, DOCS / f"performance-{name}.svg")


def plot(results: dict[str, Any], section: str, file: Path) -> None:
    """The rows of one section as bars with their middle halves, and a line at the figure to reach."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "unsloth_hook"  # the same picture, the same file
    from matplotlib import pyplot

    rows = [row for row in results["rows"] if row["section"] == section and row["unit"] == UNIT[section]]
    rows = [row for row in rows if row["run"] != "unsloth" and not row["what"].startswith("find_spec: ours,")]
    figure, axes = pyplot.subplots(figsize=(7, 1 + 0.28 * len(rows)))
    low = [row["value"] - row["low"] for row in rows]
    high = [row["high"] - row["value"] for row in rows]
    colours = [
        "#2a6f97" if "ours" in row["what"] or section in ("swap", "use") or "unsloth" in row["what"] else "#b0b7bd"
        for row in rows
    ]
    axes.barh(
        [row["what"].removeprefix("find_spec: ") for row in rows],
        [row["value"] for row in rows],
        xerr=[[max(0, one) for one in low], [max(0, one) for one in high]],
        color=colours,
        ecolor="#555555",
    )
    for aim in {row["reach"] for row in rows if row["reach"] is not None and row["what"] != "ours, off"}:
        axes.axvline(aim, color="#c1121f", linestyle="--", linewidth=1)
    if section in ("start", "imports"):
        axes.set_xscale("symlog" if section == "start" else "log")
    axes.invert_yaxis()
    axes.set_xlabel(LABEL[section])
    figure.savefig(file, bbox_inches="tight", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


UNIT = {"start": "ms", "imports": "ns", "swap": "ratio", "use": "ratio"}
LABEL = {
    "start": "milliseconds more than a bare start (dashed: to reach)",
    "imports": "nanoseconds for a name that the finder does not want (dashed: to reach)",
    "swap": "time of the swap, as a part of TRL's own time to create the class (dashed: to reach)",
    "use": "patched against pristine (dashed: to reach)",
}

if __name__ == "__main__":
    write(json.loads(RESULTS.read_text(encoding="utf-8")))
