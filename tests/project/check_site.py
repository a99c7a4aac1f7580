"""Check the built manual: every link in it leads to a page and an anchor, and nothing is taken from a network.

python tests/project/check_site.py site
"""

import html
import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, by element and attribute; a link is followed only by who clicks it.
FETCHED = {("img", "src"), ("link", "href"), ("script", "src"), ("source", "src"), ("iframe", "src")}

# What people type into the search field: each is the title of an entry, word for word.
MESSAGES = (
    "Can't pickle … it's not the same object",
    "No module named 'UnslothSFTTrainer'",
    "'GRPOConfig' object has no attribute 'unsloth_grpo_mini_batch'",
)


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[tuple[str, str, str]] = []
        self.anchors: set[str] = set()
        self.fences_left = False
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "link" and ("rel", "canonical") in attributes:
            return
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value or "")
            elif name in ("href", "src"):
                self.links.append((tag, name, value or ""))

    def handle_data(self, data: str) -> None:
        self.fences_left |= "```" in data


def problems(site: Path) -> Iterator[str]:
    """One line for each thing that is wrong with the built pages below a folder."""
    site = site.resolve()
    pages = {file: Page(file) for file in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no pages"
    for file, page in pages.items():
        where = file.relative_to(site)
        if page.fences_left:
            yield f"{where}: a block between ``` was not understood"
        for tag, name, link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if (tag, name) in FETCHED and parts.scheme != "data":
                    yield f"{where}: <{tag}> is fetched from the network: {link}"
                continue
            target = file
            if parts.path:
                # The page of what is not found is served at any depth, so that its links begin at the root.
                base = site if parts.path.startswith("/") else file.parent
                target = (base / unquote(parts.path).lstrip("/")).resolve()
                if target.is_dir():
                    target /= "index.html"
            if not target.is_file() or not target.is_relative_to(site):
                yield f"{where}: no such page: {link}"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{where}: no such anchor: {link}"


def unsearchable(site: Path) -> Iterator[str]:
    """One line for each message of `MESSAGES` that the manual's search knows no entry for."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    titles = {html.unescape(re.sub("<[^>]+>", "", entry["title"])) for entry in index["docs"]}
    yield from (f"search: no entry {message!r}" for message in MESSAGES if message not in titles)


def main() -> None:
    site = Path(sys.argv[1])
    found = [*problems(site), *unsearchable(site)]
    print("\n".join([*found, f"{len(found)} problems"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
