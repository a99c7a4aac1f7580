"""The sitecustomize of ``unsloth-hook run``: makes the package importable that it lies in, then runs the example's."""

# mypy: allow-untyped-defs, allow-untyped-calls

import os
import sys

_command = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_location = os.path.dirname(os.path.dirname(_command))


def _find(name, *folders):
    # importlib.machinery.PathFinder, without the cost of importing importlib at interpreter start.
    return sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name, folders)


def _reach():
    if os.environ.get("UNSLOTH_HOOK", "").strip().lower() in ("0", "false", "no", "off"):
        return
    try:
        import unsloth_hook  # noqa: F401
    except ImportError:
        # Only the package itself is taken from where it is: a whole folder of packages on sys.path could shadow others.
        spec = _find("unsloth_hook", _location)
        module = sys.modules["_frozen_importlib"].module_from_spec(spec)
        sys.modules["unsloth_hook"] = module
        spec.loader.exec_module(module)


def _example():
    # A wheel has the example beside this folder, a checkout has it beside the package.
    places = [os.path.join(folder, "sitecustomize_example") for folder in (_command, _location)]
    return _find(__name__, *places).loader.get_code(__name__)


if __name__ == "sitecustomize":
    _code = ""
    try:
        _reach()
    except BaseException:  # a start-up file must not stop Python, be it by SystemExit or Ctrl-C
        pass
    try:
        _code = _example()
    except Exception:  # a Python 2, or a package that is not whole
        pass
    exec(_code, globals())
