"""What can be wrong, as a table of checks. Each takes the facts and yields findings; none looks at anything else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from .. import switch
from ..releases import versions_tried
from .doctor_facts import ENABLED, HOOK, PTH, SITECUSTOMIZE, UNSAFE, Facts

PROBLEM, NOTE = "problem", "note"
VARIABLES = ("UNSLOTH_HOOK", "UNSLOTH_HOOK_STRICT", "UNSLOTH_HOOK_LOG", "UNSLOTH_HOOK_ROUTE")
WAYS_ON = "export UNSLOTH_HOOK=1; or `unsloth-hook enable`; or, for one command, `unsloth-hook run COMMAND`"


class Finding(NamedTuple):
    """One finding: a name that does not change, "problem" or "note", a sentence, and the way out in one line."""

    name: str
    level: str
    what: str
    remedy: str


def diagnose(facts: Facts) -> list[Finding]:
    """Everything that the checks find, problems first.

    Args:
        facts: of `doctor_facts.examine`.

    Returns:
        The findings. While the hook is off there is at least one problem.
    """
    found = [finding for check in CHECKS for finding in check(facts)]
    problems = [finding for finding in found if finding.level == PROBLEM]
    if not facts.active and not problems:
        problems.append(
            Finding(
                "off",
                PROBLEM,
                "The hook is off, and nothing that doctor looks at says why.",
                f"{facts.python['executable']} -c 'import unsloth_hook; unsloth_hook.install()' shows the error.",
            )
        )
    return problems + [finding for finding in found if finding.level == NOTE]


def _pip(facts: Facts, rest: str) -> str:
    return f"{facts.python['executable']} -m pip {rest}"


def _worse_if(condition: bool) -> str:
    return PROBLEM if condition else NOTE


def _on(facts: Facts) -> bool:
    return facts.value in switch.ON


def _known(facts: Facts) -> bool:
    return facts.value in (*switch.ON, *switch.OFF, "")


# --- the variable


def variable_unset(facts: Facts) -> Iterator[Finding]:
    other = any(file.name == ENABLED or (file.name == SITECUSTOMIZE and file.ours) for file in facts.files)
    if not facts.value and not facts.active and not other:
        what = "UNSLOTH_HOOK is not set, and nothing else switches the hook on."
        yield Finding("variable-unset", PROBLEM, what, WAYS_ON)


def variable_off(facts: Facts) -> Iterator[Finding]:
    if facts.value in switch.OFF:
        what = f"UNSLOTH_HOOK={facts.value} keeps the hook off, whatever else would switch it on."
        yield Finding("variable-off", PROBLEM, what, "export UNSLOTH_HOOK=1, or unset it where another route is in use")


def variable_unknown(facts: Facts) -> Iterator[Finding]:
    if not _known(facts):
        words = ", ".join(switch.ON + switch.OFF)
        what = f"UNSLOTH_HOOK={facts.value!r} is none of {words}: the hook stays off."
        yield Finding("variable-unknown", PROBLEM, what, "export UNSLOTH_HOOK=1")


def variable_name(facts: Facts) -> Iterator[Finding]:
    for name in facts.python["variables"]:
        if name not in VARIABLES:
            what = f"{name} is set, and is no variable of the hook."
            yield Finding("variable-name", PROBLEM, what, f"unset {name}; the names are {', '.join(VARIABLES[:3])}")


def first_without_unsloth(facts: Facts) -> Iterator[Finding]:
    if facts.value == "first" and "unsloth" not in facts.installed:
        what = "UNSLOTH_HOOK=first is to import Unsloth before TRL, and Unsloth is not installed."
        yield Finding("first-without-unsloth", PROBLEM, what, "export UNSLOTH_HOOK=1, or install unsloth")


# --- the files


def package_missing(facts: Facts) -> Iterator[Finding]:
    error = facts.python["hook"]["error"]
    if not error or not facts.without_options["hook"]["error"]:
        return
    left = [file.path for file in facts.files if file.name != SITECUSTOMIZE]
    if "No module named 'unsloth_hook'" in error:
        what = "The package unsloth_hook cannot be found by this Python" + (
            f", and {', '.join(left)} is left." if left else "."
        )
        remedy = _pip(facts, f"install {HOOK}") + (f"; or delete {' '.join(left)}" if left else "")
        yield Finding("package-missing", PROBLEM, what, remedy)
    else:
        remedy = _pip(facts, f"install --force-reinstall --no-deps {HOOK}")
        yield Finding("package-broken", PROBLEM, f"The package unsloth_hook cannot be imported: {error}", remedy)


def pth_missing(facts: Facts) -> Iterator[Finding]:
    if facts.active or not _on(facts) or facts.python["hook"]["error"] or facts.options_switch_it_off:
        return
    files = [file for file in facts.files if file.name == PTH]
    if not files:
        what = f"{PTH} is in no site-packages folder of this Python, so UNSLOTH_HOOK={facts.value} has no effect."
        remedy = _pip(facts, f"install --force-reinstall --no-deps {HOOK}") + "; or `unsloth-hook run COMMAND`"
        yield Finding("pth-missing", PROBLEM, what, remedy)
    elif not any(file.read for file in files) and "-S" not in facts.python["flags"]:
        what = f"{files[0].path} is not read: Python reads .pth files in site-packages folders only."
        yield Finding(
            "pth-not-read", PROBLEM, what, "`unsloth-hook run COMMAND`, or sitecustomize_example on PYTHONPATH"
        )
    elif any(file.fate == "failed" for file in files):
        what = f"{files[0].path} did not switch the hook on, though UNSLOTH_HOOK={facts.value}: it is not as installed."
        yield Finding("pth-failed", PROBLEM, what, _pip(facts, f"install --force-reinstall --no-deps {HOOK}"))


def finder_removed(facts: Facts) -> Iterator[Finding]:
    asked = [route for route in facts.python["hook"]["asked"] if _on(facts) or (not facts.value and route != "env")]
    if asked and not facts.active and not facts.stderr and not facts.python["hook"]["error"]:
        what = (
            f"The hook was switched on (route {asked[0]}), and start-up code took its finder off sys.meta_path again."
        )
        yield Finding("finder-removed", PROBLEM, what, "look for that in the other .pth files and sitecustomize.py")


def start_up_message(facts: Facts) -> Iterator[Finding]:
    lines = [line for line in facts.stderr.splitlines() if "is none of" not in line]
    ours = [line for line in lines if line.startswith("unsloth_hook:") or ("Error" in line and "unsloth_hook" in line)]
    if ours:
        what = f"At its start this Python said: {ours[0]}"
        yield Finding("start-up-message", PROBLEM, what, _pip(facts, f"install --force-reinstall --no-deps {HOOK}"))


def two_copies(facts: Facts) -> Iterator[Finding]:
    if len(facts.copies) > 1:
        used = os.path.dirname(os.path.dirname(facts.python["hook"]["file"] or ""))
        others = [folder for folder in facts.copies if folder != os.path.realpath(used)]
        what = f"There is more than one unsloth_hook: {used} is used, {', '.join(others)} is not."
        yield Finding(
            "two-copies", PROBLEM, what, f"remove {os.path.join(others[0], 'unsloth_hook')}, or the other one"
        )


def sitecustomize(facts: Facts) -> Iterator[Finding]:
    files = [file for file in facts.files if file.name == SITECUSTOMIZE and file.read]
    ours = [file for file in files if file.ours]
    others = [file for file in files if not file.ours]
    if ours and not any(file.ran for file in ours):
        what = f"{ours[0].path} does not run: {files[0].path} is found before it and does not run the next one."
        remedy = f"put {os.path.dirname(ours[0].path)} first on PYTHONPATH, or use another route"
        yield Finding("sitecustomize-shadowed", _worse_if(not facts.active), what, remedy)
    elif ours and others and not any(file.ran for file in others):
        what = f"{others[0].path} no longer runs: {ours[0].path} is found before it and does not run the next one."
        yield Finding("sitecustomize-shadowing", PROBLEM, what, "take the hook's own sitecustomize_example, which does")


def read_only(facts: Facts) -> Iterator[Finding]:
    for folder in facts.read_only:
        what = f"{folder} cannot be written, so `unsloth-hook enable` and pip cannot work here."
        yield Finding("site-packages-read-only", NOTE, what, "UNSLOTH_HOOK=1 in the environment needs no file")


# --- options of the interpreter

OPTIONS = {
    "-S": ("option-S", "-S switches off site, and with it every .pth file and sitecustomize."),
    "-I": ("option-I", "-I ignores PYTHONPATH and the user's site-packages; .pth files elsewhere still run."),
    "-E": ("option-E", "-E ignores PYTHONPATH, and any sitecustomize on it; .pth files still run."),
    "-s": ("option-s", "-s ignores the user's site-packages; .pth files elsewhere still run."),
}


def options(facts: Facts) -> Iterator[Finding]:
    for option in facts.python["flags"]:
        name, what = OPTIONS[option]
        cause = facts.options_switch_it_off
        site = "unsloth_hook.install() at the top of the program" + (
            "; or drop -S" if option == "-S" else f"; or install the hook in site-packages; or drop {option}"
        )
        yield Finding(
            name,
            _worse_if(cause),
            what + (" Without it the hook is on." if cause else ""),
            site if cause else "nothing, while the hook is on" if facts.active else "see the other findings",
        )


# --- the meta path and TRL


def bypassed(facts: Facts) -> Iterator[Finding]:
    trl = facts.python["trl"]
    if facts.active and trl["origin"] and not trl["asked"]:
        what = f"{trl['answered_by']} answers for TRL's modules before the hook's finder is asked."
        yield Finding(
            "bypassed", PROBLEM, what, "take that finder off, or call unsloth_hook.install() after it was put on"
        )


def in_front(facts: Facts) -> Iterator[Finding]:
    meta_path = facts.python["meta_path"]
    ours = [index for index, name in enumerate(meta_path) if name.startswith("unsloth_hook.")]
    if ours and ours[0] > 0 and facts.python["trl"]["asked"]:
        what = f"{', '.join(meta_path[: ours[0]])} stands before the hook's finder on sys.meta_path."
        yield Finding(
            "finder-in-front", NOTE, what, "nothing: the hook's finder is asked for TRL's modules all the same"
        )


def trl_missing(facts: Facts) -> Iterator[Finding]:
    trl, installed = facts.python["trl"], facts.installed.get("trl")
    if trl["error"]:
        what = f"Looking for TRL raises {trl['error']}"
        yield Finding("trl-broken", PROBLEM, what, _pip(facts, "install --force-reinstall --no-deps trl"))
    elif not trl["origin"] and not facts.without_options["trl"]["origin"]:
        yield Finding(
            "trl-missing", PROBLEM, "This Python has no TRL, so there is nothing to patch.", _pip(facts, "install trl")
        )
    elif trl["origin"] and installed and not installed.editable:
        installed_at = [os.path.join(place, "trl", "__init__.py") for place in installed.places]
        if not any(os.path.realpath(trl["origin"]) == os.path.realpath(path) for path in installed_at):
            what = f"`import trl` finds {trl['origin']}, not the TRL {installed.version} that is installed."
            yield Finding("trl-shadowed", PROBLEM, what, "rename that folder or file, or start Python elsewhere")


def loaded_at_start(facts: Facts) -> Iterator[Finding]:
    status = facts.python["hook"]["status"] or {}
    if facts.active and status.get("late"):
        what = "Start-up code imports TRL before the hook is switched on; classes that it took stay as they are."
        yield Finding("late", PROBLEM, what, "let that code run later, or its .pth file sort after unsloth_hook.pth")


# --- versions

# What the hook deals with; a Python, torch or accelerate that was not tried is only worth knowing.
MATTERS = ("trl", "transformers", "unsloth")


def untried(facts: Facts) -> Iterator[Finding]:
    have = {"python": facts.python["version"], **{name: item.version for name, item in facts.installed.items()}}
    for package in versions_tried.PACKAGES:
        where = versions_tried.compare(package, have[package]) if package in have else "within"
        if where != "within":
            span = " to ".join(dict.fromkeys(versions_tried.tried(package)))
            what = f"{package} {have[package]} is {where} than all that was tried ({span})."
            remedy = "`unsloth-hook verify` tries every config of the TRL that is installed"
            yield Finding(f"{package}-untried", _worse_if(package in MATTERS), what, remedy)


def unsloth_old(facts: Facts) -> Iterator[Finding]:
    item = facts.installed.get("unsloth")
    fixed = versions_tried.UNSLOTH_PICKLES_AS_TRL
    if item and not facts.active and versions_tried.release(item.version) < versions_tried.release(fixed):
        what = f"Unsloth {item.version} without the hook writes checkpoints that name UnslothSFTTrainer and the like."
        yield Finding("unsloth-old", PROBLEM, what, f"export UNSLOTH_HOOK=1, or upgrade to Unsloth {fixed} or later")


def editable(facts: Facts) -> Iterator[Finding]:
    gone = dict(facts.dangling)
    for name in ("trl", "unsloth", HOOK):
        item = facts.installed.get(name)
        if item and item.editable and os.path.isdir(item.editable):
            what = f"{name} is an editable install of {item.editable}."
            yield Finding("editable", NOTE, what, "nothing, as long as that folder stays where it is")
        elif item and item.editable:
            gone = {path: folder for path, folder in gone.items() if not folder.startswith(item.editable)}
            what = f"{name} is an editable install of {item.editable}, which is gone."
            yield Finding("editable-gone", PROBLEM, what, _pip(facts, f"install --force-reinstall {name}"))
    for path, folder in gone.items():
        what = f"{path} is left of an editable install: {folder} is gone."
        yield Finding("editable-gone", PROBLEM, what, f"delete {path}")


# --- the working directory


def stray_checkpoints(facts: Facts) -> Iterator[Finding]:
    unsafe = [path for path, trouble in facts.checkpoints if trouble == UNSAFE]
    stray = [(path, trouble) for path, trouble in facts.checkpoints if trouble != UNSAFE]
    if unsafe:
        what = f"{_several(unsafe)} something that no config needs; do not open it with torch.load."
        yield Finding("unsafe-checkpoint", PROBLEM, what, f"unsloth-hook inspect {unsafe[0]}")
    if stray:
        what = f"{_several([path for path, _ in stray])} {stray[0][1]}, which other machines do not have."
        remedy = f"unsloth-hook convert --in-place {stray[0][0] if len(stray) == 1 else '.'}"
        yield Finding("stray-checkpoint", PROBLEM, what, remedy)


def _several(paths: list[str]) -> str:
    return f"{paths[0]} names" if len(paths) == 1 else f"{paths[0]} (and {len(paths) - 1} more found here) names"


def compiled_cache(facts: Facts) -> Iterator[Finding]:
    for path in facts.caches:
        if "unsloth" in facts.installed:
            what = f"{path} is Unsloth's compiled cache."
            yield Finding("compiled-cache", NOTE, what, f"delete {path} after a change of TRL or Unsloth")
        else:
            what = f"{path} is a compiled cache of Unsloth, which is not installed; its modules win over TRL's own."
            yield Finding("compiled-cache", PROBLEM, what, f"delete {path}")


CHECKS: Iterable[Callable[[Facts], Iterator[Finding]]] = (
    package_missing,
    variable_unset,
    variable_off,
    variable_unknown,
    variable_name,
    first_without_unsloth,
    options,
    pth_missing,
    sitecustomize,
    finder_removed,
    start_up_message,
    two_copies,
    bypassed,
    trl_missing,
    loaded_at_start,
    unsloth_old,
    untried,
    stray_checkpoints,
    compiled_cache,
    editable,
    in_front,
    read_only,
)
