"""For the tests: when a Python ends, note down whether the hook is there and what it patched, in the file $WATCH."""

import atexit
import json
import os
import sys


def note():
    hook = sys.modules.get("unsloth_hook._bootstrap") and sys.modules.get("unsloth_hook.activation")
    patched = []
    if hook:
        from unsloth_hook import status

        patched = [name for name, entry in status()["classes"].items() if entry["state"] == "patched"]
    with open(os.environ["WATCH"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"argv": sys.argv, "on": bool(hook), "patched": patched}) + "\n")


if "WATCH" in os.environ:
    atexit.register(note)
