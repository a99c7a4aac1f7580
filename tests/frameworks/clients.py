"""The clients: which release of which program, and the commands that are run, stock and hooked. A new one: a row.

A client's environment is that of the folder of its name in envs/: `requirements.txt`, then, without what they depend
on, `no-deps.txt`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

MODEL = "model"  # tiny.py makes it in the working directory, and data/


@dataclasses.dataclass(frozen=True)
class Command:
    """One command line, run in a folder with model/ and data/, that writes to output/.

    Attributes:
        line: the command line; the first word is a program of the client's environment.
        config: what config.yaml holds, which the command line names.
        files: other files for its folder, by name, which its Python can import.
        processes: how many train.
        uses_trl: whether it imports a config of TRL's.
    """

    line: str
    config: Mapping[str, Any] | None = None
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    processes: int = 1
    uses_trl: bool = True


@dataclasses.dataclass(frozen=True)
class Client:
    """A program, and what is run of it.

    Attributes:
        distribution: the name that pip knows.
        version: the release that is in envs/.
        commands: by the names that the tests go by.
        env: variables for each command.
    """

    distribution: str
    version: str
    commands: Mapping[str, Command]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)


# What every command is asked: four steps on a CPU, saved in the middle and at the end, nothing sent anywhere.
TRAIN = {
    "output_dir": "output",
    "max_steps": 4,
    "save_steps": 2,
    "logging_steps": 1,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 1,
    "learning_rate": 0.001,
    "report_to": "none",
    "seed": 7,
    "bf16": False,
    "use_cpu": True,
    "dataloader_num_workers": 0,
}
REWARD = """\
def by_length(completions, **kwargs):
    return [float(len(completion[0]["content"]) % 5) for completion in completions]
"""


def trl(data: str, **options: Any) -> dict[str, Any]:
    return {**TRAIN, "model_name_or_path": MODEL, "dtype": "float32", "dataset_name": f"data/{data}", **options}


SFT = trl("messages", max_length=64)
DPO = trl("preference", max_length=64)
GRPO = trl(
    "prompt",
    max_completion_length=8,
    num_generations=2,
    reward_funcs=["reward.by_length"],
    logging_strategy="steps",
)
TRAIN_DPO = """\
import atexit
import os
import sys

from datasets import load_dataset
from trl import DPOConfig, DPOTrainer, ModelConfig, ScriptArguments, TrlParser

script, config, model = TrlParser((ScriptArguments, DPOConfig, ModelConfig)).parse_args_and_config()
trainer = DPOTrainer(model.model_name_or_path, args=config, train_dataset=load_dataset(script.dataset_name)["train"])
trainer.train()
trainer.save_model()
trainer.accelerator.wait_for_everyone()
# Not by the end of Python: torch then joins gloo's threads, holding the GIL, and now and then waits for ever.
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)
"""
# What accelerate calls several GPUs starts processes; `use_cpu` makes them speak gloo.
TWO = "accelerate launch --multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no"

TRL = Client(
    "trl",
    "1.16.0",
    {
        "sft": Command("trl sft --config config.yaml", SFT),
        "dpo": Command("trl dpo --config config.yaml", DPO),
        "grpo": Command("trl grpo --config config.yaml", GRPO, {"reward.py": REWARD}),
        "accelerate": Command(
            f"{TWO} train.py --config config.yaml",
            DPO,
            {"train.py": TRAIN_DPO},
            processes=2,
        ),
    },
)


def swift(data: str, **options: Any) -> dict[str, Any]:
    return {
        **TRAIN,
        "model": MODEL,
        "model_type": "llama",
        "template": "chatml",
        "torch_dtype": "float32",
        "dataset": [f"data/{data}/train.jsonl"],
        "tuner_type": "full",
        "max_length": 64,
        "add_version": False,
        "split_dataset_ratio": 0,
        "dataset_num_proc": 1,
        "gradient_checkpointing": False,
        "check_model": False,  # else it asks a network
        **options,
    }


SWIFT = Client(
    "ms-swift",
    "4.6.0",
    {
        "sft": Command("swift sft config.yaml", swift("messages"), uses_trl=False),
        "dpo": Command("swift rlhf config.yaml", swift("rejected_response", rlhf_type="dpo")),
        "dpo-two-losses": Command(
            "swift rlhf config.yaml",
            swift("rejected_response", rlhf_type="dpo", loss_type=["sigmoid", "hinge"], loss_weights=[0.5, 0.5]),
        ),
        "grpo": Command(
            "swift rlhf config.yaml",
            swift(
                "messages",
                rlhf_type="grpo",
                num_generations=2,
                max_completion_length=8,
                use_vllm=False,
                external_plugins=["reward.py"],
                reward_funcs=["by_length"],
            ),
            {
                "reward.py": "from swift.rewards import ORM, orms\n\n\nclass ByLength(ORM):\n"
                "    def __call__(self, completions, **kwargs):\n"
                "        return [float(len(completion) % 5) for completion in completions]\n\n\n"
                'orms["by_length"] = ByLength\n'
            },
        ),
    },
)


def llamafactory(stage: str, data: str, **options: Any) -> Command:
    config = {
        **TRAIN,
        "stage": stage,
        "do_train": True,
        "model_name_or_path": MODEL,
        "infer_dtype": "float32",
        "template": "chatml",
        "finetuning_type": "full",
        "dataset_dir": "data",
        "dataset": data,
        "cutoff_len": 64,
        "overwrite_cache": True,
        "preprocessing_num_workers": 1,
        **options,
    }
    # It imports torchaudio, which text does not need and which is not released for every torch.
    return Command("llamafactory-cli train config.yaml", config, {"torchaudio.py": ""})


LLAMA_FACTORY = Client(
    "llamafactory",
    "0.9.5",
    {
        "sft": llamafactory("sft", "alpaca"),
        "dpo": llamafactory("dpo", "alpaca_ranking"),
        "kto": llamafactory("kto", "alpaca_kto"),
        "rm": llamafactory("rm", "alpaca_ranking"),
    },
)


def axolotl(data: str, kind: str, *, of_data: Any = (), **options: Any) -> dict[str, Any]:
    other_names = ("report_to", "per_device_train_batch_size")
    return {
        **{name: value for name, value in TRAIN.items() if name not in other_names},
        "base_model": MODEL,
        "model_type": "LlamaForCausalLM",
        "tokenizer_type": "AutoTokenizer",
        "chat_template": "tokenizer_default",
        "datasets": [
            {"path": f"data/{data}/train.jsonl", "ds_type": "json", "split": "train", "type": kind, **dict(of_data)}
        ],
        "dataset_prepared_path": "prepared",
        "dataset_num_proc": 1,
        "sequence_len": 64,
        "micro_batch_size": 2,
        "num_epochs": 1,
        "optimizer": "adamw_torch",
        "lr_scheduler": "linear",
        **options,
    }


AXOLOTL_TRAIN = "axolotl train config.yaml --launcher python"
PROMPT = {"field_messages": "prompt"}
AXOLOTL_REWARD = (
    REWARD
    + """

def transform(cfg, *args, **kwargs):
    return lambda example, tokenizer=None: {"prompt": example["prompt"]}
"""
)

AXOLOTL = Client(
    "axolotl",
    "0.19.0",
    {
        "sft": Command(AXOLOTL_TRAIN, axolotl("messages", "chat_template")),
        "dpo": Command(AXOLOTL_TRAIN, axolotl("preference", "chat_template.default", of_data=PROMPT, rl="dpo")),
        "simpo": Command(
            AXOLOTL_TRAIN, axolotl("preference", "chat_template.default", of_data=PROMPT, rl="simpo", simpo_gamma=0.5)
        ),
        "orpo": Command(AXOLOTL_TRAIN, axolotl("conversations", "chat_template.argilla", rl="orpo")),
        "kto": Command(AXOLOTL_TRAIN, axolotl("labelled", "chatml.argilla", rl="kto", remove_unused_columns=False)),
        "reward": Command(AXOLOTL_TRAIN, axolotl("answers", "bradley_terry.chat_template", reward_model=True)),
        "grpo": Command(
            AXOLOTL_TRAIN,
            axolotl(
                "prompt",
                "reward.transform",
                rl="grpo",
                trl={"num_generations": 2, "max_completion_length": 8, "reward_funcs": ["reward.by_length"]},
            ),
            {"reward.py": AXOLOTL_REWARD},
        ),
    },
    env={"ACCELERATE_USE_CPU": "true", "AXOLOTL_DO_NOT_TRACK": "1"},
)

CLIENTS = {client.distribution: client for client in (TRL, SWIFT, AXOLOTL, LLAMA_FACTORY)}
