"""`UNSLOTH_HOOK=first` with the real Unsloth: whoever comes first, Unsloth comes before."""

from typing import Any

import observe
import probes
import pytest
from observe import TRAINERS, Observer

pytestmark = pytest.mark.unsloth
WARNING = "should be imported before"
first = pytest.mark.parametrize("who", ["trl", "transformers", "peft"])


def framework(observer: Observer, who: str, hook: str = "first") -> observe.Run:
    """One child of `child_first.py`."""
    return observer.one(f"{hook}-{who}", "hooked", "child_first.py", [who], hook=hook)


@pytest.fixture(scope="session")
def as_asked(observer: Observer) -> dict[str, Any]:
    """The same without the hook, in a program that imports Unsloth first."""
    return framework(observer, "unsloth", "0").facts


@first
def test_unsloth_comes_along_and_does_not_complain(observer: Observer, who: str) -> None:
    run = framework(observer, who)
    assert run.facts["unsloth came along"]
    assert WARNING not in run.stderr
    assert "unsloth_hook:" not in run.stderr


def test_it_does_complain_with_the_plain_hook(observer: Observer) -> None:
    assert WARNING in observer.order("trl")["hooked"].stderr  # so that the line above is known to test something


@first
def test_the_modules_are_those_that_unsloth_imported(observer: Observer, who: str, as_asked: dict[str, Any]) -> None:
    modules = framework(observer, who).facts["modules"]
    assert modules == as_asked["modules"]
    assert modules["trl"]["executed"] == modules["peft"]["executed"] == 1  # transformers runs its own file twice
    for module in modules.values():
        assert module["imported"] and module["loader"].endswith(".SourceFileLoader")
        assert not module["initializing"]


@first
def test_the_patches_are_those_of_unsloth_first(observer: Observer, who: str, as_asked: dict[str, Any]) -> None:
    facts = framework(observer, who).facts
    assert facts["fields"]
    assert facts["forward"] == as_asked["forward"]
    if who == "trl":
        assert facts["trainers"] == as_asked["trainers"]
        assert len(facts["trainers"]) == TRAINERS
        assert facts["trainer"] == as_asked["trainer"] == "UnslothSFTTrainer"


def test_two_threads_both_get_their_module(observer: Observer) -> None:
    assert framework(observer, "threads").facts["threads"] == {"trl": "imported", "transformers": "imported"}


def test_the_old_release_probes_the_gpu_only_while_it_is_imported() -> None:
    if probes.FIXED:
        with probes.one_card():
            import torch

            assert "torch" in torch.__name__ and torch.cuda.is_available.__module__.startswith("torch")
        return
    import torch

    before = torch.cuda.is_available()
    with probes.one_card():
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert (torch.cuda.is_available(), torch.cuda.device_count()) == (before, 0) == (False, 0)
