"""A child Python without the hook that opens files as a stock machine would; one opens many, as torch takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from .errors import VerifierError

# What the child runs. It answers one JSON line per path: the class, the fields, and the fields with a default_factory
# that the object lacks (their defaults as far as JSON can say them), without which repr() fails.
CHILD = r"""
import importlib.util, json, os, sys, warnings
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.lower().startswith("unsloth"):
            raise ModuleNotFoundError("No module named %r" % name, name=name)
# TRL asks this function whether Unsloth is there, and must not hear an exception.
probe = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name.lower().startswith("unsloth") else probe(name, *more)
sys.meta_path.insert(0, Blocked())
answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
warnings.simplefilter("ignore")
def look(path, bare):
    import dataclasses, pickle, torch
    if bare:
        with open(path, "rb") as stream:
            config = pickle.load(stream)
    else:
        config = torch.load(path, weights_only=False)
    cls = type(config)
    lacks = {}
    for field in dataclasses.fields(cls):
        if not hasattr(config, field.name):
            value = None if field.default_factory is dataclasses.MISSING else field.default_factory()
            lacks[field.name] = json.loads(json.dumps(value, default=lambda value: None))
    return {"class": cls.__module__ + "." + cls.__qualname__, "fields": sorted(vars(config)), "lacks": lacks}
for line in sys.stdin:
    try:
        answer = look(*json.loads(line))
    except BaseException as error:
        answer = {"error": "%s: %s" % (type(error).__name__, error)}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
"""


class Verifier:
    """Start it when first asked, `close` it at the end (or use it in a ``with``)."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def open(self, content: bytes, bare: bool = False) -> dict[str, Any]:
        """Open a file's bytes with plain ``torch.load`` in the child.

        Args:
            content: the file.
            bare: it is a pickle and nothing around it, which ``pickle.load`` opens and torch does not.

        Returns:
            ``class`` (dotted), ``fields`` (names), ``lacks`` (field to default, for declared fields without a value).

        Raises:
            VerifierError: it does not open there.
        """
        child = self._child or self._start()
        assert child.stdin and child.stdout and self._folder
        staged = os.path.join(self._folder.name, "training_args.bin")
        with open(staged, "wb") as stream:
            stream.write(content)
        try:
            child.stdin.write(json.dumps([staged, bare]) + "\n")
            child.stdin.flush()
            answer = json.loads(child.stdout.readline() or "{}")
        except (OSError, ValueError):
            answer = {}
        if "class" not in answer:
            if not answer:
                self.close()
            raise VerifierError(answer.get("error", "the Python that checks the file ended without an answer"))
        return dict(answer)

    def _start(self) -> subprocess.Popen[str]:
        self._folder = tempfile.TemporaryDirectory(prefix="unsloth_hook-")
        # The folder is empty: no UnslothSFTTrainer.py of the working directory can help the file open.
        environment = {**os.environ, "UNSLOTH_HOOK": "0", "TRL_EXPERIMENTAL_SILENCE": "1", "CUDA_VISIBLE_DEVICES": ""}
        self._child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env=environment,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the program, which then ends this child itself
        )
        return self._child

    def close(self) -> None:
        """End the child and remove its folder."""
        if self._child is not None:
            self._child.kill()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe:
                    try:
                        pipe.close()
                    except OSError:
                        pass
            self._child.wait()
        if self._folder is not None:
            self._folder.cleanup()
        self._child = self._folder = None

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
