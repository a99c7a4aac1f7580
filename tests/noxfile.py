"""Sessions that need environments of their own. Run by nox in the environment that has the tests:

    .venv/bin/nox -f tests/noxfile.py --list
    .venv/bin/nox -f tests/noxfile.py -s contracts                  # all of unsloth_hook/releases/versions_tried.py
    .venv/bin/nox -f tests/noxfile.py -s release -- 0.20.0 4.53.2   # any other: TRL and, if it matters, transformers
    .venv/bin/nox -f tests/noxfile.py -s docs                       # the manual, built strictly, and its links checked
    .venv/bin/nox -f tests/noxfile.py -s pythons                    # on every Python, what needs neither torch nor TRL
    .venv/bin/nox -f tests/noxfile.py -s pythons-3.12               # on one
    .venv/bin/nox -f tests/noxfile.py -s "frameworks(ms-swift)"     # a framework's commands, without and with the hook

The sessions' environments lie in .nox. Those for releases of TRL import torch and the other
libraries from the environment that runs nox.
"""

import sys
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from unsloth_hook.releases import versions_tried  # noqa: E402

nox.options.envdir = str(ROOT / ".nox")

# What transformers 4 needs besides: the newest of their kind, so that pip need not look for them.
WITH_TRANSFORMERS_4 = ("huggingface-hub==0.36.2", "datasets==5.0.1", "fsspec==2026.6.0")
# What experimental packages of TRL 1.0 to 1.8 import and TRL does not require.
OPTIONAL = ("aiohttp", "requests", "peft")
# The files with tests that are marked `contract`: to collect all costs each cell seconds.
CONTRACTS = (
    "tests/hook/test_patched_classes.py",
    "tests/hook/test_pickles.py",
    "tests/hook/test_fields.py",
    "tests/hook/test_no_trace.py",
    "tests/hook/test_parsers.py",
    "tests/idioms/test_idioms.py",
)

CLIENTS = ROOT / "tests" / "frameworks" / "envs"


def share_libraries(session: nox.Session) -> None:
    """Let the session's Python import what the one that runs nox can, after its own; pip sees that too."""
    session.chdir(ROOT)
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = session.run("python", "-c", script, silent=True)
    shared = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    Path(str(own).strip(), "_shared.pth").write_text("".join(f"{path}\n" for path in shared), encoding="utf-8")


def install(session: nox.Session, trl: str, transformers: str | None) -> None:
    share_libraries(session)
    wanted = [f"trl=={trl}", f"transformers=={transformers}" if transformers else "transformers", *OPTIONAL]
    if transformers and transformers.startswith("4."):
        wanted += WITH_TRANSFORMERS_4
    session.install("--no-compile", *wanted)
    session.install("--no-deps", "--no-build-isolation", "-e", ".")


def run_contracts(session: nox.Session) -> None:
    session.run("python", "-m", "pytest", "-q", "-m", "contract", "-p", "no:cacheprovider", *CONTRACTS)


@nox.session
@nox.parametrize(["trl", "transformers"], versions_tried.cells()[1:])  # the newest is where the whole suite runs
def contracts(session: nox.Session, trl: str, transformers: str) -> None:
    """The contract tests with one release of TRL."""
    install(session, trl, transformers)
    run_contracts(session)


@nox.session
def release(session: nox.Session) -> None:
    """The contract tests with the release that is given: TRL, and transformers."""
    trl, transformers = [*session.posargs, None, None][:2]
    if trl is None:
        session.error("which release? nox -f tests/noxfile.py -s release -- TRL [TRANSFORMERS]")
    install(session, trl, transformers)
    run_contracts(session)


@nox.session
@nox.parametrize(["trl", "transformers"], versions_tried.cells())
def record(session: nox.Session, trl: str, transformers: str) -> None:
    """Put one release on record in tests/data/releases.json, and write the tables of docs/versions.md."""
    install(session, trl, transformers)
    session.run(
        "python", "-W", "ignore", "tests/releases/release_tables.py", "--record", env={"TRL_EXPERIMENTAL_SILENCE": "1"}
    )


@nox.session
def docs(session: nox.Session) -> None:
    """The manual, built strictly, and what check_site.py finds in the built pages. Neither torch nor TRL."""
    session.chdir(ROOT)
    site = str(Path(session.create_tmp()) / "site")
    session.install("-c", "tests/constraints.txt", ".[docs]")
    # Nobody needs its advertisement of successors.
    session.run("mkdocs", "build", "--strict", "-f", ".mkdocs.yml", "-d", site, env={"NO_MKDOCS_2_WARNING": "1"})
    session.run("python", "tests/project/check_site.py", site)


# What needs neither torch nor TRL, which are not installed there: the engine, conformance of loaders and finders,
# failures, start-up, aliases, and every command.
WITHOUT_TORCH = (
    "tests/hook/test_conformance.py",
    "tests/hook/test_finder.py",
    "tests/hook/test_isolation.py",
    "tests/hook/test_ownership.py",
    "tests/hook/test_pth.py",
    "tests/project/test_pythons.py",
    "tests/hook/test_sitecustomize.py",
)
NEEDED = ("pytest", "pytest-xdist", "setuptools>=70.1", "hatchling", "editables", "wrapt")


@nox.session(python=["3.10", "3.11", "3.12", "3.13"])
def pythons(session: nox.Session) -> None:
    """What needs neither torch nor TRL, on one Python. In CI a Python that is not found is an error."""
    session.chdir(ROOT)
    pinned = [] if session.python == "3.10" else ["-c", "tests/constraints.txt"]  # made for 3.11 and later
    session.install("--no-compile", *pinned, *NEEDED)
    session.install("--no-compile", "--no-build-isolation", *pinned, "-e", ".")
    # The record of other hooks is compared where they are installed.
    options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-k", "not record_of_another_hook"]
    session.run("python", "-m", "pytest", *options, *WITHOUT_TORCH, *session.posargs)


@nox.session
@nox.parametrize("client", [nox.param(folder.name, id=folder.name) for folder in sorted(CLIENTS.iterdir())])
def frameworks(session: nox.Session, client: str) -> None:
    """The commands of one client of TRL, without and with the hook. Its environment imports nothing from another."""
    session.chdir(ROOT)
    folder = CLIENTS / client
    session.install("--no-compile", "-r", str(folder / "requirements.txt"), "-e", ".")
    if (folder / "no-deps.txt").exists():
        session.install("--no-compile", "--no-deps", "-r", str(folder / "no-deps.txt"))
    options = ["-q", "-p", "no:cacheprovider", "--client", client]
    session.run("python", "-m", "pytest", *options, "tests/frameworks", *session.posargs)
