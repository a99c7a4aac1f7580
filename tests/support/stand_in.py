"""Stand-ins for TRL and transformers, for configs that no release has: private, misbehaving, of the past.

They are packages of the right names in a folder for `PYTHONPATH`. Whatever the real TRL can show is tested with it.
"""

from collections.abc import Mapping
from pathlib import Path

HEAD = "from dataclasses import dataclass, field\nfrom transformers.training_args import TrainingArguments\n\n"

# A config module with one class.
CONFIG = HEAD + '@dataclass\nclass {name}(TrainingArguments):\n    """Doc."""\n\n    max_length: int = 7\n'

TRANSFORMERS = '''
from dataclasses import dataclass

@dataclass
class TrainingArguments:
    """A stand-in."""

    output_dir: str = "out"

    def __post_init__(self):
        pass
'''


def make(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a stand-in TRL, and a transformers with one class, into a folder.

    Args:
        folder: where.
        files: text by path; each folder on the way becomes a package.

    Returns:
        The folder.
    """
    for name, text in {"transformers/training_args.py": TRANSFORMERS, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        for parent in path.relative_to(folder).parents:
            if parent != Path():
                (folder / parent / "__init__.py").touch()
    return folder
