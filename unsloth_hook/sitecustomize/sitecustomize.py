"""The sitecustomize of ``unsloth-hook run``: sitecustomize_example's, which also finds the package that it lies in."""

# mypy: allow-untyped-defs, allow-untyped-calls

import os
import sys


def _switch_on():
    if os.environ.get("UNSLOTH_HOOK", "").strip().lower() in ("0", "false", "no", "off"):
        return
    try:
        _reach()
        from unsloth_hook._bootstrap import start

        start(route="sitecustomize")
    except BaseException:  # a start-up file must not stop Python, be it by SystemExit or Ctrl-C
        pass


def _reach():
    try:
        import unsloth_hook  # noqa: F401
    except ImportError:
        # Only the package itself is taken from where it is: a whole folder of packages on sys.path could shadow others.
        location = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        spec = sys.modules["_frozen_importlib_external"].PathFinder.find_spec("unsloth_hook", [location])
        module = sys.modules["_frozen_importlib"].module_from_spec(spec)
        sys.modules["unsloth_hook"] = module
        spec.loader.exec_module(module)


def _next_spec():
    def folder(path):
        return os.path.normcase(os.path.abspath(path))

    entries = [folder(entry) if isinstance(entry, str) else None for entry in sys.path]
    here = folder(os.path.dirname(__file__))
    if here not in entries:
        return None
    # Strictly after the last place where this file can be found, so that a chain of copies ends.
    later = sys.path[len(entries) - entries[::-1].index(here) :]
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec(__name__, later) if find_spec else None
        if spec is not None and spec.loader is not None:
            return spec
    return None


def _run_next():
    spec = _next_spec()
    if spec is None:
        return
    # importlib.util.module_from_spec, without the cost of importing importlib.util at interpreter start.
    module = sys.modules["_frozen_importlib"].module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)  # what it raises goes to `site`, which reports it as if this file were not here


if __name__ == "sitecustomize":
    _switch_on()
    _run_next()
