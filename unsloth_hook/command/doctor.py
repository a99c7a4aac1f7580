"""``unsloth-hook doctor``: shows what `doctor_facts` saw and `doctor_checks` made of it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..releases import versions_tried
from . import printing

if TYPE_CHECKING:
    from .doctor_checks import Finding
    from .doctor_facts import Facts


def doctor(
    python: Annotated[
        list[str] | None,
        typer.Argument(metavar="PYTHON [OPTION]", help="The Python to examine, as you start it. Default: this one."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Say whether the hook is on in a freshly started Python, or why not.

    Starts that Python here, with the environment as it is, and looks at the
    hook's start-up files, at versions, at sys.meta_path, and for stray files
    in this folder. Imports neither torch nor TRL. Each finding has its remedy.

    Exit code: 0 nothing is wrong, 1 something is, 2 that Python does not
    start.

    Examples:

        unsloth-hook doctor

        unsloth-hook doctor --json

        unsloth-hook doctor /opt/venv/bin/python -I
    """
    from . import doctor_checks, doctor_facts

    command = list(python or ())
    if command and command[0].startswith("--"):
        raise typer.BadParameter(f"no such option: {command[0]}")
    if command and command[0].startswith("-"):
        command.insert(0, sys.executable)
    try:
        facts = doctor_facts.examine(command)
    except doctor_facts.NoAnswer as error:
        printing.fail(str(error))
    findings = doctor_checks.diagnose(facts)
    if as_json:
        typer.echo(json.dumps(_as_data(facts, findings), indent=2))
    else:
        _show(facts, findings)
    raise typer.Exit(int(any(finding.level == doctor_checks.PROBLEM for finding in findings)))


def _as_data(facts: Facts, findings: list[Finding]) -> dict[str, Any]:
    return {
        "active": facts.active,
        "route": facts.route or None,
        "variable": facts.python["variables"].get("UNSLOTH_HOOK"),
        "python": {
            "executable": facts.python["executable"],
            "version": facts.python["version"],
            "command": list(facts.command),
            "options": facts.python["flags"],
        },
        "files": [file._asdict() for file in facts.files],
        "versions": [
            {"package": name, "installed": have or None, "tried": list(versions_tried.tried(name))}
            for name, have in _versions(facts)
        ],
        "hook": {"version": facts.python["hook"].get("version"), "file": facts.python["hook"]["file"]},
        "meta_path": facts.python["meta_path"],
        "trl_found_by": facts.python["trl"]["answered_by"],
        "findings": [finding._asdict() for finding in findings],
    }


def _versions(facts: Facts) -> list[tuple[str, str]]:
    have = {"python": facts.python["version"], **{name: item.version for name, item in facts.installed.items()}}
    return [(name, have.get(name, "")) for name in versions_tried.PACKAGES]


def _show(facts: Facts, findings: list[Finding]) -> None:
    from rich.text import Text

    console = printing.console()
    state = Text(f"on, by the route {facts.route}", "green") if facts.active else Text("off", "bold red")
    console.print(Text.assemble("The hook is ", state, "."))
    hook = facts.python["hook"]
    console.print(Text(f"Python {facts.python['version']}: {' '.join(facts.command)}"), soft_wrap=True)
    if hook["file"]:
        console.print(Text(f"unsloth_hook {hook['version']}: {hook['file']}"), soft_wrap=True)
    for file in facts.files:
        whose = "" if file.ours else ", not the hook's"
        console.print(Text(f"start-up file {file.path}: {file.fate}{whose}"), soft_wrap=True)
    packages = printing.table("package", "installed", "tried with")
    for name, have in _versions(facts):
        packages.add_row(name, have or "-", " to ".join(dict.fromkeys(versions_tried.tried(name))))
    console.print(packages)
    console.print(Text("sys.meta_path, in order: " + ", ".join(facts.python["meta_path"])))
    shown = printing.table("finding", "what, and what to do")
    for finding in findings:
        style = "bold red" if finding.level == "problem" else "yellow"
        shown.add_row(Text(f"{finding.level}\n{finding.name}", style), Text(f"{finding.what}\n-> {finding.remedy}"))
    if findings:
        console.print(shown)
    problems = sum(finding.level == "problem" for finding in findings)
    notes = len(findings) - problems
    console.print(f"{problems or 'No'} problem{'s' * (problems != 1)}, {notes or 'no'} note{'s' * (notes != 1)}.")
