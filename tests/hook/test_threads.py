"""Many threads importing at once, and many switching the hook on: no deadlock, never a stock class (contract 10)."""

import json
import os
import sys
from pathlib import Path

import pytest
from helpers import ROOT, run_child
from preloaded import run_scripts

# Ends a deadlocked script with the stacks of all its threads; `run_scripts` has a timeout besides.
ALARM = "import faulthandler\nfaulthandler.dump_traceback_later(1000, exit=True)\n"

RACE = (
    ALARM
    + """
import importlib, json, os, sys, threading
from pathlib import Path

home = Path(importlib.util.find_spec("trl").submodule_search_locations[0])
files = [*home.glob("trainer/*_config.py"), *home.glob("experimental/*/*_config.py")]
modules = [".".join(file.relative_to(home.parent).with_suffix("").parts) for file in files]
modules = [name for name in modules if name.rpartition(".")[2] not in ("base_config", "model_config")]
stable = [name for name in modules if name.startswith("trl.trainer.")]
names = ["trl:SFTConfig", "trl:DPOConfig", "trl.trainer:GRPOConfig", "trl.trainer.sft_trainer:SFTConfig"]
names += [name + ":" for name in (modules if {experimental} else stable)]
while len(names) < 40:
    names += names
names = names[:40]

def of(place):
    module, _, attribute = place.partition(":")
    module = importlib.import_module(module)
    if attribute:
        return [getattr(module, attribute)]
    return [cls for key, cls in vars(module).items()
            if key.endswith("Config") and isinstance(cls, type) and cls.__module__ == module.__name__]

def thread(number):
    start.wait(900)
    try:
        classes = of(names[number])
        taken[number] = [all("unsloth_num_chunks" in cls.__dataclass_fields__ for cls in classes), classes]
    except BaseException as error:
        taken[number] = [repr(error), []]

start, taken = threading.Barrier(40), [None] * 40
threads = [threading.Thread(target=thread, args=(number,), daemon=True) for number in range(40)]
{before}
for one in threads:
    one.start()
for one in threads:
    one.join(900)
wrong = [[names[number], result and result[0]] for number, result in enumerate(taken)
         if result is None or result[0] is not True]
same = all(taken[number][1] == of(names[number]) for number in range(40) if taken[number])
print(json.dumps([wrong, same, sum(len(result[1]) for result in taken if result)]))
sys.stdout.flush()
os._exit(0)
"""
)

# In every second pair of rounds somebody else's finders have come in front of ours; in every second round, threads
# change places as often as they can.
FINDER = """
class Theirs:
    def find_spec(self, name, path=None, target=None):
        return None
sys.meta_path[:0] = [Theirs(), Theirs(), Theirs()]
"""


@pytest.mark.parametrize("rounds", [range(4), pytest.param(range(4, 20), marks=pytest.mark.whole)])
def test_forty_threads_import_different_configs(tmp_path: Path, rounds: range) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("platform: no fork")
    begin = "import importlib.util\n"
    scripts = {}
    for number in rounds:
        before = ["", "sys.setswitchinterval(1e-5)", FINDER, FINDER + "sys.setswitchinterval(1e-5)"][number % 4]
        text = RACE.replace("{before}", before).replace("{experimental}", str(number < 2))
        scripts[f"race-{number}"] = (begin + text, True)
    for name, done in run_scripts(tmp_path, scripts).items():
        assert done.returncode == 0, f"{name}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        wrong, same, classes = json.loads(done.stdout.splitlines()[-1])
        assert (wrong, same) == ([], True), name
        assert classes >= 40


SMALL_RACE = (
    ALARM
    + """
import importlib, pathlib, sys, tempfile, threading
from unsloth_hook.finder import PostImportFinder

class Theirs:
    def find_spec(self, name, path=None, target=None):
        return None

folder = tempfile.TemporaryDirectory()
sys.path.insert(0, folder.name)
package = pathlib.Path(folder.name, "standin")
package.mkdir()
(package / "__init__.py").touch()
for number in range(40):
    (package / f"m{number}_config.py").touch()
import standin

finder = PostImportFinder(("standin.",), lambda name: lambda module: setattr(module, "HOOKED", True))
stock, sys.dont_write_bytecode, wrong = list(sys.meta_path), True, 0
sys.setswitchinterval(1e-6)
for _ in range(int(sys.argv[1])):
    for name in [name for name in sys.modules if name.startswith("standin.")]:
        del sys.modules[name]
    theirs = [Theirs(), Theirs()]
    sys.meta_path[:] = [*theirs, finder, *stock]
    start, hooked = threading.Barrier(40), [None] * 40

    def thread(number, start=start, hooked=hooked):
        start.wait(900)
        hooked[number] = hasattr(importlib.import_module(f"standin.m{number}_config"), "HOOKED")

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(40)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    wrong += hooked.count(False)
    assert sys.meta_path[0] is finder
    assert [one for one in sys.meta_path if one is not finder] == [*theirs, *stock], "somebody else's finder is lost"
print(wrong)
"""
)


@pytest.mark.parametrize("times", ["40", pytest.param("150", marks=pytest.mark.whole)])
def test_forty_threads_while_our_finder_steps_to_the_front(times: str) -> None:
    """Stand-in modules, since only the first import after others came in front can go wrong."""
    done = run_child(SMALL_RACE, python=sys.executable, env={"PYTHONPATH": str(ROOT)}, args=[times])
    assert done.stdout == "0\n"


INSTALLING = (
    ALARM
    + """
import sys, threading
import unsloth_hook
from unsloth_hook import activation, switch

real, both = switch.ours, threading.Barrier(2)

def ours():
    found = real()
    if not found and len(waiting) < 2:  # both threads have seen that there is none yet
        waiting.append(1)
        try:
            both.wait(0.5)
        except threading.BrokenBarrierError:  # or one is kept from looking, as it should be
            pass
    return found

for _ in range(3):
    waiting, handles = [], []
    both.reset()
    switch.ours = ours
    threads = [threading.Thread(target=lambda: handles.append(unsloth_hook.install())) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(900)
    switch.ours = real
    kinds = [type(finder).__name__ for finder in {id(finder): finder for finder in real()}.values()]
    print(len(handles), len(kinds) - len(set(kinds)), unsloth_hook.status()["active"])
    import trl.trainer.x_config
    assert trl.trainer.x_config.XConfig.unsloth_num_chunks == -1
    unsloth_hook.uninstall()
    assert not real() and not unsloth_hook.status()["active"]
"""
)


def stand_in_trl(folder: Path) -> Path:
    """A package that is called trl and has one config, over a class called TrainingArguments. Nothing of either."""
    for package in ("trl", "trl/trainer", "transformers"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").touch()
    dataclass = "from dataclasses import dataclass\n@dataclass\nclass "
    (folder / "transformers" / "training_args.py").write_text(dataclass + "TrainingArguments:\n    seed: int = 1\n")
    (folder / "trl" / "trainer" / "x_config.py").write_text(
        "from transformers.training_args import TrainingArguments\n"
        + dataclass
        + "XConfig(TrainingArguments):\n    x: int = 2\n"
    )
    return folder


def test_two_threads_that_install_at_once_install_once(tmp_path: Path) -> None:
    path = os.pathsep.join([str(stand_in_trl(tmp_path)), str(ROOT)])
    done = run_child(INSTALLING, python=sys.executable, env={"PYTHONPATH": path})
    assert done.stdout == "2 0 True\n" * 3
