"""What mkdocs does besides: pages made from files that live elsewhere, so that none is a copy that goes stale."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import house  # mkdocs lets a hook import what lies beside it
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
LANGUAGES = {".py": "python", ".txt": "text", "": "docker"}

PICTURE = house.PICTURE.relative_to(ROOT / "docs").as_posix()

# Files outside docs/ that have a page here. A link to one of them, as it stands on GitHub, leads to its page.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "for-contributors.md",
    "README.md": "index.md",
    "sitecustomize_example/README.md": "sitecustomize.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, and the picture of the package as it is now."""
    made = {
        "changelog.md": read("CHANGELOG.md"),
        "command-line.md": command_line(),
        "sitecustomize.md": read("sitecustomize_example/README.md"),
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    committed = files.get_file_from_path(PICTURE)
    if committed is not None:
        files.remove(committed)
    files.append(File.generated(config, PICTURE, content=house.picture(house.read())))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Include what a page is to be followed by, and let links out of docs/ lead to the page of what they name."""
    if page.file.src_uri == "for-contributors.md":
        # Instead of the link to it.
        markdown = markdown.partition("<!-- CONTRIBUTING.md")[0] + read("CONTRIBUTING.md").partition("\n")[2].replace(
            "](docs/", "]("
        )
    if page.file.src_uri == "examples/README.md":
        examples = [path for path in sorted(EXAMPLES.iterdir()) if path.is_file() and path.suffix != ".md"]
        markdown += "\n".join(example(path) for path in examples)
    up = "../" * page.file.src_uri.count("/")
    for target, name in PAGES.items():
        markdown = markdown.replace(f"]({up}../{target}", f"]({up}{name}")
    return re.sub(r'^(```console) not_run="\w+"$', r"\1", markdown, flags=re.MULTILINE)  # that is for the tests


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def command_line() -> str:
    """The page of the commands, written by typer from the commands themselves."""
    command = [sys.executable, "-m", "typer", "unsloth_hook.command.program", "utils", "docs", "--name", "unsloth-hook"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True)
    text = done.stdout.replace("# `unsloth-hook`", "# Command line", 1)
    text = re.sub(r"```console\n\$ (.*)", r"```text\n\1", text)  # a usage line is no session
    # The list of commands cuts each description short.
    about = dict(re.findall(r"^## `unsloth-hook (\w+)`\n\n(.*)$", text, flags=re.MULTILINE))
    return re.sub(
        r"^\* `(\w+)`: .*$",
        lambda found: f"* [`{found[1]}`](#unsloth-hook-{found[1]}): {about[found[1]]}",
        text,
        flags=re.MULTILINE,
    )


def example(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    shown = notebook(text) if path.suffix == ".ipynb" else f"```{LANGUAGES[path.suffix]}\n{text.rstrip()}\n```"
    return f"\n## {path.name}\n\n{shown}\n"


def notebook(text: str) -> str:
    """The cells of a notebook with their outputs."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub("^# .*\n+", "", source))
            continue
        outputs = [out.get("text") or out["data"]["text/plain"] for out in cell["outputs"]]
        parts.append(f"```python\n{source}\n```")
        parts += ["```text\n" + "".join(output).rstrip() + "\n```" for output in outputs]
    return "\n\n".join(parts)
