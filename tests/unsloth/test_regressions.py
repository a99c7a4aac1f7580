"""What Unsloth's own tests of this fault ask for holds with the hook, in child processes too."""

import child_regression
import observe
import probes
import pytest
from observe import Observer

pytestmark = pytest.mark.unsloth

# They call functions of Unsloth's, or ask for behaviour, that came with its fix or after it.
ONLY_FIXED = {
    "a_sibling_is_saved_as_the_owner",
    "an_unrelated_class_is_left_alone",
    "registering_again_changes_nothing",
    "patched_is_told_from_not_patched",
    "the_way_back_to_trls_class",
    "a_config_that_builds_on_sft_is_not_downcast",
}
CHECKS = [function.__name__ for function in child_regression.CHECKS]
FAULTS = {
    "a_captured_config_saves",
    "a_new_config_saves_under_trls_name",
    "a_captured_config_saves_under_trls_name",
    "every_protocol",
    "names_of_the_class",
    "the_captured_class_knows_its_owner",
    "opens_where_unsloth_is_not_imported",
    "travels_to_a_spawned_process",
}  # of the old release, without the hook


def pair(observer: Observer) -> dict[str, observe.Run]:
    return observer.pair("regressions", "child_regression.py")


@pytest.mark.parametrize("check", CHECKS)
def test_what_holds_without_the_hook_holds_with_it(observer: Observer, check: str) -> None:
    stock, hooked = (run.facts[check] for run in pair(observer).values())
    if probes.FIXED or check not in ONLY_FIXED:
        assert hooked == "passed", hooked
    if probes.FIXED:
        assert stock == "passed", stock


def test_the_old_release_fails_without_the_hook(observer: Observer) -> None:
    stock, hooked = (run.facts for run in pair(observer).values())
    if probes.FIXED:
        assert [check for check in CHECKS if stock[check] != "passed"] == []
    else:
        assert [check for check in CHECKS if stock[check] != "passed" and check in FAULTS] == sorted(
            FAULTS, key=CHECKS.index
        )
