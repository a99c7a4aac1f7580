"""What the idioms share: a config that any machine can make, and ways to tell what was seen."""

from collections.abc import Callable
from typing import Any

from transformers import HfArgumentParser

PLAIN: dict[str, Any] = {"output_dir": "out", "use_cpu": True, "bf16": False, "report_to": "none"}
OPTIONS = [text for name, value in PLAIN.items() for text in (f"--{name}", str(value))]


def make(cls: Callable[..., Any], **options: Any) -> Any:
    """A config that can be made on a CPU and reports to nobody."""
    return cls(**{**PLAIN, **options})


def dotted(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def attempt(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What a call returned, or what it raised."""
    try:
        return function(*args, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def parse(classes: Any, *options: str, parser: Callable[..., Any] = HfArgumentParser) -> Any:
    """What a command line becomes, with the options that `make` gives."""
    return parser(classes).parse_args_into_dataclasses(args=[*OPTIONS, *options])


def own_fields(*configs: Any) -> list[dict[str, Any]]:
    """What lies in objects that are not TRL's."""
    return [dict(vars(config)) for config in configs]
