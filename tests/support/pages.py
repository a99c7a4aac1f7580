"""The pages that people read, taken apart: their fences, and the commands in them with the outputs shown."""

import re
from pathlib import Path
from typing import NamedTuple

from helpers import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "sitecustomize_example/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_FENCE = re.compile(r"^( *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^\1```$", re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')


class Fence(NamedTuple):
    """A block between two lines of three backticks."""

    page: Path
    line: int
    language: str
    attributes: dict[str, str]
    text: str


class Session(NamedTuple):
    """A command, and what the page shows as its output."""

    command: str
    output: str


def name(page: Path) -> str:
    """A page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def fences(page: Path) -> list[Fence]:
    """The fences of a page, in order."""
    source = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(source):
        language, _, rest = match["info"].strip().partition(" ")
        line = source.count("\n", 0, match.start()) + 1
        found.append(Fence(page, line, language, dict(_ATTRIBUTE.findall(rest)), match["text"]))
    return found


def outside_fences(page: Path) -> str:
    """A page's text without its fences."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def sessions(text: str) -> list[Session]:
    """The commands of a ```console block. A line that ends in a backslash goes on in the next."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"output before the first command: {parts[0]!r}"
    found = []
    for part in parts[1:]:
        command, output = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        found.append(Session(command, output))
    return found


def matches(shown: str, printed: str) -> bool:
    """Is this the output shown? `…` stands for anything; spaces at the ends of lines do not count."""
    pattern = "[^\\0]*?".join(re.escape(part) for part in _trimmed(shown).split("…"))
    return re.fullmatch(pattern, _trimmed(printed)) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
