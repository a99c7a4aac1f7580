"""``python -m unsloth_hook``."""

from unsloth_hook.command.program import app

app(prog_name="unsloth-hook")
