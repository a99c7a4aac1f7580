"""What moved, went or was renamed between releases, for what cannot be found by rule in the installed ones.

The file to edit when TRL moves or removes a config. Versions are minor releases, first and last; None is "still there
in 1.16". Read from the wheels of TRL 0.7 to 1.16.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One home of one class. ``base`` is the config that it extended, "" for ``TrainingArguments`` itself."""

    name: str
    base: str
    module: str
    first: str
    last: str | None


_T, _E = "trl.trainer.", "trl.experimental."
HISTORY: tuple[Row, ...] = (
    Row("A2POConfig", "", _E + "a2po.a2po_config", "1.6", None),
    Row("AlignPropConfig", "", _T + "alignprop_config", "0.9", "0.23"),
    Row("AsyncDistillationConfig", "", _E + "async_distillation.async_distillation_config", "1.11", None),
    Row("AsyncGRPOConfig", "", _E + "async_grpo.async_grpo_config", "1.0", None),
    Row("BaseConfig", "", _T + "base_config", "0.29", "0.29"),
    Row("BCOConfig", "", _T + "bco_config", "0.10", "0.28"),
    Row("BCOConfig", "", _E + "bco.bco_config", "0.25", "1.13"),
    Row("CPOConfig", "", _T + "cpo_config", "0.8", "0.28"),
    Row("CPOConfig", "", _E + "cpo.cpo_config", "0.26", None),
    Row("DDPOConfig", "", _T + "ddpo_config", "0.7", "0.23"),
    Row("DistillationConfig", "", _E + "distillation.distillation_config", "1.1", "1.9"),
    Row("DistillationConfig", "", _T + "distillation_config", "1.10", None),
    Row("DPOConfig", "", _T + "dpo_config", "0.9", None),
    Row("DPPOConfig", "GRPOConfig", _E + "dppo.dppo_config", "1.0", "1.8"),
    Row("FDivergenceType", "", _T + "dpo_config", "0.9", "0.28"),
    Row("GFPOConfig", "GRPOConfig", _E + "gfpo.gfpo_config", "0.24", "1.7"),
    Row("GKDConfig", "SFTConfig", _T + "gkd_config", "0.11", "0.28"),
    Row("GKDConfig", "SFTConfig", _E + "gkd.gkd_config", "0.26", None),
    Row("GMPOConfig", "GRPOConfig", _E + "gmpo.gmpo_config", "1.7", None),
    Row("GOLDConfig", "SFTConfig", _E + "gold.gold_config", "0.25", None),
    Row("GRPOConfig", "", _T + "grpo_config", "0.14", None),
    Row(
        "GRPOWithReplayBufferConfig",
        "GRPOConfig",
        _E + "grpo_with_replay_buffer.grpo_with_replay_buffer_config",
        "0.24",
        "1.13",
    ),
    Row("IterativeSFTConfig", "", _T + "iterative_sft_config", "0.18", "0.23"),
    Row("IWOPDConfig", "", _E + "iw_opd.iw_opd_config", "1.9", None),
    Row("KTOConfig", "", _T + "kto_config", "0.8", None),
    Row("KTOConfig", "", _E + "kto.kto_config", "0.26", "1.7"),
    Row("MiniLLMConfig", "GRPOConfig", _E + "minillm.minillm_config", "0.26", "1.14"),
    Row("NashMDConfig", "OnlineDPOConfig", _T + "nash_md_config", "0.11", "0.28"),
    Row("NashMDConfig", "OnlineDPOConfig", _E + "nash_md.nash_md_config", "0.26", "1.13"),
    Row("OnlineDPOConfig", "", _T + "online_dpo_config", "0.10", "0.28"),
    Row("OnlineDPOConfig", "", _E + "online_dpo.online_dpo_config", "0.26", None),
    Row("OnPolicyConfig", "", _T + "utils", "0.10", "0.26"),
    Row("OnpolicyRuntimeConfig", "", _T + "utils", "0.9", "0.9"),
    Row("ORPOConfig", "", _T + "orpo_config", "0.8", "0.28"),
    Row("ORPOConfig", "", _E + "orpo.orpo_config", "0.26", None),
    Row("PAPOConfig", "GRPOConfig", _E + "papo.papo_config", "0.25", "1.7"),
    Row("PPOConfig", "OnPolicyConfig", _T + "ppo_config", "0.7", "0.28"),
    Row("PPOConfig", "OnPolicyConfig", _E + "ppo.ppo_config", "0.26", "1.12"),
    Row("PPOv2Config", "PPOConfig", _T + "ppov2_config", "0.9", "0.12"),
    Row("PRMConfig", "", _T + "prm_config", "0.13", "0.28"),
    Row("PRMConfig", "", _E + "prm.prm_config", "0.26", "1.13"),
    Row("RewardConfig", "", _T + "reward_config", "0.7", None),
    Row("RLOOConfig", "", _T + "rloo_config", "0.9", None),
    Row("SDFTConfig", "", _E + "sdft.sdft_config", "1.0", None),
    Row("SDPOConfig", "", _E + "sdpo.sdpo_config", "1.0", None),
    Row("SelfDistillationConfig", "", _E + "self_distillation.self_distillation_config", "1.0", "1.5"),
    Row(
        "ServerDistillationConfig",
        "DistillationConfig",
        _E + "server_distillation.server_distillation_config",
        "1.9",
        None,
    ),
    Row("SFTConfig", "", _T + "sft_config", "0.9", None),
    Row("SSDConfig", "", _E + "ssd.ssd_config", "1.2", "1.15"),
    Row("TPOConfig", "", _E + "tpo.tpo_config", "1.3", None),
    Row("XPOConfig", "OnlineDPOConfig", _T + "xpo_config", "0.11", "0.28"),
    Row("XPOConfig", "OnlineDPOConfig", _E + "xpo.xpo_config", "0.26", "1.13"),
)


def rows(name: str) -> list[Row]:
    """The homes of class ``name`` (without a module), oldest first; empty if no release up to 1.16 had it."""
    return [row for row in HISTORY if row.name.lower() == name.lower()]


def had_it(name: str) -> str:
    """Which releases had class ``name``, as a phrase ("TRL 0.7 to 0.28 as trl.trainer.ppo_config"); "" if unknown."""
    homes = [f"TRL {row.first} {f'to {row.last}' if row.last else 'and later'} as {row.module}" for row in rows(name)]
    return ", ".join(homes)


def ancestors(name: str) -> list[str]:
    """``name`` and the configs that it extended in the releases that had it, nearest first, all without modules."""
    line = [name]
    while (found := rows(line[-1])) and found[0].base:
        line.append(found[0].base)
    return line


# Where classes of transformers and accelerate have moved to and from (transformers 4.3x to 5.24, accelerate 0.2x to
# 1.15).
MOVED_WITHIN = {
    "transformers": (
        "transformers.trainer_utils",
        "transformers.training_args",
        "transformers.trainer_pt_utils",
        "transformers.debug_utils",
        "transformers.utils.generic",
        "transformers.integrations.deepspeed",
        "transformers.utils.quantization_config",
        "transformers.trainer_callback",
    ),
    "accelerate": (
        "accelerate.utils.dataclasses",
        "accelerate.state",
        "accelerate.parallelism_config",
        "accelerate.utils.deepspeed",
    ),
}

# Fields that transformers and TRL have renamed, old name to new.
RENAMED = {"evaluation_strategy": "eval_strategy", "no_cuda": "use_cpu", "max_seq_length": "max_length"}
