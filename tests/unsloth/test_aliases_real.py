"""The alias finder beside the real Unsloth: an alias imported before it, and a compiled file that is missing."""

import pytest
from observe import Observer

pytestmark = pytest.mark.unsloth


def facts(observer: Observer, which: str) -> "dict[str, object]":
    return observer.pair("aliases", "child_aliases.py")[which].facts


def test_an_alias_imported_before_unsloth_gives_way_to_the_real_file(observer: Observer) -> None:
    stock, hooked = facts(observer, "stock"), facts(observer, "hooked")
    assert stock["before"] == ["ModuleNotFoundError"] * 3
    assert hooked["before"] == ["imported"] * 3  # so there was an alias to give way
    assert hooked["still an alias"] == []
    assert hooked["real file"] == stock["real file"] == "CACHE/UnslothSFTTrainer.py"
    assert hooked["patched"] == stock["patched"] and "SFTTrainer" in str(hooked["patched"])


def test_with_a_compiled_file_missing_the_import_fails_as_without_the_hook(observer: Observer) -> None:
    stock, hooked = facts(observer, "stock"), facts(observer, "hooked")
    missing = hooked["missing"]
    assert isinstance(missing, dict)
    assert missing == stock["missing"]
    assert {found[0] for found in missing.values()} == {"ModuleNotFoundError"}
    assert missing["UnslothSFTTrainer"] == [
        "ModuleNotFoundError",
        "UnslothSFTTrainer",
        "No module named 'UnslothSFTTrainer'",
    ]
    assert hooked["probed"] == stock["probed"] == []
