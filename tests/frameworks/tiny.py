"""Make what the commands are run with: a tiny Llama, its tokenizer, and a few lines of data. Nothing is downloaded.

Run as a script in the client's own Python, `tiny.py FOLDER`: the client's releases write the files that they read.
"""

import json
import string
import sys
from pathlib import Path

COLOURS = ("red", "green", "blue", "grey")
ANIMALS = ("cat", "dog", "owl")
WORDS = ("the", "what", "does", "do", "?", "sleeps", "runs", "system", "user", "assistant")
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
# ChatML, as most clients have it.
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% generation %}{{ message.content }}{% endgeneration %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PAIRS = [
    (f"what does the {colour} {animal} do ?", f"the {colour} {animal} sleeps", f"the {colour} {animal} runs")
    for colour in COLOURS
    for animal in ANIMALS
]


def message(role, content):
    return {"role": role, "content": content}


# By the folder in data/, each with a file train.jsonl.
DATA = {
    "messages": [{"messages": [message("user", ask), message("assistant", good)]} for ask, good, _ in PAIRS],
    "preference": [
        {
            "prompt": [message("user", ask)],
            "chosen": [message("assistant", good)],
            "rejected": [message("assistant", bad)],
        }
        for ask, good, bad in PAIRS
    ],
    "prompt": [{"prompt": [message("user", ask)]} for ask, _, _ in PAIRS],
    "rejected_response": [
        {"messages": [message("user", ask), message("assistant", good)], "rejected_response": bad}
        for ask, good, bad in PAIRS
    ],
    "conversations": [
        {
            "chosen": [message("user", ask), message("assistant", good)],
            "rejected": [message("user", ask), message("assistant", bad)],
        }
        for ask, good, bad in PAIRS
    ],
    "answers": [{"system": "", "input": ask, "chosen": good, "rejected": bad} for ask, good, bad in PAIRS],
    "labelled": [
        {"instruction": ask, "completion": answer, "label": answer == good}
        for ask, good, bad in PAIRS
        for answer in (good, bad)
    ],
    "alpaca": [{"instruction": ask, "input": "", "output": good} for ask, good, _ in PAIRS],
    "alpaca_ranking": [{"instruction": ask, "chosen": good, "rejected": bad} for ask, good, bad in PAIRS],
    "alpaca_kto": [
        {"instruction": ask, "output": answer, "kto_tag": answer == good}
        for ask, good, bad in PAIRS
        for answer in (good, bad)
    ],
}
# What LLaMA-Factory wants to know of its data.
DATASET_INFO = {
    "alpaca": {"file_name": "alpaca/train.jsonl"},
    "alpaca_ranking": {
        "file_name": "alpaca_ranking/train.jsonl",
        "ranking": True,
        "columns": {"prompt": "instruction", "chosen": "chosen", "rejected": "rejected"},
    },
    "alpaca_kto": {
        "file_name": "alpaca_kto/train.jsonl",
        "columns": {"prompt": "instruction", "response": "output", "kto_tag": "kto_tag"},
    },
}


def make_tokenizer():
    """Make a tokenizer with a token for each word, and one for each character of any other."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = [*SPECIAL, *string.printable, *COLOURS, *ANIMALS, *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(dict.fromkeys(words))}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+|\s|."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    made = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="<|im_end|>",
        additional_special_tokens=["</s>", "<|im_start|>"],
        model_max_length=128,
    )
    made.chat_template = CHAT_TEMPLATE
    return made


def make_model(tokenizer):
    """Make a Llama with two layers and random weights, always the same."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
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
    )


def make(folder):
    """Write model/ and data/ into a folder."""
    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(folder / "model")
    make_model(tokenizer).save_pretrained(folder / "model")
    for name, rows in DATA.items():
        (folder / "data" / name).mkdir(parents=True)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "data" / name / "train.jsonl").write_text(text, encoding="utf-8")
    (folder / "data" / "dataset_info.json").write_text(json.dumps(DATASET_INFO), encoding="utf-8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
