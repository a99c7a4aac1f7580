"""The readable source of `unsloth_hook.pth`, from which `python tests/hook/render_pth.py` makes that line."""

import os

if os.environ.get("UNSLOTH_HOOK", "").strip().lower() not in ("", "0", "false", "no", "off"):
    try:
        from unsloth_hook._bootstrap import start  # a name that never changes: the line may be older than the package

        start()
    except BaseException:  # the package may be gone
        pass
