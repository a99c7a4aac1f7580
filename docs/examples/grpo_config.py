"""A GRPOConfig with Unsloth's fields, from code and from a command line.

    UNSLOTH_HOOK=1 python docs/examples/grpo_config.py

Without the hook TRL answers that it does not know these fields.
"""

from transformers import HfArgumentParser
from trl import GRPOConfig

EXTRAS = ("unsloth_num_chunks", "unsloth_grpo_mini_batch", "unsloth_logit_chunk_multiplier", "vllm_sampling_params")


def show(title, config):
    print(f"{title}:", {name: getattr(config, name) for name in EXTRAS})


common = {
    "output_dir": "outputs",
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "use_cpu": True,
    "bf16": False,
}

show("nothing said", GRPOConfig(**common))
show("in code", GRPOConfig(unsloth_num_chunks=4, unsloth_grpo_mini_batch=2, **common))

line = "--output_dir outputs --use_cpu true --bf16 false --unsloth_num_chunks 4 --unsloth_grpo_mini_batch 2"
(parsed,) = HfArgumentParser(GRPOConfig).parse_args_into_dataclasses(line.split())
show("on a command line", parsed)

# A mini batch is a part of the batch, and cannot be larger.
try:
    GRPOConfig(unsloth_grpo_mini_batch=999, **common)
except ValueError as error:
    print("too large:", error)
