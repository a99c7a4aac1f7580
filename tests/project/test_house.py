"""The house stands: no circle of imports, arrows between the wings one way, each file in a row of CONTRIBUTING's table.

The imports are read from the sources by `docs/_site/house.py`, which draws them too: those in functions and those for
type checkers count like any other. Each check is a function, and is tried on a package that breaks it.
"""

import ast
import builtins
import graphlib
import re
import sys
from collections import Counter
from pathlib import Path

import pytest
from helpers import PACKAGE, ROOT

sys.path.insert(0, str(ROOT / "docs" / "_site"))

import house  # noqa: E402

# An arrow leads from a higher rank to a lower one; so there is none between the hook and the checkpoints.
RANKS = {"releases": 0, "checkpoints": 1, "hook": 1, "door": 2, "command": 3, "main": 4}

# What may be imported of the standard library when Python starts with the hook on, and which modules of ours are.
AT_START = {"sys", "os", "time", "_thread"}
GATE = {"unsloth_hook", "unsloth_hook._bootstrap", "unsloth_hook.activation", "unsloth_hook.targets"}
OURS_AT_START = {*GATE, "unsloth_hook.finder", "unsloth_hook.switch"}
BY_NAME = {"import_module", "__import__", "run_module", "resolve_name"}  # functions that import what a text names

GRAPH = house.read()


# The checks.


def circle(graph: house.Graph) -> list[str]:
    """The modules of one circle of imports, if there is any; the first is also the last."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def arrows_back(graph: house.Graph) -> list[str]:
    """The imports between wings that do not lead down."""
    return sorted(
        f"{start} ({house.wing(start)}) imports {end} ({house.wing(end)})"
        for start, ends in graph.items()
        for end in ends
        if house.wing(start) != house.wing(end) and RANKS[house.wing(start)] <= RANKS[house.wing(end)]
    )


def start_up(package: Path) -> dict[str, set[str]]:
    """The modules that a start with the hook on executes, each with what it imports then that is none of ours."""
    graph, files = house.read(package, at_once=True), house.modules(package)
    todo, found = [f"{house.DOOR}._bootstrap", f"{house.DOOR}.activation"], {}
    while todo:
        name = todo.pop()
        if name in found:
            continue
        is_package = files[name].name == "__init__.py"
        imports = house.imports(files[name].read_text(encoding="utf-8"), name, set(files), is_package)
        found[name] = {each.module for each in imports if each.at_once and each.module not in files}
        todo += graph[name] | ({name.rpartition(".")[0]} & set(files))  # what holds a module is imported before it
    return found


def imported_by_name(source: str) -> list[str]:
    """The lines with a module of ours as a text, in a file that imports by such texts; the door's may, once."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last_name(node.func) in BY_NAME]
    texts = [node for node in ast.walk(tree) if calls and _is_text(node, r"unsloth_hook(\.\w*)*")]
    parts = [part for call in calls for argument in call.args for part in ast.walk(argument)]
    texts += [part for part in parts if _is_text(part, r"\..*") or _last_name(part) in ("__name__", "__package__")]
    return [f"line {line}" for line in sorted({getattr(node, "lineno", 0) for node in texts})]


def _last_name(node: ast.AST) -> object:
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _is_text(node: ast.AST, pattern: str) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(re.fullmatch(pattern, node.value))


def without_getattr(source: str) -> str:
    """A module's source without its `__getattr__`."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if getattr(node, "name", None) != "__getattr__"]
    return ast.unparse(tree)


def homes(source: str) -> tuple[dict[str, str], dict[str, str]]:
    """The door's public names with their modules: as `_HOMES` has them, and as type checkers are told."""
    table, told = {}, {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and _last_name(node.targets[0]) == "_HOMES":
            table = ast.literal_eval(node.value)
        if isinstance(node, ast.If) and _last_name(node.test) == "TYPE_CHECKING":
            imports = [each for each in node.body if isinstance(each, ast.ImportFrom)]
            told = {alias.name: str(each.module) for each in imports for alias in each.names}
    return table, told


def errors(source: str) -> list[str]:
    """The classes of a file that are exceptions, by the names of their bases."""
    classes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]
    return [each.name for each in classes if any(_is_error(str(_last_name(base))) for base in each.bases)]


def _is_error(name: str) -> bool:
    known = getattr(builtins, name, None)
    by_kind = isinstance(known, type) and issubclass(known, BaseException)
    return by_kind or name.endswith(("Error", "Exception", "Warning"))


def rows(page: str) -> Counter[str]:
    """How often a table with the column "file" names each file, in that column."""
    found: Counter[str] = Counter()
    for table in re.findall(r"^\|[^\n]*\| file[^\n|]* \|\n\|[-| ]+\|\n((?:\|.*\n)+)", page, flags=re.MULTILINE):
        for row in table.splitlines():
            found.update(re.findall("`([^`]+)`", row.split("|")[-2]))
    return found


# The house as it is.


def test_there_is_no_circle() -> None:
    assert circle(GRAPH) == []


def test_arrows_between_wings_lead_one_way() -> None:
    assert arrows_back(GRAPH) == []


@pytest.mark.parametrize("name", ["finder", "targets"])
def test_the_engine_and_the_policy_import_nothing_of_ours(name: str) -> None:
    assert GRAPH[f"unsloth_hook.{name}"] == set()


def test_a_start_imports_as_little_as_it_can() -> None:
    found = start_up(PACKAGE)
    assert {name: foreign - AT_START for name, foreign in found.items() if foreign - AT_START} == {}
    assert set(found) == OURS_AT_START, "docs/performance.md names them"


@pytest.mark.parametrize("name", sorted(GRAPH))
def test_no_module_of_ours_is_imported_by_a_text(name: str) -> None:
    source = house.modules()[name].read_text(encoding="utf-8")
    assert imported_by_name(without_getattr(source) if name == house.DOOR else source) == []


def test_the_door_imports_what_it_tells_type_checkers() -> None:
    table, told = homes((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    assert table
    assert table == told


def test_the_errors_of_checkpoints_have_a_room_of_their_own() -> None:
    folder = PACKAGE / "checkpoints"
    found = {file.name: errors(file.read_text(encoding="utf-8")) for file in folder.rglob("*.py")}
    assert [name for name, classes in found.items() if classes] == ["errors.py"]


def test_the_picture_is_of_the_house_as_it_is() -> None:
    drawn = house.picture(GRAPH)
    assert house.PICTURE.read_text(encoding="utf-8") == drawn, "run: python docs/_site/house.py"


def test_each_file_has_one_place_in_the_table() -> None:
    files = (file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*") if file.is_file())
    expected = Counter(name for name in files if "__pycache__" not in name)
    assert rows((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")) == expected


# Each check sees what it is for.

# A package in which nothing is wrong, with a module or two in each wing.
SOUND = {
    "__init__.py": "if TYPE_CHECKING:\n    from .hooked import x\n    from .checkpoints.old import y",
    "__main__.py": "from unsloth_hook.command.program import app",
    "_bootstrap.py": "from . import targets\ndef start():\n    import re\n    from . import activation",
    "activation.py": "import os, sys\nif TYPE_CHECKING:\n    from typing import Any\nfrom .targets import x",
    "hooked.py": "from . import targets\nfrom .releases import history",
    "targets.py": "",
    "checkpoints/__init__.py": "",
    "checkpoints/errors.py": "class OurError(ValueError): ...",
    "checkpoints/old.py": "from ..releases.history import x\nfrom . import errors",
    "command/__init__.py": "",
    "command/program.py": "import unsloth_hook, unsloth_hook.hooked as x\nfrom ..checkpoints import old",
    "releases/__init__.py": "",
    "releases/history.py": "",
}
IN_A_FUNCTION = "def ask():\n    if ask:\n        {}"
IN_A_METHOD = "class A:\n    async def ask(self):\n        {}"
FOR_TYPE_CHECKERS = "import typing\nif typing.TYPE_CHECKING:\n    {}"
ANYWHERE = ("{}", "try:\n    {}\nexcept ImportError: ...", IN_A_FUNCTION, IN_A_METHOD, FOR_TYPE_CHECKERS)


def write(folder: Path, changed: dict[str, str]) -> Path:
    """The sound package with other sources for some of its files, which are added to what these are in it."""
    package = folder / "unsloth_hook"
    for name, source in {**SOUND, **{name: f"{SOUND.get(name, '')}\n{more}" for name, more in changed.items()}}.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source, encoding="utf-8")
    return package


def test_a_sound_house_passes(tmp_path: Path) -> None:
    package = write(tmp_path, {})
    graph = house.read(package)
    assert (circle(graph), arrows_back(graph)) == ([], [])
    assert set(start_up(package)) == GATE
    assert set().union(*start_up(package).values()) <= AT_START
    assert graph["unsloth_hook.command.program"] == {
        "unsloth_hook",
        "unsloth_hook.hooked",
        "unsloth_hook.checkpoints.old",
    }
    assert "Nothing leads back" in house.picture(graph)


@pytest.mark.parametrize("place", ANYWHERE)
@pytest.mark.parametrize(
    ("file", "statement", "length"),
    [
        ("targets.py", "from . import hooked", 2),
        ("targets.py", "from .hooked import x", 2),
        ("targets.py", "import unsloth_hook.hooked", 2),
        ("targets.py", "from unsloth_hook import targets", 1),
        ("targets.py", "from unsloth_hook.activation import x as y", 2),
        ("checkpoints/errors.py", "from . import old", 2),
        ("releases/history.py", "from .. import hooked", 2),
        ("releases/history.py", "from ..checkpoints.old import x", 2),
        ("hooked.py", "from . import __version__", 2),
        ("targets.py", "import unsloth_hook", 3),
    ],
)
def test_a_circle_is_seen(file: str, statement: str, length: int, place: str, tmp_path: Path) -> None:
    found = circle(house.read(write(tmp_path, {file: place.format(statement)})))
    assert found
    assert found[0] == found[-1]
    assert len(found) == length + 1


@pytest.mark.parametrize("place", ANYWHERE)
@pytest.mark.parametrize(
    ("file", "statement", "arrow"),
    [
        (
            "releases/history.py",
            "from .. import targets",
            "releases.history (releases) imports unsloth_hook.targets (hook)",
        ),
        (
            "releases/history.py",
            "from ..checkpoints import errors",
            "(releases) imports unsloth_hook.checkpoints.errors",
        ),
        ("targets.py", "from .checkpoints.errors import OurError", "(hook) imports unsloth_hook.checkpoints.errors"),
        ("checkpoints/errors.py", "from .. import targets", "(checkpoints) imports unsloth_hook.targets (hook)"),
        ("checkpoints/errors.py", "from .. import __version__", "(checkpoints) imports unsloth_hook (door)"),
        ("targets.py", "import unsloth_hook", "unsloth_hook.targets (hook) imports unsloth_hook (door)"),
        ("targets.py", "from .command import program", "(hook) imports unsloth_hook.command.program (command)"),
        ("__init__.py", "from .command.program import app", "unsloth_hook (door) imports unsloth_hook.command.program"),
        ("command/program.py", "from .. import __main__", "(command) imports unsloth_hook.__main__ (main)"),
    ],
)
def test_an_arrow_back_is_seen(file: str, statement: str, arrow: str, place: str, tmp_path: Path) -> None:
    graph = house.read(write(tmp_path, {file: place.format(statement)}))
    (found,) = arrows_back(graph)
    assert arrow in found
    with pytest.raises(ValueError, match="no place in the picture"):
        house.picture(graph)


@pytest.mark.parametrize(
    ("file", "source", "seen"),
    [
        ("_bootstrap.py", "import re", True),
        ("_bootstrap.py", "from importlib import util", True),
        ("targets.py", "try:\n    from typing import Any\nexcept ImportError: ...", True),
        ("targets.py", "class A:\n    import re", True),
        ("targets.py", "if TYPE_CHECKING:\n    import re\nelse:\n    import typing", True),
        ("__init__.py", "import re", True),
        ("activation.py", "from .checkpoints import errors\nimport os.path", True),
        ("targets.py", IN_A_FUNCTION.format("import re"), False),
        ("targets.py", "if TYPE_CHECKING:\n    import re", False),
        ("hooked.py", "import re", False),
    ],
)
def test_what_a_start_imports_is_seen(file: str, source: str, seen: bool, tmp_path: Path) -> None:
    found = start_up(write(tmp_path, {file: source}))
    assert bool(set().union(*found.values()) - AT_START) is seen


def test_a_wing_that_a_start_imports_from_is_seen(tmp_path: Path) -> None:
    found = start_up(write(tmp_path, {"targets.py": "from .releases.history import x"}))
    assert {"unsloth_hook.releases", "unsloth_hook.releases.history"} <= set(found)


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("importlib.import_module('unsloth_hook.targets')", True),
        ("name = 'unsloth_hook.targets'\nimport_module(name)", True),
        ("def ask(name):\n    return import_module(f'unsloth_hook.{name}')", True),
        ("import_module('.targets', 'unsloth_hook')", True),
        ("import_module('.targets', __package__)", True),
        ("import_module(__name__ + '.' + name)", True),
        ("__import__('unsloth_hook')", True),
        ("import_module('torch')", False),
        ("import_module(home.module)", False),
        ("sys.modules.get('unsloth_hook.targets')", False),
    ],
)
def test_an_import_by_a_text_is_seen(source: str, seen: bool) -> None:
    assert bool(imported_by_name(source)) is seen


def test_the_door_may_import_by_a_text_in_one_place() -> None:
    asked = "def {}(name):\n    return import_module(f'{{__name__}}.x')"
    assert imported_by_name(without_getattr(asked.format("__getattr__"))) == []
    assert imported_by_name(without_getattr(asked.format("__dir__"))) == ["line 2"]


def test_the_homes_are_read_from_the_door() -> None:
    source = "_HOMES = {'a': 'x.y'}\nif TYPE_CHECKING:\n    from .x.y import a\n    from .z import b"
    assert homes(source) == ({"a": "x.y"}, {"a": "x.y", "b": "z"})


@pytest.mark.parametrize(
    ("base", "seen"),
    [
        ("Exception", True),
        ("KeyboardInterrupt", True),
        ("errors.CheckpointError", True),
        ("UserWarning, Generic[T]", True),
        ("NamedTuple", False),
        ("pickle.Unpickler", False),
    ],
)
def test_an_error_out_of_its_room_is_seen(base: str, seen: bool) -> None:
    assert errors(f"def ask():\n    class A({base}): ...") == (["A"] if seen else [])


def test_the_rows_are_read_from_the_table() -> None:
    table = "| you want | file |\n| --- | --- |\n| `no` | `a.py`, `b/c.py` |\n| | `a.py` |\n"
    page = f"{table}\n| where | what |\n| --- | --- |\n| x | `d.py` |\n"
    assert rows(page) == Counter({"a.py": 2, "b/c.py": 1})


def test_a_picture_that_is_stale_is_seen(tmp_path: Path) -> None:
    before = house.picture(house.read(write(tmp_path, {})))
    assert house.picture(house.read(write(tmp_path, {}))) == before
    assert house.picture(house.read(write(tmp_path, {"activation.py": "from . import hooked"}))) != before
    assert house.picture(house.read(write(tmp_path, {"added.py": ""}))) != before
