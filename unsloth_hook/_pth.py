"""The readable source of the line in `unsloth_hook.pth`; `python tests/render_pth.py` makes the one from the other."""

import os

if os.environ.get("UNSLOTH_HOOK", "").strip().lower() not in ("", "0", "false", "no", "off"):
    try:
        from unsloth_hook._bootstrap import start  # a name that never changes: the line may be older than the package

        start()
    except BaseException:  # the package may be gone
        pass
