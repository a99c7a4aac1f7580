"""Sessions that need environments of their own. Run by nox in the environment that has the tests:

    .venv/bin/nox -f tests/noxfile.py --list
    .venv/bin/nox -f tests/noxfile.py -s docs                   # the manual, built strictly, and its links checked

The sessions' environments lie in .nox.
"""

from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parents[1]

nox.options.envdir = str(ROOT / ".nox")


@nox.session
def docs(session: nox.Session) -> None:
    """The manual, built strictly, and what tests/check_site.py finds in the built pages. Neither torch nor TRL."""
    session.chdir(ROOT)
    site = str(Path(session.create_tmp()) / "site")
    session.install("-c", "tests/constraints.txt", ".[docs]")
    # Nobody needs its advertisement of successors.
    session.run("mkdocs", "build", "--strict", "-f", ".mkdocs.yml", "-d", site, env={"NO_MKDOCS_2_WARNING": "1"})
    session.run("python", "tests/check_site.py", site)
