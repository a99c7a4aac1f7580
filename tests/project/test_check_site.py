"""The checker of the built manual sees what it is for."""

import html
import json
from pathlib import Path

import check_site
import pytest

GOOD = (
    '<h1 id="top">A</h1> <a href="b/">B</a> <a href="b/#here">B</a> <a href="#top">up</a> <a href="https://x.y">x</a>'
)


def site(folder: Path, page: str) -> list[str]:
    (folder / "b").mkdir()
    (folder / "b" / "index.html").write_text('<p id="here">', encoding="utf-8")
    (folder / "index.html").write_text(page, encoding="utf-8")
    return list(check_site.problems(folder))


def test_a_sound_site_has_no_problems(tmp_path: Path) -> None:
    assert site(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("piece", "problem"),
    [
        ("<p>```console a-b</p>", "a block between ``` was not understood"),
        ('<a href="c/">', "no such page: c/"),
        ('<a href="../outside.html">', "no such page: ../outside.html"),
        ('<a href="b/#nowhere">', "no such anchor: b/#nowhere"),
        ('<a href="#nowhere">', "no such anchor: #nowhere"),
        ('<img src="none.svg">', "no such page: none.svg"),
        ('<script src="https://x.y/z.js">', "<script> is fetched from the network: https://x.y/z.js"),
        ('<link rel="stylesheet" href="//x.y/z.css">', "<link> is fetched from the network: //x.y/z.css"),
    ],
)
def test_a_fault_is_named_with_its_page(tmp_path: Path, piece: str, problem: str) -> None:
    assert site(tmp_path, GOOD + piece) == [f"index.html: {problem}"]


def test_a_message_that_the_search_does_not_know_is_named(tmp_path: Path) -> None:
    titles = [f"<code>{html.escape(message)}</code>" for message in check_site.MESSAGES]
    (tmp_path / "search").mkdir()
    index = tmp_path / "search" / "search_index.json"
    index.write_text(json.dumps({"docs": [{"title": title} for title in titles]}), encoding="utf-8")
    assert list(check_site.unsearchable(tmp_path)) == []
    index.write_text(json.dumps({"docs": [{"title": title} for title in titles[1:]]}), encoding="utf-8")
    assert list(check_site.unsearchable(tmp_path)) == [f"search: no entry {check_site.MESSAGES[0]!r}"]


def test_an_empty_folder_is_no_site(tmp_path: Path) -> None:
    assert len(list(check_site.problems(tmp_path))) == 1
