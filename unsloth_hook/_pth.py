"""The readable source of the line in ``unsloth_hook.pth``.

``site`` executes that line in every interpreter, so it asks the variable before it imports anything of ours, and
nothing that goes wrong gets past it: a package that pip removed, ``SystemExit``, Ctrl-C. The name that it calls never
changes: the line may be older than the package, or newer. Nobody imports this file. After a change, run
``python tests/render_pth.py``.
"""

import os

if os.environ.get("UNSLOTH_HOOK", "").strip().lower() not in ("", "0", "false", "no", "off"):
    try:
        from unsloth_hook._bootstrap import start

        start()
    except BaseException:
        pass
