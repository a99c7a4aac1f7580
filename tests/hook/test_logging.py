"""The logger `unsloth_hook` and UNSLOTH_HOOK_LOG: one line for each swapped class, and no cost at start (issue 5)."""

import re

import preloaded
from helpers import run_child

MODULES = "import json, sys; print(json.dumps(sorted(sys.modules)))"
SWAP = "import trl.trainer.sft_config, trl.trainer.dpo_config, trl.trainer.callbacks"
LINE = re.compile(
    r"unsloth_hook: trl\.trainer\.(sft|dpo)_config\.(SFT|DPO)Config: patched in \d+\.\d ms, with "
    r"vllm_sampling_params, unsloth_num_chunks, .*max_seq_length"
)


def test_the_variable_prints_a_line_for_each_swapped_class() -> None:
    script = f"""
        import logging
        logging.basicConfig(level=logging.DEBUG, format="root: %(message)s")
        {SWAP}
    """
    said = preloaded.run_child(script, env={"UNSLOTH_HOOK": "1", "UNSLOTH_HOOK_LOG": "debug"}).stderr
    lines = [line for line in said.splitlines() if "patched in" in line]
    assert sorted(line.partition(":")[2].partition(":")[0] for line in lines) == [
        " trl.trainer.dpo_config.DPOConfig",
        " trl.trainer.sft_config.SFTConfig",
    ]
    assert all(LINE.fullmatch(line) for line in lines)


def test_without_it_a_program_can_listen_and_else_there_is_nothing() -> None:
    script = """
        import logging
        import trl.trainer.dpo_config
        logging.basicConfig(format="%(name)s: %(message)s")
        logging.getLogger("unsloth_hook").setLevel(logging.DEBUG)
        import trl.trainer.sft_config
    """
    said = preloaded.run_child(script, env={"UNSLOTH_HOOK": "1"}).stderr
    (line,) = [line for line in said.splitlines() if "unsloth_hook" in line]
    assert LINE.fullmatch(line)
    assert "SFTConfig" in line


def test_logging_is_imported_at_start_only_when_the_variable_asks() -> None:
    for value, imported in ((None, False), ("", False), ("debug", True), ("WARNING", True)):
        env = {"UNSLOTH_HOOK": "1", "UNSLOTH_HOOK_LOG": value}
        done = run_child(MODULES, env=env)
        assert ('"logging"' in done.stdout) == imported
        assert done.stderr == ""
    off = run_child(MODULES, env={"UNSLOTH_HOOK": "0", "UNSLOTH_HOOK_LOG": "debug"})
    assert "logging" not in off.stdout
    assert "unsloth" not in off.stdout


def test_a_level_that_is_none_is_said_once_and_harmless() -> None:
    done = run_child(MODULES, env={"UNSLOTH_HOOK": "1", "UNSLOTH_HOOK_LOG": "loud"})
    assert "UNSLOTH_HOOK_LOG='loud' is none of debug, info" in done.stderr
    assert done.stderr.count("\n") == 1
    assert '"unsloth_hook.finder"' in done.stdout
