"""Write ``unsloth_hook/unsloth_hook.pth`` from its readable source, ``unsloth_hook/_pth.py``."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "unsloth_hook"
SOURCE = PACKAGE / "_pth.py"
TARGET = PACKAGE / "unsloth_hook.pth"


def render(source: str) -> str:
    """Turn Python source into one line that ``site`` executes.

    Comments and the docstring are left out. Where the variable is not set, the code is not even compiled. It runs in a
    namespace of its own: ``site`` executes the lines among the variables of one of its functions, which would be ours
    to overwrite.

    Args:
        source: the text of a Python module.

    Returns:
        One line beginning with ``import`` (the only kind that ``site`` executes), with its newline.

    Raises:
        SyntaxError: the source is not Python.
    """
    tree = ast.parse(source)
    if ast.get_docstring(tree) is not None:
        del tree.body[0]
    return f"import os; os.environ.get('UNSLOTH_HOOK') and exec({ast.unparse(tree)!r}, {{}})\n"


if __name__ == "__main__":
    TARGET.write_text(render(SOURCE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    print(f"wrote {TARGET}")
