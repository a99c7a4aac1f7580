"""The names of the modules that Unsloth generates, in any release, and so of what it pickled. Imports nothing."""

CACHE = "unsloth_compiled_cache"  # a folder of generated modules, and the package that old files say it is
_SPELLINGS = (CACHE + ".", "unsloth_cache_", "")


def stem_of(module: str) -> str:
    """ "SFT" for the three spellings of ``UnslothSFTTrainer``, "" for any other name of a module."""
    name = next(module[len(spelling) :] for spelling in _SPELLINGS if module.startswith(spelling))
    if not (name.startswith("Unsloth") and name.endswith("Trainer")):
        return ""
    stem = name[len("Unsloth") : -len("Trainer")]
    return stem if stem.isascii() and stem.isalnum() else ""
