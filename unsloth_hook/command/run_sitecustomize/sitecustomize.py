"""The sitecustomize of ``unsloth-hook run``: makes the package importable that it lies in, then runs the example's."""

# mypy: allow-untyped-defs, allow-untyped-calls

import os
import sys

_importlib, _finder = sys.modules["_frozen_importlib"], sys.modules["_frozen_importlib_external"].PathFinder
_command = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_location = os.path.dirname(os.path.dirname(_command))


def _reach():
    if os.environ.get("UNSLOTH_HOOK", "").strip().lower() in ("0", "false", "no", "off"):
        return
    try:
        import unsloth_hook  # noqa: F401
    except ImportError:
        # Only the package itself is taken from where it is: a whole folder of packages on sys.path could shadow others.
        spec = _finder.find_spec("unsloth_hook", [_location])
        module = _importlib.module_from_spec(spec)
        sys.modules["unsloth_hook"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    try:
        _reach()
    except BaseException:  # a start-up file must not stop Python, be it by SystemExit or Ctrl-C
        pass
    # A wheel has the example beside this folder, a checkout has it beside the package.
    _places = [os.path.join(folder, "sitecustomize_example") for folder in (_command, _location)]
    _example = _finder.find_spec(__name__, _places)
    if _example is not None and _example.loader is not None:
        exec(_example.loader.get_code(__name__), globals())
