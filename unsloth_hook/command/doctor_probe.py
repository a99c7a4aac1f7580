"""Runs in a freshly started Python, as ``python -c``, and prints what start-up left there.

Nobody imports this file: `doctor_facts` hands its text to the interpreter in question, which may not have the package.
"""

import sys

META_PATH = list(sys.meta_path)  # before any import: a finder may change the order when it is asked
if sys.path[:1] == [""]:
    del sys.path[0]  # a json.py of the working directory is not ours to run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "\x1e"  # before and after the answer, since start-up code may print too


def name_of(thing: object) -> str:
    cls = thing if isinstance(thing, type) else type(thing)
    return f"{cls.__module__}.{cls.__qualname__}"


def hook() -> "dict[str, Any]":
    """Can the package be imported here, from where, and what does it say of itself?"""
    found: dict[str, Any] = {
        "asked": list(getattr(sys.modules.get("unsloth_hook.switch"), "asked", ())),
        "file": None,
        "error": None,
        "status": None,
    }
    try:
        import unsloth_hook
        import unsloth_hook._bootstrap
        import unsloth_hook.activation

        found["file"] = unsloth_hook.__file__
        found["version"] = unsloth_hook.__version__
        status: Any = unsloth_hook.status
        found["status"] = status()
    except BaseException as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


def spec_of(name: str, path: "list[str] | None" = None) -> "tuple[str | None, Any]":
    """What an import would find, and the finder that answers; nothing is imported."""
    for finder in sys.meta_path:
        find_spec: Any = getattr(finder, "find_spec", None)
        spec = find_spec and find_spec(name, path, None)
        if spec is not None:
            return name_of(finder), spec
    return None, None


def trl() -> "dict[str, Any]":
    """Walk to a config module as an import of TRL would, and note whether the hook's finder is asked on the way."""
    asked: list[str] = []
    for finder in sys.meta_path:
        if name_of(finder) == "unsloth_hook.finder.PostImportFinder":
            listen(type(finder), asked)
    found: dict[str, Any] = {"answered_by": None, "origin": None, "asked": False, "error": None}
    try:
        found["answered_by"], spec = spec_of("trl")
        if spec is not None:
            found["origin"] = spec.origin or str(list(spec.submodule_search_locations or ()))
            spec_of("transformers")  # TRL imports others before its configs, which lets a finder step forward
            folders = [f"{folder}/trainer" for folder in spec.submodule_search_locations or ()]
            found["answered_by"], _ = spec_of("trl.trainer.sft_config", folders)
            found["asked"] = "trl.trainer.sft_config" in asked
    except BaseException as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


def listen(cls: "Any", asked: "list[str]") -> None:
    find_spec = cls.find_spec

    def find_spec_and_note(self: "Any", fullname: str, path: "Any" = None, target: "Any" = None) -> "Any":
        asked.append(fullname)
        return find_spec(self, fullname, path, target)

    cls.find_spec = find_spec_and_note


def report() -> str:
    sitecustomize = sys.modules.get("sitecustomize")
    import json
    import os
    import site

    site_folders = [] if sys.flags.no_site else list(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        site_folders.append(site.getusersitepackages())
    path = list(sys.path)
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, "")
    return json.dumps(
        {
            "executable": sys.executable,
            "version": ".".join(str(number) for number in sys.version_info[:3]),
            "prefix": sys.prefix,
            "flags": [
                option
                for option, is_set in (
                    ("-S", sys.flags.no_site),
                    ("-I", sys.flags.isolated),
                    ("-E", sys.flags.ignore_environment and not sys.flags.isolated),
                    ("-s", sys.flags.no_user_site and not sys.flags.isolated),
                )
                if is_set
            ],
            "variables": {name: value for name, value in os.environ.items() if name.upper().startswith("UNSLOTH_HOOK")},
            "pythonpath": os.environ.get("PYTHONPATH", ""),
            "cwd": os.getcwd(),
            "path": path,
            "site_folders": site_folders,
            "meta_path": [name_of(finder) for finder in META_PATH],
            "sitecustomize": getattr(sitecustomize, "__file__", None),
            "hook": hook(),
            "trl": trl(),
        }
    )


if __name__ == "__main__":
    print(MARK + report() + MARK)
