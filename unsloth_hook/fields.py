"""The extra fields, as a table: what each is called, what it holds, and what it does without Unsloth."""

import dataclasses
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any


class Field:
    """One extra field.

    Args:
        name: of the field.
        type: name of a builtin or of something in `typing`; the field also takes None.
        default: its value where the user gives none.
        help: one line for `--help`.
        wanted: takes the names of TRL's fields; is the field added beside them?
        given: called with the config and the value where one is given to the constructor, before TRL's `__post_init__`.
        after: the same, after it, in a config with the field that `after_needs` names.
        after_needs: name of a field of TRL's.
    """

    def __init__(
        self,
        name: str,
        type: str,
        default: "Any",
        help: str,
        *,
        wanted: "Callable[[Collection[str]], bool]" = lambda names: True,
        given: "Callable[[Any, Any], None] | None" = None,
        after: "Callable[[Any, Any], None] | None" = None,
        after_needs: str = "",
    ) -> None:
        self.name, self.type, self.default, self.help = name, type, default, help
        self.wanted, self.given, self.after, self.after_needs = wanted, given, after, after_needs


def _becomes_max_length(config: "Any", value: int) -> None:
    if value > 0 and not _is_handed_on(config, value):
        config.max_length = value


# Python 3.13 has both.
_REPLACE = {getattr(dataclasses, name).__code__ for name in ("replace", "_replace") if hasattr(dataclasses, name)}


def _is_handed_on(config: "Any", value: int) -> bool:
    """Does `replace(old, max_length=7)` make this config, with max_seq_length as it is in the old one?"""
    frame: Any = sys._getframe(3)  # below: the rule, the descriptor that is set
    while frame and frame.f_code.co_name in ("__init__", "__post_init__"):
        frame = frame.f_back
    if not frame or frame.f_code not in _REPLACE:
        return False
    old = frame.f_locals[frame.f_code.co_varnames[0]]
    return type(old) is type(config) and bool(old.max_seq_length == value)


def _fits_generation_batch(config: "Any", value: int) -> None:
    size = config.generation_batch_size
    if size is not None and size < value:
        raise ValueError(
            f"unsloth_grpo_mini_batch ({value}) must not be larger than generation_batch_size ({size}), which is "
            "per_device_train_batch_size * number of processes * steps_per_generation unless it is given."
        )


FIELDS = (
    Field("vllm_sampling_params", "Any", None, "vLLM SamplingParams object that Unsloth generates with."),
    Field("unsloth_num_chunks", "int", -1, "Number of chunks that Unsloth splits a batch into; -1: it chooses."),
    Field("unsloth_logit_chunk_multiplier", "int", None, "Multiplier for Unsloth's chunked logit computations."),
    Field(
        "unsloth_grpo_mini_batch",
        "int",
        None,
        "Unsloth's GRPO mini batch size.",
        after=_fits_generation_batch,
        after_needs="generation_batch_size",
    ),
    Field(
        "max_seq_length",
        "int",
        None,
        "Maximum sequence length; a positive value becomes max_length.",
        wanted=lambda names: "max_length" in names,
        given=_becomes_max_length,
    ),
)
