"""Train a tiny Llama with TRL on a CPU, save it, and open its files in a Python where unsloth_hook is blocked.

    UNSLOTH_HOOK=1 python docs/examples/train_tiny.py

Nothing is downloaded: the model and its tokenizer are made here. It takes less than a minute. Without the hook it says
so and exits with 1.
"""

import argparse
import os
import pickletools
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

EXTRA_FIELDS = (
    "vllm_sampling_params",
    "unsloth_num_chunks",
    "unsloth_logit_chunk_multiplier",
    "unsloth_grpo_mini_batch",
    "max_seq_length",
)

# What runs in the child: a Python that cannot import anything of Unsloth or of the hook.
CHILD = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.lower().startswith("unsloth"):
            raise ModuleNotFoundError(f"{name} is blocked here", name=name)

sys.meta_path.insert(0, Block())
import torch

for label, file in zip(sys.argv[1::2], sys.argv[2::2]):
    args = torch.load(file, weights_only=False)
    print(f"  {label}: {type(args).__module__}.{type(args).__qualname__}")
    print("    max_length =", args.max_length, "  extra fields:",
          {name: value for name, value in vars(args).items() if name.startswith(("unsloth", "vllm_s", "max_seq"))})
print("  modules with 'unsloth' in their name:", [name for name in sys.modules if "unsloth" in name.lower()])
"""


def require_hook():
    """Exit with 1 and say what to do unless the hook is on in this Python."""
    try:
        import unsloth_hook
    except ModuleNotFoundError:
        sys.exit("train_tiny.py needs unsloth_hook, which is not installed here: pip install unsloth-hook")
    if not unsloth_hook.status()["active"]:
        command = f"UNSLOTH_HOOK=1 {os.path.basename(sys.executable)} {sys.argv[0]}"
        sys.exit(f"unsloth_hook is installed but not on: trl.SFTConfig is TRL's own class. Run: {command}")
    import trl

    if not unsloth_hook.is_patched(trl.SFTConfig):
        sys.exit(f"unsloth_hook is on but left trl.SFTConfig as it is: {unsloth_hook.status()['classes']}")


def make_tokenizer(texts):
    """Make a tokenizer with a token for each word of the texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = sorted({word for text in texts for word in text.split()})
    vocabulary = {word: number for number, word in enumerate(["<pad>", "<unk>", "<s>", "</s>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def make_model(tokenizer):
    """Make a Llama with two layers and random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LlamaForCausalLM(config)


def train(args):
    """Train for the steps that `args` says, save, and return the folder of the checkpoint."""
    from datasets import Dataset
    from trl import SFTTrainer

    texts = [f"the {colour} {animal} sleeps" for colour in ("red", "green", "blue") for animal in ("cat", "dog", "owl")]
    tokenizer = make_tokenizer(texts)
    trainer = SFTTrainer(
        model=make_model(tokenizer),
        args=args,
        train_dataset=Dataset.from_dict({"text": texts}),
        processing_class=tokenizer,
    )
    loss = trainer.train().training_loss
    print(f"  given {type(args).__name__}, the trainer holds {type(trainer.args).__name__}; loss {loss:.2f}")
    for name in EXTRA_FIELDS:
        print(f"    {name} = {getattr(trainer.args, name)!r}")
    print(f"    max_length = {trainer.args.max_length!r}")
    return Path(args.output_dir, f"checkpoint-{args.max_steps}")


def show_routes():
    """Print the class that each of TRL's four names is bound to."""
    import trl
    import trl.trainer.sft_config
    import trl.trainer.sft_trainer

    for name in ("trl", "trl.trainer", "trl.trainer.sft_config", "trl.trainer.sft_trainer"):
        cls = sys.modules[name].SFTConfig
        print(f"  {name}.SFTConfig: {cls}, the same object: {cls is trl.SFTConfig}")


def pickle_globals(file):
    """Return the names that a file of `torch.save` asks Python to import, without running any of it."""
    with zipfile.ZipFile(file) as archive:
        data = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    return sorted({arg.replace(" ", ".") for opcode, arg, _ in pickletools.genops(data) if opcode.name == "GLOBAL"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output-dir", type=Path, help="where to keep the checkpoints (default: nowhere)")
    options = parser.parse_args()
    require_hook()

    from transformers import TrainingArguments
    from trl import SFTConfig

    with tempfile.TemporaryDirectory() as temporary:
        output = options.output_dir or Path(temporary)
        common = {
            "max_steps": 3,
            "per_device_train_batch_size": 2,
            "save_strategy": "steps",
            "save_steps": 3,
            "logging_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
            "use_cpu": True,
            "bf16": False,
            "seed": 0,
        }
        print("The class, by four routes:")
        show_routes()

        print("\nTraining with SFTConfig(unsloth_num_chunks=4, max_seq_length=64):")
        config = SFTConfig(output_dir=str(output / "sft"), unsloth_num_chunks=4, max_seq_length=64, **common)
        checkpoints = {"SFTConfig": train(config)}

        print("\nTraining with plain TrainingArguments:")
        checkpoints["TrainingArguments"] = train(TrainingArguments(output_dir=str(output / "plain"), **common))

        files = {label: folder / "training_args.bin" for label, folder in checkpoints.items()}
        print("\nWhat training_args.bin asks the Python that opens it to import:")
        for name in pickle_globals(files["SFTConfig"]):
            print(f"  {name}")

        print("\nThe same files in a Python where unsloth_hook is blocked:", flush=True)
        arguments = [str(item) for pair in files.items() for item in pair]
        subprocess.run([sys.executable, "-c", CHILD, *arguments], env={**os.environ, "UNSLOTH_HOOK": "0"}, check=True)
        if options.output_dir:
            print(f"\nThe checkpoints are in {output}")


if __name__ == "__main__":
    main()
