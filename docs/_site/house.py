"""The house: which module of `unsloth_hook` imports which, read from the sources, and the picture of that.

`python docs/_site/house.py` writes `docs/images/house.svg`. The manual is built with a fresh one (`hooks.py`), and
`tests/project/test_house.py` takes the imports from here to see that arrows between the wings lead one way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "unsloth_hook"
PICTURE = ROOT / "docs" / "images" / "house.svg"
DOOR, MAIN = "unsloth_hook", "unsloth_hook.__main__"
FOLDERS = ("command", "checkpoints", "releases")  # each is a wing; what lies beside them is the hook

Graph = dict[str, set[str]]  # the full name of a module -> those of the modules of the package that it imports


class Import(NamedTuple):
    """One name of an import statement."""

    module: str  # in full; it may be none of ours
    at_once: bool  # executed whenever the module is: neither in a function nor for type checkers alone


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """The full name of each module of a package, and its file."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(source: str, module: str, known: set[str], is_package: bool = False) -> list[Import]:
    """What a module imports, anywhere in its source; what lies in a package is not said to import that package.

    Args:
        source: its text.
        module: its full name, from which relative imports start.
        known: the modules of the package: `from a import b` imports `a.b` if that is one of them, else `a`.
        is_package: is it an `__init__.py`?
    """
    found = []
    for node, at_once in _statements([ast.parse(source)]):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, at_once) for alias in node.names]
        else:
            start = module.split(".") if is_package else module.split(".")[:-1]
            base = start[: len(start) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                found.append(Import(full if full in known else origin, at_once))
    return found


def _statements(nodes: Iterable[ast.AST], at_once: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, at_once
        elif isinstance(node, ast.If) and _is_for_type_checkers(node.test):
            yield from _statements(node.body, False)
            yield from _statements(node.orelse, at_once)
        else:
            in_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from _statements(ast.iter_child_nodes(node), at_once and not in_function)


def _is_for_type_checkers(test: ast.expr) -> bool:
    return getattr(test, "id", None) == "TYPE_CHECKING" or getattr(test, "attr", None) == "TYPE_CHECKING"


def read(package: Path = PACKAGE, at_once: bool = False) -> Graph:
    """The imports among the modules of a package: all of them, or those that are executed `at_once`."""
    files = modules(package)
    graph: Graph = {}
    for name, file in files.items():
        found = imports(file.read_text(encoding="utf-8"), name, set(files), file.name == "__init__.py")
        graph[name] = {each.module for each in found if each.module in files and (each.at_once or not at_once)}
    return graph


def wing(module: str) -> str:
    """The wing of a module: a folder of the package, `hook` for what lies beside them, `door` or `main`."""
    if module in (DOOR, MAIN):
        return "door" if module == DOOR else "main"
    folder = module.split(".")[1]
    return folder if folder in FOLDERS else "hook"


def between_wings(graph: Graph) -> set[tuple[str, str]]:
    """The arrows between the wings: (the one that imports, the one that is imported)."""
    return {(wing(a), wing(b)) for a, targets in graph.items() for b in targets if wing(a) != wing(b)}


def levels(graph: Graph, members: set[str]) -> list[list[str]]:
    """Modules in levels: each lies above all of the others that it imports; the lowest level comes last."""
    heights: dict[str, int] = {}

    def height(module: str, above: tuple[str, ...] = ()) -> int:
        if module in above:
            raise ValueError(f"a circle of imports: {' > '.join([*above, module])}")
        if module not in heights:
            below = [height(each, (*above, module)) for each in sorted(graph[module] & members)]
            heights[module] = 1 + max(below, default=-1)
        return heights[module]

    floors: dict[int, list[str]] = {}
    for module in sorted(members):
        floors.setdefault(height(module), []).append(module)
    return [floors[each] for each in sorted(floors, reverse=True)]


# The picture. Its measures are those of the other two: drawn for the width of a phone, on a ground of its own, so that
# it is the same on a dark page. There is room for text in DejaVu, the widest of the fonts that a browser may take.
WIDTH, ROW, GAP = 360, 18, 7  # of the picture; from a module's name to the next; more between two levels
INK, GROUND, WHITE, GREEN, ORANGE = "#16302c", "#f4f8f7", "#fff", "#cdebe4", "#ffe3c2"
MONO = 'font-family="ui-monospace, \'DejaVu Sans Mono\', monospace" font-size="12"'


class Box(NamedTuple):
    """A wing in the picture."""

    left: int
    right: int
    fill: str
    says: tuple[str, ...]  # a title, and what the wing is
    code: str = ""  # what one types
    bulge: int = 0  # how far lines reach out from the names: to the left if negative
    beside: bool = False  # do the names stand beside what it says, or below?


STOREYS = (("main",), ("command",), ("door",), ("hook", "checkpoints"), ("releases",))  # from the top down
BOXES = {
    "main": Box(84, 276, WHITE, (), "python -m unsloth_hook"),
    "command": Box(
        12, 348, WHITE, ("command/", "the program:", "a file for each", "command, and", "what it needs"), "", 84, True
    ),
    "door": Box(84, 276, WHITE, ("the door",), "import unsloth_hook"),
    "hook": Box(32, 198, GREEN, ("the hook",), "unsloth_hook/*.py", -36),
    "checkpoints": Box(208, 348, GREEN, ("checkpoints/", "old files, safely"), "", 36),
    "releases": Box(12, 348, ORANGE, ("releases/", "what is known of", "TRL and the others"), "", 36, True),
}

# The places of the arrows between wings, from left to right; all lead straight down. There is no place for others.
ARROWS = {
    ("command", "releases"): 22,
    ("command", "hook"): 62,
    ("hook", "releases"): 115,
    ("door", "hook"): 140,
    ("main", "command"): 180,
    ("command", "door"): 180,
    ("door", "checkpoints"): 236,
    ("checkpoints", "releases"): 278,
    ("command", "checkpoints"): 308,
}


def picture(graph: Graph) -> str:
    """The house as SVG: a box for each wing, a thin line for each import within one, bold arrows between them.

    Raises:
        ValueError: a circle within a wing, or an arrow between wings for which the picture has no place.
    """
    arrows = between_wings(graph)
    for start, end in sorted(arrows - set(ARROWS)):
        raise ValueError(f"no place in the picture for an arrow from {start} to {end}")
    tops, bottoms, boxes, top = {}, {}, [], 96
    for storey in STOREYS:
        drawn = {name: _box(BOXES[name], top, levels(graph, _members(graph, name)), graph) for name in storey}
        lowest = max(bottom for _, bottom in drawn.values())
        for name, (parts, _) in drawn.items():
            box, tops[name], bottoms[name] = BOXES[name], top, lowest
            dashes = "" if box.bulge else ' stroke-dasharray="5 4"'  # a way in, and no wing
            boxes.append(
                f'  <rect x="{box.left}" y="{top}" width="{box.right - box.left}" height="{lowest - top}" rx="8" '
                f'fill="{box.fill}" stroke="{INK}" stroke-width="1.5"{dashes}/>'
            )
            boxes += parts
        top = lowest + 32
    below = {name: [end for end in BOXES if (name, end) in arrows] for name in BOXES}
    uses = "; ".join(f"{name} imports from {', '.join(ends)}" for name, ends in below.items() if ends)
    return "\n".join(
        [
            "<!-- made by docs/_site/house.py -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {lowest + 14}" role="img" '
            f'font-family="system-ui, \'DejaVu Sans\', sans-serif" font-size="15" fill="{INK}">',
            "  <title>The wings of unsloth_hook, and what they import</title>",
            "  <desc>The modules of each wing, above those that they import. "
            f"Between wings: {uses}. Nothing leads back.</desc>",
            f'  <rect width="{WIDTH}" height="{lowest + 14}" rx="10" fill="{GROUND}"/>',
            '  <text x="12" y="32" font-weight="700">Arrows lead one way: down</text>',
            '  <text x="12" y="55" font-size="13">bold: a wing imports from another</text>',
            '  <text x="12" y="75" font-size="13">thin: a module imports one below it</text>',
            *boxes,
            *(_arrow(ARROWS[each], bottoms[each[0]], tops[each[1]]) for each in sorted(arrows)),
            "</svg>\n",
        ]
    )


def _members(graph: Graph, name: str) -> set[str]:
    """The modules that are named in a wing's box; the box itself stands for the wing's `__init__`."""
    return {module for module in graph if wing(module) == name and module not in (DOOR, MAIN, f"{DOOR}.{name}")}


def _box(box: Box, top: int, floors: list[list[str]], graph: Graph) -> tuple[list[str], int]:
    """What is in a box, and where it ends."""
    parts, y = [], top + 5
    for number, text in enumerate(box.says):
        y += 19
        font = 'font-size="13"' if number else 'font-weight="700"'
        parts.append(f'  <text x="{box.left + 12}" y="{y}" {font}>{text}</text>')
    if box.code:
        y += 19
        parts.append(f'  <text x="{box.left + 12}" y="{y}" {MONO}>{box.code}</text>')
    ends = y + 13
    y = top + 24 if box.beside else ends + 13
    dots = box.right - box.bulge - 6 if box.bulge > 0 else box.left - box.bulge + 6
    places: dict[str, int] = {}
    for floor in floors:
        for module in floor:
            places[module], y = y - 4, y + ROW
        y += GAP
    tallest = max(places.values(), default=0) - min(places.values(), default=0)
    for module, start in places.items():
        for below in sorted(graph[module] & set(places)):
            reach = dots + round(box.bulge / 0.75 * (0.2 + 0.8 * (places[below] - start) / tallest), 1)
            parts.append(
                f'  <path d="M{dots} {start}C{reach} {start} {reach} {places[below]} {dots} {places[below]}" '
                f'fill="none" stroke="{INK}" stroke-opacity=".6"/>'
            )
    beside = f'x="{dots - 7}" text-anchor="end"' if box.bulge > 0 else f'x="{dots + 7}"'
    for module, place in places.items():
        parts.append(f'  <circle cx="{dots}" cy="{place}" r="2.5"/>')
        name = module.removeprefix(f"{DOOR}.").removeprefix(f"{wing(module)}.").partition(".")[0]
        parts.append(f'  <text {beside} y="{place + 4}" font-size="12">{name}</text>')
    return parts, max(ends, y - GAP - 6 if places else 0)


def _arrow(x: int, start: int, end: int) -> str:
    return (
        f'  <path d="M{x} {start + 1}V{end - 10}" stroke="{INK}" stroke-width="3.5"/>'
        f'<path d="M{x - 6.5} {end - 12}h13L{x} {end - 1}z"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture(read()), encoding="utf-8", newline="\n")
