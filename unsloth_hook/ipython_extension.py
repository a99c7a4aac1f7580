"""``%load_ext unsloth_hook`` in IPython and Jupyter."""

from __future__ import annotations

import os
import warnings
from typing import Any

from . import activation, status_report

_handle: activation.Handle | None = None


def load_ipython_extension(shell: Any) -> None:
    """Switch the hook on in this kernel and say so; warn if TRL was imported before.

    Args:
        shell: the `IPython.core.interactiveshell.InteractiveShell`, which calls this for `%load_ext unsloth_hook`.
    """
    global _handle
    before = status_report.status()
    if before["active"]:
        print(f"unsloth_hook is on already, by the route {before['route']}.")
        return
    _handle = activation.activate("ipython")
    now = status_report.status()
    if not now["active"]:
        print(f"unsloth_hook stays off: UNSLOTH_HOOK={os.environ.get('UNSLOTH_HOOK')} says so.")
        return
    print(
        "unsloth_hook is on in this kernel: TRL's configs take Unsloth's extra fields. For the processes that it "
        "starts: %env UNSLOTH_HOOK=1"
    )
    if now["late"]:
        warnings.warn(
            "TRL was imported before %load_ext unsloth_hook. Its classes are patched now, but names that you took from "
            "it before (from trl import SFTConfig) are still bound to the old ones: import them again, or restart the "
            "kernel and load unsloth_hook first.",
            stacklevel=2,
        )


def unload_ipython_extension(shell: Any) -> None:
    """Switch the hook off again, if it was `%load_ext` that switched it on.

    Args:
        shell: as for `load_ipython_extension`.
    """
    global _handle
    if _handle is None:
        route = status_report.status()["route"]
        print(f"unsloth_hook was not switched on by %load_ext; it stays as it is (route {route}).")
        return
    _handle.uninstall()
    _handle = None
    print("unsloth_hook is off. Classes that are patched stay patched, and keep pickling.")
