"""README and docs/ say what happens: every command and every piece of Python in them is run, every output compared.

By a rule, so that a new page is covered as it is written. In a ```console block each line after `$` is run by bash, in
a folder of the page's own, with the installed package on PATH; what follows must be what it prints, `…` standing for
anything. A command that fails is compared with its standard error as well; of one that succeeds, warnings are left out.
A ```python block is run under the hook, with nothing to compare; with title="NAME" it is a file for the commands.
Some pages' commands are run by CI alone (`EVERY_TIME`).
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from helpers import DEADLOCK, PACKAGE, ROOT, clean_env, deadlocked, site_packages
from installed import installed_python
from preloaded import run_child

import unsloth_hook

# What cannot be run here, by the attribute not_run="..." of its block, and why.
NOT_RUN = {
    "ci": "CI runs it, or the like of it",
    "cluster": "needs a program that is not among the tests' libraries, or several machines",
    "network": "downloads, which the tests do not",
    "unsloth": "needs the real Unsloth: tests/unsloth/test_docs_with_unsloth.py runs it",
    "verify": "takes all configs through a second process: tests/command/test_verify.py runs it",
}
# The pages whose commands are run whenever the tests are; each of the others starts torch many times.
EVERY_TIME = ("README.md", "docs/open-an-old-checkpoint.md", "docs/routes.md", "sitecustomize_example/README.md")
LANGUAGES = {"console", "python", "text", "docker"}
DATA = ROOT / "tests" / "data"
STRAY = DATA / "unsloth-2026.7.1" / "sft_training_args.bin"

# Files that a page's commands find in the working directory.
FILES = {
    "README.md": {"tests/data/unsloth-2026.7.1/sft_training_args.bin": STRAY},
    "docs/open-an-old-checkpoint.md": {
        "outputs/checkpoint-500/training_args.bin": STRAY,
        "runs/first/training_args.bin": DATA / "trl-1.16.0" / "trainer-sft_config.bin",
        "runs/second/training_args.bin": DATA / "unsloth-2025.9.1" / "dpo_training_args.bin",
    },
    "docs/troubleshooting.md": {
        "outputs/checkpoint-500/training_args.bin": STRAY,
        "training_args.bin": DATA / "trl-1.16.0" / "trainer-sft_config.bin",
    },
    "docs/routes.md": {"sitecustomize_example": ROOT / "sitecustomize_example"},
    "sitecustomize_example/README.md": {"sitecustomize_example": ROOT / "sitecustomize_example"},
}

ALL = [fence for page in pages.PAGES for fence in pages.fences(page)]
NAMES = [pages.name(page) for page in pages.PAGES]


def fences(page: str, language: str) -> list[pages.Fence]:
    return [fence for fence in ALL if pages.name(fence.page) == page and fence.language == language]


def to_run(page: str) -> list[pages.Fence]:
    return [fence for fence in fences(page, "console") if "not_run" not in fence.attributes]


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The working directory of a page's commands, with the files that it speaks of."""
    page = request.getfixturevalue("page")
    for target, source in FILES.get(page, {}).items():
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, tmp_path / target)
        else:
            shutil.copy(source, tmp_path / target)
    for fence in fences(page, "python"):
        if "title" in fence.attributes:
            (tmp_path / fence.attributes["title"]).write_text(fence.text, encoding="utf-8")
    yield tmp_path
    for name in ("unsloth_hook_enabled.pth", "sitecustomize.py"):  # of a page that failed half-way
        (site_packages(installed_python()) / name).unlink(missing_ok=True)


def run(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command as somebody would who has the package's environment activated, and is in this folder."""
    env = clean_env()
    env["PATH"] = os.pathsep.join([str(installed_python().parent), env["PATH"]])
    try:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=DEADLOCK,
        )
    except subprocess.TimeoutExpired as late:
        pytest.fail(deadlocked(DEADLOCK, command, str(late.stdout)), pytrace=False)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[] if page in EVERY_TIME else pytest.mark.whole) for page in NAMES if to_run(page)],
)
def test_every_command_prints_what_the_page_shows(page: str, folder: Path) -> None:
    for fence in to_run(page):
        for command, shown in pages.sessions(fence.text):
            done = run(command, folder)
            printed = done.stdout + (done.stderr if done.returncode else "")
            where = f"{page}:{fence.line}: {command}"
            assert pages.matches(shown, printed), f"{where}\n--- shown\n{shown}\n--- printed\n{printed}\n{done.stderr}"


@pytest.mark.parametrize("page", [page for page in NAMES if fences(page, "python")])
def test_every_piece_of_python_runs(page: str, folder: Path) -> None:
    pieces = [fence for fence in fences(page, "python") if "title" not in fence.attributes]
    if not pieces:
        return
    script = "".join(f"exec(compile({piece.text!r}, '{page}:{piece.line}', 'exec'), {{}})\n" for piece in pieces)
    run_child(script, env={"UNSLOTH_HOOK": "1"}, cwd=folder)


@pytest.mark.parametrize("page", NAMES)
def test_no_block_escapes_the_rule(page: str) -> None:
    """No language that nothing runs, no block made by indenting; ```sh is README's, for its two commands (.ci/run)."""
    allowed = LANGUAGES | ({"sh"} if page == "README.md" else set())
    assert {fence.language for fence in ALL if pages.name(fence.page) == page} <= allowed
    lines = pages.outside_fences(ROOT / page).splitlines()
    indented = [line for before, line in zip(lines, lines[1:], strict=False) if not before and line.startswith("    ")]
    assert not [line for line in indented if not line.strip().startswith(("-", "*"))]
    for fence in ALL:
        assert "\n$ " not in f"\n{fence.text}" or fence.language == "console"


def test_what_is_not_run_has_a_reason() -> None:
    assert {fence.attributes["not_run"] for fence in ALL if "not_run" in fence.attributes} == set(NOT_RUN)
    assert {name for fence in ALL for name in fence.attributes} <= {"not_run", "title"}
    assert not [fence for fence in ALL if "not_run" in fence.attributes and fence.language != "console"]


def test_the_api_page_has_every_public_name() -> None:
    page = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^::: unsloth_hook\.(\w+)$", page, flags=re.MULTILINE)) == set(unsloth_hook.__all__)


def test_the_routes_page_has_every_variable() -> None:
    page = (ROOT / "docs" / "routes.md").read_text(encoding="utf-8")
    sources = "".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    used = set(re.findall(r'environ.*?"(UNSLOTH_HOOK\w*)"', sources)) - {"UNSLOTH_HOOK_ROUTE"}  # that one is our own
    assert used == set(re.findall(r"^\| `(UNSLOTH_HOOK\w*)` \|", page, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a  \nb", True),
        ("a\n…\nc", "a\nb\nb\nc", True),
        ("a … c", "a b c", True),
        ("a\n", "a\nb\n", False),
        ("a.c", "abc", False),
        ("", "a", False),
        ("…", "a\nb", True),
    ],
)
def test_an_output_is_compared_in_full(shown: str, printed: str, same: bool) -> None:
    assert pages.matches(shown, printed) is same


def test_a_block_is_taken_apart_into_commands_and_outputs() -> None:
    text = "$ one \\\n    more\nout\nput\n$ two\n\n$ three\n"
    assert pages.sessions(text) == [("one \\\n    more", "out\nput\n"), ("two", "\n"), ("three", "")]


@pytest.mark.parametrize("page", NAMES)
def test_links_lead_somewhere(page: str) -> None:
    """On the forge, where pages are read as they are. For those of the built manual see check_site.py."""
    text = pages.outside_fences(ROOT / page)
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target
