"""Child script: Unsloth patches TRL in surroundings that are against it.

    python child_surroundings.py CASE FOLDER

CASE is `stale` (the cache of another release lies in the working directory, and a second process compiles there at the
same time), `read-only` (the working directory) or `deleted` (the cache folder goes while the trainers are generated).
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import child_order
import probes


def obey_modes() -> None:
    """Let root, too, be stopped by the mode of a folder: give up CAP_DAC_OVERRIDE (Linux, capset(2))."""
    if not os.access(".", os.W_OK):
        return
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.capget(header, data)
    data[0] &= ~0b110  # CAP_DAC_OVERRIDE is bit 1, CAP_DAC_READ_SEARCH bit 2
    libc.capset(header, data)


def before_generating(name: str, act: Callable[[], None]) -> None:
    """Call `act` when Unsloth is about to generate this module."""

    class Finder:
        def find_spec(self, module: str, path: Any = None, target: Any = None) -> None:
            if module == "unsloth.models.rl":
                compiler = sys.modules["unsloth_zoo.compiler"]
                create = compiler.create_new_function

                def create_new_function(generated: str, *args: Any, **kwargs: Any) -> Any:
                    if generated == name:
                        act()
                    return create(generated, *args, **kwargs)

                compiler.create_new_function = create_new_function

    sys.meta_path.insert(0, Finder())


def place(module: Any, folder: Path) -> str:
    """In which of the child's folders a generated file is."""
    file = Path(module.__file__).absolute()
    places = {"cwd": folder / "cwd", "cache": folder / "cache", "temporary": folder / "tmp"}
    return next((name for name, path in places.items() if path in file.parents), str(file))


def main(case: str, folder: Path) -> None:
    if case == "read-only":
        os.chmod(".", 0o555)
        obey_modes()
        try:
            Path("file").touch()
        except PermissionError:
            pass
        else:
            raise AssertionError("the working directory is not read-only")
    if case == "deleted":
        before_generating("UnslothKTOTrainer", lambda: shutil.rmtree(folder / "cache"))
    from trl.trainer.sft_config import SFTConfig

    before = child_order.make(SFTConfig)
    probes.import_unsloth()
    if probes.FIXED:
        probes.patch_trainers()
    generated = child_order.generated()
    facts = {
        "trainers": sorted(generated),
        "modules": sorted(module.__name__ for module in generated.values()),
        "places": {stem: place(module, folder) for stem, module in generated.items()},
        "bindings": sorted(child_order.bindings(generated)),
        "pickles": {
            "before": child_order.write("before", before),
            **{f"after-{stem}": child_order.write(f"after-{stem}", after(stem)) for stem in generated},
        },
    }
    os.chmod(".", 0o755)
    (folder / "facts.json").write_text(json.dumps(facts))


def after(stem: str) -> Any:
    return child_order.make(child_order.current(stem))


if __name__ == "__main__":
    which, own = sys.argv[1], Path(sys.argv[2])
    if which != "stale" or own.name == "second":
        main(which, own)
    else:
        (own / "second").mkdir()
        command = [sys.executable, __file__, which, str(own / "second")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as second:
            main(which, own)
            output, _ = second.communicate(timeout=1200)
        if second.returncode:
            sys.exit(f"the second process exited with {second.returncode}\n{output}")
