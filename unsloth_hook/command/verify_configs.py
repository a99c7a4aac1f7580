"""Does each config of the installed TRL open where there is no hook? What ``unsloth-hook verify`` asks."""

from __future__ import annotations

import dataclasses
import importlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from .. import activation, identity, switch, targets
from ..checkpoints.errors import VerifierError
from ..checkpoints.stock_python import Verifier
from ..releases import installed_classes

OK, AS_STOCK, FAILED = "ok", "as stock", "failed"
PLAIN = {"output_dir": "verify", "use_cpu": True, "report_to": "none"}
# Values that are no default; for all other extra fields 1 will do.
SAMPLES = {"vllm_sampling_params": {"top_p": 0.9}, "max_seq_length": 4096}


class CannotVerify(Exception):
    """There is nothing to verify; the exit code says which."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def config_modules() -> list[str]:
    """The config modules of the installed TRL, by looking at its files.

    Raises:
        CannotVerify: there is no TRL (2).
    """
    if not installed_classes.exists("trl"):
        raise CannotVerify(f"there is no TRL in this Python ({sys.executable}): pip install trl", 2)
    experimental = [f"trl.experimental.{name}" for name in installed_classes.submodules("trl.experimental")]
    names = [
        f"{package}.{name}"
        for package in ("trl.trainer", *experimental)
        for name in installed_classes.submodules(package)
    ]
    return [name for name in names if targets.is_config_module(name)]


def verify(modules: list[str]) -> Iterator[list[dict[str, Any]]]:
    """Import each module under the hook, and open what its configs save in one Python in which the hook is blocked.

    Args:
        modules: names of config modules.

    Yields:
        For each module, the results for its configs (for the module itself, if it cannot be imported): `config`,
        `result` (`ok`; `failed`; `as stock`: it cannot be imported without the hook either), `fields` (the extra
        ones), `reason` (of what is not ok).

    Raises:
        CannotVerify: UNSLOTH_HOOK keeps the hook off (1).
    """
    if not switch.wanted("install"):
        raise CannotVerify(f"UNSLOTH_HOOK={os.environ['UNSLOTH_HOOK']} keeps the hook off: nothing to verify", 1)
    activation.install()
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    with Verifier() as stock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            try:
                module = importlib.import_module(name)
            except Exception as error:
                yield [_not_imported(name, f"{type(error).__name__}: {error}")]
                continue
            yield [_round_trip(cls, stock) for cls in targets.config_classes(module)]


def _not_imported(name: str, reason: str) -> dict[str, Any]:
    environ = {**os.environ, "UNSLOTH_HOOK": "0"}
    done = subprocess.run([sys.executable, "-c", f"import {name}"], env=environ, capture_output=True, text=True)
    last = (done.stderr.strip().splitlines() or [""])[-1]
    same = done.returncode != 0 and reason.partition(":")[0] == last.partition(":")[0].rpartition(".")[2]
    return {"config": name, "result": AS_STOCK if same else FAILED, "fields": [], "reason": reason}


def _round_trip(cls: type, stock: Verifier) -> dict[str, Any]:
    name = f"{cls.__module__}.{cls.__qualname__}"
    entry = identity.classes.get(name, {"reason": "the hook did not see it"})
    found = {"config": name, "result": FAILED, "fields": entry.get("fields", []), "reason": entry.get("reason", "")}
    if found["reason"]:
        return found
    try:
        config = _sample(cls, found["fields"], cls.__bases__[0] if entry["state"] == "patched" else cls)
        answer = stock.open(_saved(config))
    except VerifierError as error:
        return {**found, "reason": f"does not open without the hook: {error}"}
    except Exception as error:
        return {**found, "reason": f"{type(error).__name__}: {error}"}
    lost = sorted(set(vars(config)).symmetric_difference(answer["fields"]))
    if answer["class"] != name:
        return {**found, "reason": f"opens as {answer['class']} without the hook"}
    if lost or answer["lacks"]:
        return {**found, "reason": f"not the same fields without the hook: {', '.join(lost or answer['lacks'])}"}
    return {**found, "result": OK}


def _sample(cls: Any, fields: list[str], stock: Any) -> Any:
    values = {name: SAMPLES.get(name, 1) for name in fields}
    try:
        return cls(**PLAIN, **values)
    except Exception as error:
        # Some of TRL's configs cannot be made from defaults alone (ServerDistillationConfig in 1.16 wants a URL).
        if repr(_failure(stock)) != repr(error):
            raise
    config = cls.__new__(cls)
    for field in dataclasses.fields(cls):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        vars(config)[field.name] = values.get(field.name, None if default is dataclasses.MISSING else default)
    return config


def _failure(cls: Any) -> Exception | None:
    try:
        cls(**PLAIN)
    except Exception as error:
        return error
    return None


def _saved(config: object) -> bytes:
    import torch

    stream = io.BytesIO()
    torch.save(config, stream)
    return stream.getvalue()
