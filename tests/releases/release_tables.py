"""What became of each config in each release that was tried: `tests/data/releases.json`, and the tables in docs.

    python tests/releases/release_tables.py             # write the tables into docs/versions.md
    python tests/releases/release_tables.py --record    # first, put the installed TRL's configs on record

`nox -f tests/noxfile.py -s record` does the second for every release.
"""

import argparse
import json
import os
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS / "support")]

import child_configs  # noqa: E402

from unsloth_hook.releases import versions_tried  # noqa: E402

DATA = TESTS / "data" / "releases.json"
PAGE = TESTS.parent / "docs" / "versions.md"
BEGIN, END = "<!-- {} table: made by tests/releases/release_tables.py -->", "<!-- end of the {} table -->"
SIGNS = {"patched": "P", "inherited": "I", "left": "L"}


def installed_states() -> dict[str, str]:
    """Import every config module of the installed TRL under the hook: states by full class name."""
    import trl

    import unsloth_hook

    with unsloth_hook.install():
        child_configs.public_configs()
        status = unsloth_hook.status()["classes"]
    declared = child_configs.declared_configs(os.path.dirname(trl.__file__))
    return {name: status[name]["state"] for name in sorted(declared.values())}


def record() -> None:
    """Put the installed TRL into the data file, newest release first."""
    data = {**json.loads(DATA.read_text(encoding="utf-8")), version("trl"): installed_states()}
    newest_first = dict(sorted(data.items(), key=lambda item: versions_tried.release(item[0]), reverse=True))
    DATA.write_text(json.dumps(newest_first, indent=1) + "\n", encoding="utf-8")


def tables(data: dict[str, dict[str, str]]) -> dict[str, str]:
    """The tables of the page as Markdown: one row for each release, and one row for each config."""
    cells = versions_tried.cells()
    releases = [["TRL", "transformers", "configs", "patched", "inherited", "left"]]
    for trl, transformers in cells:
        count = Counter(data[trl].values())
        releases.append([trl, transformers, str(len(data[trl])), *(str(count[state]) for state in SIGNS)])
    columns = [trl for trl, _ in reversed(cells)]
    names = sorted({name for trl in columns for name in data[trl]}, key=lambda name: (".experimental." in name, name))
    configs = [["config", *columns]]
    for name in names:
        module, _, last = name.removeprefix("trl.").rpartition(".")
        configs.append([f"{module}.**{last}**", *(SIGNS.get(data[trl].get(name, ""), "") for trl in columns)])
    return {"releases": markdown(releases), "configs": markdown(configs)}


def markdown(rows: list[list[str]]) -> str:
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|" + " --- |" * len(rows[0]), *body])


def with_tables(page: str, data: dict[str, dict[str, str]]) -> str:
    """The page with its tables made anew."""
    for name, table in tables(data).items():
        begin, end = BEGIN.format(name), END.format(name)
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{PAGE.name} lacks the lines {begin!r} and {end!r}")
        page = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="put the installed TRL's configs on record first")
    if parser.parse_args().record:
        record()
    recorded = json.loads(DATA.read_text(encoding="utf-8"))
    if missing := [trl for trl, _ in versions_tried.cells() if trl not in recorded]:
        print(f"no record yet of TRL {', '.join(missing)}; docs/versions.md stays as it is")
    else:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), recorded), encoding="utf-8")
