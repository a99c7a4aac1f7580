"""README says what happens: its commands are CI's. What it shows is run in test_docs.py."""

import re

import pages
from helpers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def test_the_two_commands_are_one_line_each_and_use_the_constraints() -> None:
    setup, tests = blocks("sh")
    assert setup.count("\n") == tests.count("\n") == 1
    assert "-c tests/constraints.txt" in setup
    assert setup.rstrip().endswith("UNSLOTH_HOOK=1 .venv/bin/python docs/examples/train_tiny.py")
    assert "pytest" in tests


def test_ci_takes_its_commands_from_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "run_readme_command 1" in script
    assert script.rstrip().endswith("run_readme_command 2")
    setup, tests = (command.strip() for command in blocks("sh"))
    script, what_it_leaves_out, rest = script.partition(f"{tests} -m whole\n")
    assert what_it_leaves_out
    assert setup not in script + rest and tests not in script + rest


def test_the_constraints_name_a_cpu_build() -> None:
    lines = (ROOT / "tests" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    torch = [line for line in lines if line.startswith("torch==")]
    assert any("+cpu" in line and 'sys_platform == "linux"' in line for line in torch)
    assert not [line for line in lines if re.match(r"(nvidia|triton|cuda)", line)]
    assert all("==" in line for line in lines if line and not line.startswith("#"))


def test_the_same_command_is_shown_before_and_after() -> None:
    """What they print is compared in test_docs.py."""
    (shown,) = blocks("console")
    before, after = (part.command for part in pages.sessions(shown))
    assert after == f"UNSLOTH_HOOK=1 {before}"


def test_it_fits_two_screens() -> None:
    assert README.count("\n") <= 100
