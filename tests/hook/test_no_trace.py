"""Contract 2: while nobody has set an extra, everything that a config writes is what stock TRL writes."""

from pathlib import Path
from typing import Any

import helpers
import pytest
import stock
from stock import CONFIGS, EXTRAS

contract = pytest.mark.contract
every_config = pytest.mark.parametrize("name", CONFIGS)
SCRIPT = (Path(stock.SUPPORT) / "child_traces.py").read_text(encoding="utf-8")


@helpers.once
def seen() -> Any:
    """What the two processes wrote, by config."""
    return stock.at_once(
        stock=lambda: stock.run(SCRIPT, "0"),
        hooked=lambda: stock.run(SCRIPT, "1", *EXTRAS),
    )


def both(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return seen()["stock"][name], seen()["hooked"][name]


@contract
def test_every_config_was_looked_at() -> None:
    assert sorted(seen()["stock"]) == sorted(seen()["hooked"]) == sorted(CONFIGS)


@contract
@every_config
@pytest.mark.parametrize("form", ["written", "set back"])
def test_files_are_byte_for_byte_those_of_stock(name: str, form: str) -> None:
    plain, hooked = both(name)
    assert hooked[form] == plain[form]
    assert len(plain[form]) == 12


@contract
@every_config
def test_texts_are_those_of_stock(name: str) -> None:
    plain, hooked = both(name)
    assert hooked["shown"] == plain["shown"]
    assert "learning_rate" in plain["shown"]["yaml"]


@contract
@every_config
def test_trackers_are_told_what_stock_tells_them(name: str) -> None:
    plain, hooked = both(name)
    assert hooked["tracked"] == plain["tracked"]
    assert "learning_rate" in str(plain["tracked"]["tensorboard"])
    assert "learning_rate" in str(plain["tracked"]["wandb"])
    can_be_made = name[:4] not in ("PPOC", "RLOO")  # which have a None where the model card wants a number
    assert "learning_rate" in str(plain["tracked"]["model card"]) or not can_be_made


@contract
@every_config
@pytest.mark.parametrize("heir", ["Heir", "DataHeir", "copy", "deepcopy", "pickle"])
def test_subclasses_and_copies_leave_none_either(name: str, heir: str) -> None:
    plain, hooked = both(name)
    assert hooked["heirs"][heir] == plain["heirs"][heir]
