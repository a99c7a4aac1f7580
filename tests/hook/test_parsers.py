"""Contract 2: an option of somebody else's wins, whatever the parser, the order and the way that the value comes."""

from pathlib import Path
from typing import Any

import helpers
import pytest
import stock
from stock import EXTRAS

contract = pytest.mark.contract
SCRIPT = (Path(stock.SUPPORT) / "child_parsers.py").read_text(encoding="utf-8")


@helpers.once
def seen() -> Any:
    """What the two processes parsed, by the name that is the extra's and somebody else's."""
    return stock.at_once(
        stock=lambda: stock.run(SCRIPT, "0", *EXTRAS),
        hooked=lambda: stock.run(SCRIPT, "1", *EXTRAS),
    )


@contract
@pytest.mark.parametrize("name", EXTRAS)
def test_it_parses_as_on_stock(name: str) -> None:
    plain, hooked = seen()["stock"][name], seen()["hooked"][name]
    assert len(plain) == 14
    for types, ways in plain.items():
        assert hooked[types] == ways, types


def test_the_values_do_arrive() -> None:
    seven = seen()["hooked"]["max_seq_length"]["TrlParser Number SFTConfig"]
    assert seven["option"] == seven["yaml"]
    assert seven["option"][0] == ["Number", {"max_seq_length": "7"}]
    assert seven["option"][1][1]["max_length"] == "1024"
