"""Contracts 1 and 2 from without: how code in the wild uses a config, without and with the hook, and switched on late.

An idiom is a function in one of the files beside this one; its docstring says where it was seen. Equal means: all that
it returns, prints, warns and raises. What may differ has a row in docs/limits.md, and then differs by nothing but the
names of the extras and one more class of the same name.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import child_idioms
import pytest
import stock
from helpers import ROOT, once

FOLDER = Path(__file__).resolve().parent
contract = pytest.mark.contract

SCRIPT = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import child_idioms; child_idioms.main(sys.argv[1])"


def functions(file: Path) -> list[ast.FunctionDef]:
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return [each for each in body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]


IDIOMS = {each.name: each for name in child_idioms.FILES for each in functions(FOLDER / f"{name}.py")}


def first_cells(heading: str) -> list[tuple[str, list[str]]]:
    """The rows of the table under a heading of docs/limits.md: the first cell, and the others."""
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    section = re.split(r"\n##+ ", text.partition(f"\n{heading}\n")[2])[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return [(first, rest) for first, *rest in lines]


# An idiom a row, or, for those that differ only when the hook is switched on late, a reason a row.
EXCEPTED = {re.findall(r"`(.+?)`", first)[0]: rest for first, rest in first_cells("## Where a program can tell")}
EXCEPTED_WHOLLY, ONLY_LATE = (
    {name for first, _ in first_cells(heading) for name in re.findall(r"`(\w+)`", first)}
    for heading in ("### Where more than names differs", "### Switched on late")
)
EXCEPTED_LATE = EXCEPTED_WHOLLY | ONLY_LATE


@once
def observe() -> dict[str, Any]:
    """What all idioms told: on stock TRL, under the hook, and with the hook switched on after TRL was imported."""
    return {
        "stock": stock.run(SCRIPT, None, "from the start"),
        "hooked": stock.run(SCRIPT, "1", "from the start"),
        "late": stock.run(SCRIPT, None, "late"),
    }


def without_the_extras(value: Any) -> Any:
    """What is left of an output without what is named like an extra, and where no config is named twice in a row."""
    if isinstance(value, dict):
        return {name: without_the_extras(each) for name, each in value.items() if not stock.is_extra(name)}
    if isinstance(value, list):
        kept = [without_the_extras(each) for each in value if not names_an_extra(each)]
        twice = [
            isinstance(each, str) and each.endswith("Config") and [each] == kept[n - 1 : n]
            for n, each in enumerate(kept)
        ]
        return [each for each, again in zip(kept, twice, strict=True) if not again]
    return value


def names_an_extra(value: Any) -> bool:
    """Is this an extra's name, its option, or a line that begins with it, such as a parameter as text?"""
    return isinstance(value, str) and stock.is_extra(re.split(r"[:= ]", value)[0].removeprefix("--"))


@contract
@pytest.mark.parametrize("idiom", [name for name in IDIOMS if name not in EXCEPTED_WHOLLY])
def test_an_idiom_tells_what_it_tells_on_stock(idiom: str) -> None:
    compare(idiom, "hooked")


@contract
@pytest.mark.parametrize("idiom", [name for name in IDIOMS if name not in EXCEPTED_LATE])
def test_an_idiom_tells_the_same_if_the_hook_comes_late(idiom: str) -> None:
    compare(idiom, "late")


def differences(place: str, plain: Any, hooked: Any) -> Iterator[str]:
    """Where two outputs differ, one line each: what they have in common is long."""
    if type(plain) is not type(hooked) or not isinstance(plain, (dict, list)):
        if plain != hooked:
            yield f"{place}: {plain!r} != {hooked!r}"
    elif isinstance(plain, dict):
        if list(plain) != list(hooked):
            yield f"{place}: {list(plain)} != {list(hooked)}"
        for name in plain.keys() & hooked.keys():
            yield from differences(f"{place}.{name}", plain[name], hooked[name])
    else:
        if len(plain) != len(hooked):
            yield f"{place}: {plain} != {hooked}"
        for number, pair in enumerate(zip(plain, hooked, strict=False)):
            yield from differences(f"{place}[{number}]", *pair)


def compare(idiom: str, when: str) -> None:
    plain, hooked = observe()["stock"][idiom], observe()[when][idiom]
    if idiom in EXCEPTED:
        plain, hooked = without_the_extras(plain), without_the_extras(hooked)
    assert list(differences("", plain, hooked)) == []


@pytest.mark.parametrize("idiom", [*EXCEPTED, *sorted(EXCEPTED_WHOLLY)])
def test_a_row_of_the_manual_is_needed(idiom: str) -> None:
    assert observe()["stock"][idiom] != observe()["hooked"][idiom]
    assert idiom in EXCEPTED_WHOLLY or len(EXCEPTED[idiom]) == 3, "a row says what each of the two shows, and why"


@pytest.mark.parametrize("idiom", sorted(ONLY_LATE - {"what_the_body_has"}))  # needed up to TRL 1.8
def test_a_row_about_coming_late_is_needed(idiom: str) -> None:
    assert observe()["stock"][idiom] != observe()["late"][idiom]


def test_every_idiom_ran_and_says_where_it_was_seen() -> None:
    assert all(set(seen) == set(IDIOMS) for seen in observe().values())
    assert [name for name, function in IDIOMS.items() if not ast.get_docstring(function)] == []
