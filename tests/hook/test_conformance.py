"""Under the hook the import system answers as without it, for every kind of module; how others do is on record."""

import importlib.metadata
import json
import os
import sys
from pathlib import Path

import conformance
import pytest

RECORD = json.loads(conformance.RECORD.read_text(encoding="utf-8"))

Answers = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The modules of every kind."""
    if not hasattr(os, "fork"):
        pytest.skip("platform: no fork")
    folder = tmp_path_factory.mktemp("kinds")
    conformance.prepare(folder)
    return folder


@pytest.fixture(scope="module")
def stock(folder: Path) -> Answers:
    """The answers without a hook."""
    return conformance.ask("no hook", folder)


def test_the_kinds_are_what_they_are_called(stock: Answers) -> None:
    """And so what is compared below is no list of like failures."""
    hints = {
        "source": "SourceFileLoader",
        "package": "SourceFileLoader",
        "bytecode only": "SourcelessFileLoader",
        "zip": "zipimport.zipimporter",
        "namespace package": "NamespaceLoader",
        "in a namespace package": "SourceFileLoader",
        "editable by setuptools": "SourceFileLoader",
        "editable by hatchling": "SourceFileLoader",
        "wrapped loader": "WrappingLoader",
        "loader with load_module only": "LegacyLoader",
        "finder that gives no loader": "NamespaceLoader",
    }
    for kind, hint in hints.items():
        assert hint in stock[kind]["the module, and what it sees while executed"], kind
    assert "editable" in stock["editable by setuptools"]["spec.origin"]
    assert "/project/" in stock["editable by hatchling"]["spec.origin"]
    code = [kind for kind in hints if "NamespaceLoader" not in hints[kind]]
    for kind in code:
        assert stock[kind]["works"] == "False", kind
        assert "x" in stock[kind]["traceback"] or "failing_config" in stock[kind]["traceback"], kind
        assert "<importer>" in stock[kind]["warnings"], kind
        failed = {name for name, text in stock[kind].items() if text.partition(":")[0].endswith("Error")}
        if kind != "loader with load_module only":
            assert failed == ({"inspect.getsource"} if kind == "bytecode only" else set()), kind
    assert stock.keys() == conformance.KINDS.keys() == hints.keys()


def test_under_our_hook_every_answer_is_as_without_it(folder: Path, stock: Answers) -> None:
    found = conformance.compare(stock, conformance.ask("unsloth_hook", folder))
    as_without: dict[str, list[str]] = {kind: [] for kind in stock}
    if sys.version_info < (3, 11):  # no frame can be taken off the traceback that pdb prints
        as_without["loader with load_module only"] = ["pdb -m"]
    assert {kind: cell["differs"] for kind, cell in found.items()} == as_without
    no_code = {"namespace package", "finder that gives no loader"}
    assert {kind for kind, cell in found.items() if not cell["works"]} == no_code
    if sys.version_info >= (3, 11):
        assert found == RECORD["table"]["unsloth_hook"]


@pytest.mark.parametrize("peer", conformance.PEERS)
def test_the_record_of_another_hook_is_what_it_does(folder: Path, stock: Answers, peer: str) -> None:
    if RECORD["versions"]["Python"] != "{}.{}".format(*sys.version_info):
        pytest.skip("platform: the record is of another Python")
    renew = "`python tests/hook/conformance.py` renews the record"
    assert importlib.metadata.version(peer) == RECORD["versions"][peer], renew
    found = conformance.compare(stock, conformance.ask(peer, folder))
    assert found == RECORD["table"][peer], renew


def test_the_page_is_the_record() -> None:
    assert conformance.PAGE.read_text(encoding="utf-8") == conformance.page(RECORD)
