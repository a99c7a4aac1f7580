"""Which clients' tests are collected: that of `--client`, or those of every client that is installed."""

from importlib import metadata

import pytest
from clients import CLIENTS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--client", choices=sorted(CLIENTS), help="the client to test, which must be installed")
    parser.addoption("--command", action="append", help="only this command of it; may be repeated")


def installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = metafunc.config.getoption("--client")
    clients = [wanted] if wanted else [name for name in CLIENTS if installed(name) == CLIENTS[name].version]
    if "command" in metafunc.fixturenames:
        only = metafunc.config.getoption("--command")
        pairs = [(name, command) for name in clients for command in CLIENTS[name].commands]
        metafunc.parametrize(["client", "command"], [pair for pair in pairs if not only or pair[1] in only])
    else:
        metafunc.parametrize("client", clients)
