"""`unsloth-hook run`: what the command sees is what it sees without it, side by side, and the hook is on (issue 5)."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipapp
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import DEADLOCK, PACKAGE, ROOT, clean_env, deadlock_ends, hooked_python, make_venv, site_packages

LIBRARIES = (
    site_packages(sys.executable) if sys.prefix != sys.base_prefix else Path(os.__file__).parent / "site-packages"
)
ADDED = ("UNSLOTH_HOOK", "UNSLOTH_HOOK_ROUTE")

# Everything about a process that the command could notice, as JSON on standard output.
PROBE = """
    import json, os, resource, signal, stat, sys
    main = sys.modules["__main__"]
    hook = sys.modules.get("unsloth_hook")
    here = {name: value for name, value in os.environ.items() if name not in ("UNSLOTH_HOOK", "UNSLOTH_HOOK_ROUTE")}
    seen = {
        "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "executable": sys.executable,
        "prefix": sys.prefix, "flags": str(sys.flags), "xoptions": sys._xoptions, "warnoptions": sys.warnoptions,
        "main": {name: str(getattr(main, name, None)) for name in ("__name__", "__file__", "__package__", "__doc__")},
        "spec": getattr(main.__spec__, "name", None),
        "main_names": sorted(vars(main)),
        "streams": [(s.isatty(), s.encoding, s.errors, s.line_buffering) for s in (sys.stdin, sys.stdout, sys.stderr)],
        "descriptors": [(fd, stat.S_IFMT(os.fstat(fd).st_mode)) for fd in range(9) if os.path.exists(f"/dev/fd/{fd}")],
        "signals": {int(n): str(signal.getsignal(n)) for n in signal.valid_signals()},
        "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "limits": resource.getrlimit(resource.RLIMIT_NOFILE), "umask": os.umask(0o022), "cwd": os.getcwd(),
        "input": sys.stdin.read(), "environ": here,
        "modules": sorted(name for name in sys.modules if name.split(".")[0] != "unsloth_hook"),
    }
    print(json.dumps({"seen": seen, "pid": os.getpid(), "hooked": any(
        type(finder).__module__ == "unsloth_hook.finder" for finder in sys.meta_path)}))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: scripts, a package, programs."""
    folder = tmp_path_factory.mktemp("project")
    probe = "\n".join(line.removeprefix("    ") for line in PROBE.splitlines())
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").touch()
    for name in ("probe.py", "package/__main__.py", "package/module.py", "package/h.py"):
        (folder / name).write_text(probe)
    (folder / "exits.py").write_text("import sys; print('out'); print('err', file=sys.stderr); sys.exit(37)\n")
    (folder / "raises.py").write_text("def f():\n    raise ValueError('a user error')\n\nf()\n")
    (folder / "killed.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    (folder / "fails_to_parse.py").write_text("1 +\n")
    (folder / "program").write_text(f"#!{hooked_python()}\n{probe}")
    (folder / "no_first_line").write_text('echo "$0" "$1"; exit 5\n')
    (folder / "bad_first_line").write_text("#!/no/such/interpreter\n")
    for name in ("program", "no_first_line", "bad_first_line"):
        (folder / name).chmod(0o755)
    (folder / "data.txt").write_text("no program\n")
    return folder


@pytest.fixture(scope="module")
def without_line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that can import the package and has no ``.pth`` line of ours."""
    return make_venv(tmp_path_factory.mktemp("without"), ROOT, LIBRARIES)


def start(command: Sequence[Any], cwd: Path, env: Mapping[str, str | None] | None = None, **options: Any) -> Any:
    process = subprocess.Popen(
        [str(part) for part in command],
        env=clean_env(**dict(env or {})),
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    return process


def outcome(command: Sequence[Any], cwd: Path, env: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """Run a command to its end; what the probe printed is parsed."""
    process = start(command, cwd, env)
    with deadlock_ends(process):
        out, err = process.communicate("some input\n")
    shown: dict[str, Any] = {"code": process.returncode, "out": out, "err": err, "hooked": None}
    if out.startswith("{"):
        printed = json.loads(out)
        assert printed["pid"] == process.pid  # the command has replaced us: whoever started us can signal it
        shown.update(out=printed["seen"], hooked=printed["hooked"])
    return shown


def run(*arguments: Any, python: Path | None = None) -> list[Any]:
    return [python or hooked_python(), "-m", "unsloth_hook", "run", *arguments]


def without_ours(seen: dict[str, Any]) -> dict[str, Any]:
    """What the probe saw less the folder that the sitecustomize route puts on PYTHONPATH."""
    folder = str(PACKAGE / "command" / "run_sitecustomize")
    seen = json.loads(json.dumps(seen))
    assert seen["path"].index(folder) == 1
    seen["path"].remove(folder)
    seen["modules"].remove("sitecustomize")
    rest = seen["environ"].pop("PYTHONPATH").removeprefix(folder).removeprefix(os.pathsep)
    return {**seen, "environ": {**seen["environ"], **({"PYTHONPATH": rest} if rest else {})}}


EXAMPLE = ROOT / "sitecustomize_example"

COMMANDS = {
    "script": (["probe.py", "a", "--help", "-h", "--", "b c", ""], ["PYTHON"]),
    "script in another folder": (["./package/module.py"], ["PYTHON"]),
    "module": (["-m", "package.module", "-m", "x", "--json"], ["PYTHON"]),
    "module in one word, with an h in it": (["-mpackage.h", "-h"], ["PYTHON"]),
    "package": (["-m", "package", "--help"], ["PYTHON"]),
    "code": (["-c", "exec(open('probe.py').read())", "-c"], ["PYTHON"]),
    "python with options": (["PYTHON", "-u", "-W", "error", "-X", "dev", "probe.py", "-u"], []),
    "program by path": (["./program", "--version"], []),
    "program on PATH": (["program", "x"], []),
    "exit code": (["exits.py"], ["PYTHON"]),
    "traceback": (["raises.py"], ["PYTHON"]),
    "traceback of a module": (["-m", "raises"], ["PYTHON"]),
    "syntax error": (["fails_to_parse.py"], ["PYTHON"]),
    "no such script": (["absent.py"], ["PYTHON"]),
    "no such module": (["-m", "absent"], ["PYTHON"]),
    "ended by a signal": (["killed.py"], ["PYTHON"]),
    "a shell": (["sh", "-c", 'echo "$0" "$@"; exit 4', "name", "-x"], []),
}


# By the .pth line, all; by sitecustomize, those whose result it could change.
CASES = [(name, "line") for name in COMMANDS] + [
    (name, "sitecustomize")
    for name in ("script", "module", "code", "python with options", "program by path", "traceback", "no such script")
]


@pytest.mark.parametrize(("name", "route"), CASES)
def test_a_command_is_what_it_is_without_it(name: str, route: str, project: Path, without_line: Path) -> None:
    python = hooked_python() if route == "line" else without_line
    arguments, before = ([str(python) if part == "PYTHON" else part for part in parts] for parts in COMMANDS[name])
    env = {"PATH": f"{project}{os.pathsep}{os.environ['PATH']}"}
    stock = outcome([*before, *arguments], project, env)
    ours = outcome(run(*arguments, python=python), project, env)
    assert ours.pop("hooked") is {False: True, None: None}[stock.pop("hooked")]
    if isinstance(ours["out"], dict) and "PYTHONPATH" in ours["out"]["environ"]:
        assert route == "sitecustomize" or name.startswith("program")
        ours["out"] = without_ours(ours["out"])
    elif isinstance(ours["out"], dict):
        assert route == "line"
    assert ours == stock


@pytest.mark.parametrize(
    "env", [{}, {"LC_CTYPE": "C.UTF-8"}, {"LC_ALL": "C"}, {"PYTHONUTF8": "1", "LC_CTYPE": "C.UTF-8"}]
)
def test_in_a_bare_environment_too(env: dict[str, str], project: Path) -> None:
    """In the C locale Python changes LC_CTYPE, which its children would inherit (PEP 538)."""

    def seen(command: Sequence[Any]) -> Any:
        done = subprocess.run([str(part) for part in command], env=env, cwd=project, capture_output=True, input=b"")
        assert done.stderr == b""
        return json.loads(done.stdout)["seen"]

    assert seen(run("probe.py")) == seen([hooked_python(), "probe.py"])


WAITS = f"""
import time
print("ready", flush=True)
time.sleep({DEADLOCK})
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_command(number: int, project: Path) -> None:
    (project / "waits.py").write_text(WAITS)

    def signalled(command: Sequence[Any]) -> tuple[int, str]:
        process = start(command, project)
        with deadlock_ends(process):
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
            _, err = process.communicate()
        return process.returncode, (err.splitlines() or [""])[-1]  # where the signal arrives is chance

    handler = signal.getsignal(number)
    if handler is signal.SIG_IGN:  # these tests run under nohup, and what they start would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        assert signalled(run("waits.py")) == signalled([hooked_python(), "waits.py"])
    finally:
        signal.signal(number, handler)


def test_a_pipe_that_closes_ends_the_command_as_it_does_without(project: Path) -> None:
    """Python ignores SIGPIPE, and what is ignored would stay so in the command."""

    def piped(command: Sequence[Any]) -> tuple[int, str]:
        process = start(command, project)
        with deadlock_ends(process):
            process.stdout.readline()
            process.stdout.close()
            code = process.wait()
        return code, process.stderr.read()

    assert piped(run("yes")) == piped(["yes"]) == (-signal.SIGPIPE, "")


def test_a_terminal_stays_one(project: Path) -> None:
    import pty

    def in_terminal(command: Sequence[Any]) -> bytes:
        ours, theirs = pty.openpty()
        process = subprocess.Popen([str(part) for part in command], env=clean_env(), stdin=theirs, stdout=theirs)
        os.close(theirs)
        with deadlock_ends(process):
            shown = os.read(ours, 1000)
            process.wait()
        os.close(ours)
        return shown

    code = "import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty())"
    assert in_terminal(run("-c", code)).startswith(b"True True ")
    assert in_terminal(run("-c", code)) == in_terminal([hooked_python(), "-c", code])


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("nosuch", 127, "nosuch: command not found on PATH"),
        ("./nosuch", 127, "./nosuch: command not found"),
        ("./data.txt/x", 127, "./data.txt/x: command not found"),
        ("./bad_first_line", 127, "./bad_first_line: the program that its first line (#!) names does not exist"),
        ("./data.txt", 126, "./data.txt: cannot be executed: Permission denied"),
        ("./package", 126, "./package: cannot be executed: Permission denied"),
        ("-u", 2, "there is no option -u"),
        ("-m", 2, "-m needs an argument"),
    ],
)
def test_what_cannot_run_says_so_with_the_exit_code_of_a_shell(
    command: str, code: int, said: str, project: Path
) -> None:
    done = outcome(run(command), project)
    assert (done["code"], done["out"]) == (code, "")
    assert done["err"].startswith(f"unsloth-hook: {said}")
    assert done["err"].count("\n") == 1


def test_a_program_without_a_first_line_is_run_by_the_shell(project: Path) -> None:
    done = outcome(run("./no_first_line", "x"), project)
    assert (done["code"], done["out"], done["err"]) == (5, "./no_first_line x\n", "")


ROUTE = "import unsloth_hook as u, os; s = u.status(); print(s['active'], s['route'], os.environ.get('UNSLOTH_HOOK'))"


def test_status_names_the_route_in_the_command_and_its_children(project: Path, without_line: Path) -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ROUTE!r}], check=True); exec({ROUTE!r})"
    for python in (hooked_python(), without_line):
        assert outcome(run("-c", code, python=python), project)["out"] == "True run 1\n" * 2
        assert (
            outcome(run("-c", code, python=python), project, {"UNSLOTH_HOOK": "first"})["out"] == "True run first\n" * 2
        )
        assert outcome(run("-c", ROUTE, python=python), project, {"UNSLOTH_HOOK": " "})["out"] == "True run 1\n"


@pytest.mark.parametrize("value", ["0", "Off", "banana"])
def test_the_variable_has_the_last_word(value: str, project: Path, without_line: Path) -> None:
    for python in (hooked_python(), without_line):
        env = {"UNSLOTH_HOOK": value}
        stock, ours = outcome([python, "probe.py"], project, env), outcome(run("probe.py", python=python), project, env)
        assert f"UNSLOTH_HOOK={value} keeps the hook off: probe.py runs without it\n" in ours["err"]
        assert ours["hooked"] is False
        assert ours["out"] == stock["out"]


def test_run_within_run_adds_nothing(project: Path, without_line: Path) -> None:
    once = outcome(run("probe.py", python=without_line), project)
    twice = outcome(run(*run("probe.py", python=without_line), python=without_line), project)
    assert twice == once


def test_a_target_folder_and_a_zip_app_work(project: Path, tmp_path: Path) -> None:
    """No ``.pth``, and the package where the command's Python does not look for it; nothing else there gets in."""
    python = make_venv(tmp_path / "venv", LIBRARIES)
    target = tmp_path / "target"
    shutil.copytree(PACKAGE, target / "unsloth_hook", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(EXAMPLE, target / "unsloth_hook" / "command" / EXAMPLE.name)  # as a wheel has it (test_packaging)
    (target / "json.py").write_text("raise RuntimeError('shadowed')\n")
    launcher = f"import sys; sys.path.append({str(target)!r}); from unsloth_hook.command.program import app; app()"
    by_folder = outcome([python, "-c", launcher, "run", "probe.py"], project)
    (target / "json.py").unlink()
    zipapp.create_archive(target, tmp_path / "hook.pyz", main="unsloth_hook.command.program:app")
    by_zip = outcome([python, tmp_path / "hook.pyz", "run", "probe.py"], project)
    stock = outcome([python, "probe.py"], project)
    for done, home in ((by_folder, target), (by_zip, tmp_path / "hook.pyz")):
        assert (done["hooked"], done["err"], done["code"]) == (True, "", 0)
        folder = str(home / "unsloth_hook" / "command" / "run_sitecustomize")
        assert done["out"]["path"] == [stock["out"]["path"][0], folder, *stock["out"]["path"][1:]]
    code = "import unsloth_hook.patching, importlib; print(importlib.reload(unsloth_hook.patching).__file__)"
    shown = outcome([python, tmp_path / "hook.pyz", "run", "-c", code], project)
    assert shown["out"] == str(tmp_path / "hook.pyz" / "unsloth_hook" / "patching.py") + "\n", shown["err"]


def test_it_chains_to_the_users_own_sitecustomize(project: Path, without_line: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.chained = __file__\n")
    done = outcome(run("-c", "print(chained)", python=without_line), project, {"PYTHONPATH": str(tmp_path)})
    assert done["out"] == f"{tmp_path / 'sitecustomize.py'}\n"


AS_CHILD = """
import os, signal, sys
from unsloth_hook.command import run
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what it starts in the background
sys.exit(run.as_child(sys.argv[1:], os.environ))
"""


def test_where_there_is_no_exec_a_child_does_the_same(project: Path) -> None:
    """The way of Windows, tried on the platform of these tests."""
    by_child = [hooked_python(), "-c", AS_CHILD]
    for arguments, code in ((["exits.py"], 37), (["raises.py"], 1), (["killed.py"], 128 + signal.SIGKILL)):
        stock = outcome([hooked_python(), *arguments], project)
        ours = outcome([*by_child, hooked_python(), *arguments], project)
        assert (ours["out"], ours["err"], ours["code"]) == (stock["out"], stock["err"], code)
    (project / "waits.py").write_text(WAITS)
    process = start([*by_child, hooked_python(), "waits.py"], project)
    with deadlock_ends(process):
        assert process.stdout.readline() == "ready\n"
        while not hands_on(process.pid, signal.SIGUSR2):  # the last that it takes in hand
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)  # a console would have sent it to the child as well
        time.sleep(0.2)  # on a slow machine it is ended by the second, which is no failure
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
    with pytest.raises(SystemExit) as ended:
        absent()
    assert ended.value.code == 127


def hands_on(pid: int, number: int) -> bool:
    """Has this process a handler for a signal? On a platform that does not show it, it is taken to have one."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    (caught,) = re.findall(r"^SigCgt:\s*(\w+)$", status.read_text(), flags=re.MULTILINE)
    return bool(int(caught, 16) >> (number - 1) & 1)


def absent() -> None:
    from unsloth_hook.command import run

    try:
        run.as_child(["./no/such/program"], os.environ)
    except run.CannotRun as error:
        sys.exit(error.exit_code)


def test_help_teaches_and_imports_nothing_heavy(project: Path) -> None:
    heavy = "torch", "transformers", "trl", "numpy"
    for arguments in (["--help"], ["run", "--help"], ["run", "-h"], ["enable", "--help"], ["verify", "--help"]):
        command = [hooked_python(), "-X", "importtime", "-m", "unsloth_hook", *arguments]
        done = outcome(command, project, {"COLUMNS": "80"})
        assert done["code"] == 0
        imported = {line.rpartition("|")[2].strip() for line in done["err"].splitlines()}
        assert "typer" in imported
        assert imported.isdisjoint(heavy)
        assert max(map(len, done["out"].splitlines())) <= 80
    assert "torchrun" in outcome(run("--help"), project)["out"]
