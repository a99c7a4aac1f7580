"""What `inspect.signature` shows: all the parameters, until Unsloth reads them."""

import inspect
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FunctionType
    from typing import Any

_shown: "list[tuple[Any, Sequence[str]]]" = []  # classes, and the extras among their parameters


def note(cls: type, extras: "Sequence[str]") -> None:
    """Take note of a class whose `__init__` has these extras, and hide them if Unsloth is there already.

    The docstring that dataclasses writes where there is none is the signature as text: it stays TRL's.
    """
    if "__init__" not in vars(cls):
        return
    if str(cls.__doc__).startswith(cls.__name__ + "("):  # the first look spares a fifth of a swap
        parameters = [*inspect.signature(cls).parameters.values()]
        if cls.__doc__ == _as_text(cls, parameters):
            cls.__doc__ = _as_text(cls, [parameter for parameter in parameters if parameter.name not in extras])
    _shown.append((cls, extras))
    if "unsloth" in sys.modules or "unsloth_zoo" in sys.modules:
        hide()


def _as_text(cls: type, parameters: "list[inspect.Parameter]") -> str:
    return cls.__name__ + str(inspect.Signature(parameters))


def hide() -> None:
    """From now on `inspect.signature(cls.__init__)` shows the parameters of TRL alone; that of the class shows all.

    Unsloth (all releases) writes a class from the former and adds the same fields to it: shown there, they would be
    duplicate arguments.
    """
    while _shown:
        cls, extras = _shown.pop()
        init = vars(cls)["__init__"]
        whole = inspect.signature(init)
        cls.__signature__ = _ClassSignature(init, whole)
        of_trl = [parameter for name, parameter in whole.parameters.items() if name not in extras]
        init.__signature__ = whole.replace(parameters=of_trl)


class _ClassSignature:
    """The signature of one class, and of the subclasses that construct as it does; others have their own."""

    def __init__(self, init: "FunctionType", signature: inspect.Signature) -> None:
        self._init = init
        self._signature = signature.replace(parameters=list(signature.parameters.values())[1:])

    def __get__(self, instance: "Any", cls: type) -> inspect.Signature:
        if instance is not None or cls.__init__ is not self._init:  # type: ignore[misc]
            raise AttributeError("__signature__")
        return self._signature
