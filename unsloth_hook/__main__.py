"""``python -m unsloth_hook``."""

from unsloth_hook.cli import app

app(prog_name="unsloth-hook")
