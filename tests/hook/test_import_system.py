"""Contracts 9 and 10 with the real TRL: what a program can see of an import is what it sees without the hook.

Nearly every script here runs twice, without the hook and with it (`preloaded.with_and_without`).
"""

import compileall
import importlib.util
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import coverage
import pytest
import standins
from helpers import run_child
from preloaded import Done, with_and_without

BEGIN = """
import importlib, importlib.util, json, os, sys, traceback, warnings
def fields(cls):
    return sorted(set(cls.__dataclass_fields__) & {"unsloth_num_chunks", "vllm_sampling_params", "max_seq_length"})
"""

# Names of config modules, from the files: nothing is imported for the asking.
MODULES = """
from pathlib import Path
home = Path(importlib.util.find_spec("trl").submodule_search_locations[0])
files = [*home.glob("trainer/*_config.py"), *home.glob("experimental/*/*_config.py")]
names = sorted(".".join(file.relative_to(home.parent).with_suffix("").parts) for file in files)
assert len(names) > 20
"""

LOOK = """
import inspect
ATTRIBUTES = "__name__ __file__ __cached__ __package__ __doc__".split()
SPEC = "name origin loader_state submodule_search_locations cached parent has_location".split()
for name in names:
    found = importlib.util.find_spec(name)
    before = [[key, repr(getattr(found, key))] for key in SPEC]
    source, size = found.loader.get_source(name), len(found.loader.get_data(found.origin))
    module = importlib.import_module(name)
    print(json.dumps({
        "module": [getattr(module, key) for key in ATTRIBUTES], "names": sorted(vars(module)),
        "spec": [[key, repr(getattr(module.__spec__, key))] for key in SPEC], "before": before,
        "loaders": [str(type(module.__loader__)), str(type(module.__spec__.loader))],
        "one": module.__loader__ is module.__spec__.loader, "path": module.__loader__.path,
        "source": inspect.getsource(module) == source == module.__loader__.get_source(name), "size": size,
        "file": inspect.getsourcefile(module), "resources": str(type(module.__loader__.get_resource_reader(name))),
        "parent": getattr(sys.modules[module.__package__], name.rpartition(".")[2]) is module,
    }))
"""

FAILURES = """
statements = '''
import trl.experimental.nosuch.nosuch_config
import trl.experimental.nosuch_config
import trl.trainer.nosuch_config
import trl.trainer.orpo_config
import trl.trainer.sft_config.sub_config
from trl.trainer.sft_config import Nope
from trl.trainer.sft_config import UnslothSFTConfig
from trl import NopeConfig
from trl.trainer import nosuch_config
import trl.trainer._config
import UnslothNopeTrainer
importlib.import_module("trl.experimental.nosuch.nosuch_config")
importlib.import_module(".nosuch_config", "trl.trainer")
importlib.import_module(".sft_config")
importlib.import_module("trl.trainer.sft_config.sub_config")
importlib.util.find_spec("trl.experimental.nosuch.nosuch_config")
importlib.util.find_spec("trl.trainer.sft_config.sub_config")
importlib.reload("trl.trainer.sft_config")
'''.strip().splitlines()
for statement in statements:
    try:
        exec(compile(statement, "statement", "exec"))
    except BaseException as error:
        print(type(error).__mro__, error.args, getattr(error, "name", None), getattr(error, "path", None))
        print(traceback.format_exc())
    else:
        print("no error:", statement)
print(importlib.util.find_spec("trl.trainer.nosuch_config"), importlib.util.find_spec("trl.experimental.nosuch"))
print(json.dumps("done"))
"""

RUNPY = """
import io, contextlib, runpy
out = runpy.run_module("trl.trainer.sft_config", run_name="__main__", alter_sys=True)
print(sorted(out), out["__name__"], out["__file__"], out["__spec__"].name, out["SFTConfig"].__module__)
out = runpy.run_module("trl.trainer.dpo_config")
print(sorted(out), out["__name__"], out["__file__"], out["__spec__"].name, out["DPOConfig"].__module__)
from trl.trainer import sft_config
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    runpy.run_module("trl.trainer.sft_config")
print([(str(warning.message), warning.category, warning.lineno) for warning in caught])
sys.argv = ["-m", "an argument"]
runpy._run_module_as_main("trl.trainer.grpo_config")
main = vars(sys.modules["__main__"])
print(sorted(main), sys.argv, main["__spec__"].name, main["__file__"])
import json  # the names above are gone: `python -m` runs in this very namespace
print(json.dumps("done"))
"""

RESOURCES = """
import importlib.metadata, importlib.resources, pkgutil
for package, name in (
    ("trl", "__init__.py"), ("trl.trainer", "sft_config.py"), ("trl.trainer.sft_config", "dpo_config.py"),
    ("trl.experimental.gkd.gkd_config", "gkd_config.py"),
):
    print(package, len(pkgutil.get_data(package, name)))
for package in ("trl", "trl.trainer", "trl.experimental.gkd"):
    files = importlib.resources.files(package)
    print(files, sorted(file.name for file in files.iterdir()), len(files.joinpath("__init__.py").read_text()))
print(len(importlib.resources.files("trl").joinpath("trainer", "sft_config.py").read_text()))
print(pkgutil.get_loader("trl").path if sys.version_info < (3, 12) else "")
print(importlib.metadata.version("trl"), len(importlib.metadata.files("trl")))
print(pkgutil.resolve_name("trl.trainer.sft_config:SFTConfig").__module__)
from trl.trainer import sft_config
if sys.version_info >= (3, 12):
    print(importlib.resources.files(sft_config))
print(json.dumps("done"))
"""

WALK = """
import pkgutil, trl
failed = []
print([info.name for info in pkgutil.walk_packages(trl.__path__, "trl.", onerror=failed.append)], failed)
print([(info.name, info.ispkg) for info in pkgutil.iter_modules(sys.modules["trl.trainer"].__path__)])
print(json.dumps("done"))
"""

LAZY = """
import types
import trl.trainer
name = "trl.trainer.sft_config"
spec = importlib.util.find_spec(name)
spec.loader = importlib.util.LazyLoader(spec.loader)
module = sys.modules[name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
made = module.SFTConfig("here", use_cpu=True)
from trl import SFTConfig
print(json.dumps([type(module) is types.ModuleType, type(made) is module.SFTConfig is SFTConfig, SFTConfig.__module__]))
print(json.dumps(fields(SFTConfig)))
"""

MODULES_LOADED = """
from trl import DPOConfig, GRPOConfig, SFTConfig
from trl.experimental.gkd import GKDConfig
import pickle
pickle.loads(pickle.dumps(SFTConfig("here", use_cpu=True)))
print(json.dumps(sorted(sys.modules)))
"""

RELOAD = """
import pickle
import trl.trainer.sft_config as module, trl.experimental.gkd.gkd_config as experimental
first = module.SFTConfig("here", use_cpu=True)
for _ in range(100):
    assert importlib.reload(module) is module
importlib.reload(experimental)
again = pickle.loads(pickle.dumps(first)) if sys.argv[-1:] == [] or "unsloth_hook" in sys.modules else None
print(json.dumps([str(type(module.__loader__)), str(type(module.__spec__.loader)), sorted(vars(module))]))
cls = module.SFTConfig
print(json.dumps({
    "fields": fields(cls), "same": again is None or type(again) is cls,
    "depth": sum(base.__name__ == "SFTConfig" for base in cls.__mro__), "GKD": fields(experimental.GKDConfig),
}))
"""

DELETED = """
from trl import SFTConfig as first
for name in [name for name in sys.modules if name.partition(".")[0] == "trl"]:
    del sys.modules[name]
from trl import SFTConfig as second, SFTTrainer
import trl.trainer.sft_config as module
print(json.dumps([first is not second, second is module.SFTConfig is sys.modules["trl.trainer.sft_trainer"].SFTConfig]))
print(json.dumps([fields(first), fields(second)]))
"""

ALL_CONFIGS = """
counts = {}
for name in names:
    module = importlib.import_module(name)
    for key, cls in vars(module).items():
        if key.endswith("Config") and isinstance(cls, type) and cls.__module__ == name:
            counts[name + ":" + key] = fields(cls) if hasattr(cls, "__dataclass_fields__") else None
print(json.dumps(counts))
"""

# The experimental packages import all their trainers, which takes seconds; one will do beside other finders.
STABLE = """
names = [f"trl.trainer.{name}_config" for name in ("dpo", "grpo", "reward", "rloo", "sft", "base", "model")]
names.append("trl.experimental.gkd.gkd_config")
"""

# Somebody else's finder that answers for all of trl, as typeguard's does; put in front after the hook was switched on.
IN_FRONT = """
import importlib.machinery
class Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        module.INSTRUMENTED = True
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] != "trl":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec
sys.meta_path.insert(0, Finder())
"""

INSTRUMENTED = """
loaders = {type(sys.modules[name].__loader__).__name__ for name in names}
print(json.dumps([counts, sorted(loaders), all(sys.modules[name].INSTRUMENTED for name in names)]))
"""

# Finders that ask others: those behind them, or all others.
DELEGATING = """
class Rest:
    def find_spec(self, name, path=None, target=None):
        if name not in names:
            return None
        for finder in self.others():
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
class After(Rest):
    def others(self):
        return sys.meta_path[sys.meta_path.index(self) + 1:]
class Others(Rest):
    def others(self):
        return [finder for finder in sys.meta_path if finder is not self]
sys.meta_path.insert({place}, {kind}())
"""

WRAPT = """
import wrapt
seen = []
wrapt.register_post_import_hook(lambda module: seen.append(fields(module.SFTConfig)), "trl.trainer.sft_config")
wrapt.register_post_import_hook(lambda module: seen.append(fields(module.DPOConfig)), "trl.trainer.dpo_config")
from trl import SFTConfig, DPOConfig
from trl.trainer import sft_config, dpo_config
loaders = [str(type(one)) for module in (sft_config, dpo_config) for one in (module.__loader__, module.__spec__.loader)]
states = []
if "unsloth_hook" in sys.modules:
    import unsloth_hook
    classes = unsloth_hook.status()["classes"]
    states = [classes["trl.trainer." + name]["state"] for name in ("sft_config.SFTConfig", "dpo_config.DPOConfig")]
print(json.dumps(states))
print(json.dumps(loaders))
print(json.dumps(seen))
"""

REWRITER = """
import pathlib, pytest
sys.dont_write_bytecode = True
project = pathlib.Path("rewriter" + str("unsloth_hook" in sys.modules))
project.mkdir()
(project / "conftest.py").write_text("import pytest; pytest.register_assert_rewrite('trl')")
(project / "test_it.py").write_text('''
import sys
def test_it():
    import trl.trainer.sft_config as module
    assert "@pytest_ar" in vars(module)
    assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == "AssertionRewritingHook"
''')
print(pytest.main(["-q", "-p", "no:cacheprovider", str(project)]))
from trl import SFTConfig
print(json.dumps(fields(SFTConfig)))
"""

PDB = """
import io, runpy
sys.stdin = io.StringIO("")
sys.argv = ["pdb", "-c", "continue", "-m", "trl.trainer.sft_config"]
runpy._run_module_as_main("pdb")
"""

ANOTHER_TRL = """
import trl
from trl.trainer import sft_config
print(json.dumps([trl.__file__, sft_config.__file__, str(type(sft_config.__loader__)), str(type(trl.__loader__))]))
print(json.dumps(counts))
"""

AS_STOCK = {
    "look": MODULES + LOOK,
    "failures": FAILURES,
    "runpy": RUNPY,
    "resources": RESOURCES,
    "walk": WALK,
    "pdb": PDB,
}
BESIDES = {
    "lazy": LAZY,
    "modules": MODULES_LOADED,
    "reload": RELOAD,
    "deleted": DELETED,
    "all": MODULES + ALL_CONFIGS,
    "in front": STABLE + IN_FRONT + ALL_CONFIGS + INSTRUMENTED,
    **{
        f"{kind} {place}": STABLE + DELEGATING.replace("{kind}", kind).replace("{place}", place) + ALL_CONFIGS
        for kind in ("After", "Others")
        for place in "02"
    },
    "wrapt": WRAPT,
    "rewriter": REWRITER,
}


def trl_home() -> Path:
    spec = importlib.util.find_spec("trl")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def zipped_trl(folder: Path) -> str:
    """TRL in a zip archive; returns the lines that put it on the path."""
    with zipfile.ZipFile(folder / "trl.zip", "w") as archive:
        for file in trl_home().rglob("*"):
            if "__pycache__" not in file.parts:
                archive.write(file, Path("trl") / file.relative_to(trl_home()))
    return f"import sys\nsys.path.insert(0, {str(folder / 'trl.zip')!r})\n"


def trl_in_bytecode(folder: Path) -> str:
    """TRL without its sources."""
    home = folder / "bytecode" / "trl"
    shutil.copytree(trl_home(), home, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(home, quiet=2, legacy=True)
    for file in home.rglob("*.py"):
        file.unlink()
    return f"import sys\nsys.path.insert(0, {str(home.parent)!r})\n"


def editable_trl(folder: Path) -> str:
    """TRL installed by setuptools with `pip install -e`, and no other TRL on the path."""
    project, site, rest = folder / "project", folder / "site", folder / "rest"
    for made in (project, rest):
        made.mkdir()
    shutil.copytree(trl_home(), project / "trl", ignore=shutil.ignore_patterns("__pycache__"))
    standins.build_editable("trl", project, site, "99.0")
    for entry in trl_home().parent.iterdir():
        if not entry.name.startswith("trl"):
            (rest / entry.name).symlink_to(entry)
    return (
        f"import site, sys\nsys.path[:] = [{str(rest)!r} if path == {str(trl_home().parent)!r} else path "
        f"for path in sys.path]\nsite.addsitedir({str(site)!r})\n"
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Done, Done]]:
    """All scripts of this file, run without the hook and with it."""
    if not hasattr(os, "fork"):
        pytest.skip("platform: no fork")
    folder = tmp_path_factory.mktemp("trl")
    scripts = {
        **AS_STOCK,
        **BESIDES,
        "zip": zipped_trl(folder)
        + STABLE.replace("names.append", "# its trainers do not work from a zip: ")
        + ALL_CONFIGS
        + ANOTHER_TRL,
        "editable": editable_trl(folder) + STABLE + ALL_CONFIGS + ANOTHER_TRL,
        "bytecode": trl_in_bytecode(folder) + STABLE + ALL_CONFIGS + ANOTHER_TRL,
    }
    work = folder / "work"
    work.mkdir()
    return with_and_without(work, {name: BEGIN + script for name, script in scripts.items()})


@pytest.mark.parametrize("name", AS_STOCK)
def test_as_stock(done: dict[str, tuple[Done, Done]], name: str) -> None:
    stock, hooked = done[name]
    assert stock.returncode == 0, stock.stderr
    assert (hooked.returncode, hooked.stderr) == (stock.returncode, stock.stderr)
    assert hooked.stdout == stock.stdout
    assert stock.stdout.strip()


def test_what_is_compared_with_stock_is_what_it_says(done: dict[str, tuple[Done, Done]]) -> None:
    failures = done["failures"][1].stdout
    assert "No module named 'trl.experimental.nosuch'" in failures
    assert failures.count("Traceback (most recent call last)") >= 16
    assert "unsloth_hook" not in failures
    assert "SourceFileLoader" in done["look"][1].stdout
    assert "sft_config" in done["pdb"][1].stdout
    assert "'trl.trainer.sft_config' found in sys.modules" in done["runpy"][1].stdout


def both(done: dict[str, tuple[Done, Done]], name: str, line: int = -1) -> tuple[Any, Any]:
    """The JSON lines that a script wrote last, without the hook and with it."""
    stock, hooked = done[name]
    assert (stock.returncode, hooked.returncode) == (0, 0), stock.stderr + hooked.stderr
    return json.loads(stock.stdout.splitlines()[line]), json.loads(hooked.stdout.splitlines()[line])


EXTRAS = ["unsloth_num_chunks", "vllm_sampling_params"]
MORE = ["max_seq_length", *EXTRAS]


def all_patched(stock: dict[str, Any], hooked: dict[str, Any]) -> None:
    """Every config has the fields under the hook, but for the two that are none of ours, and none has them without."""
    assert stock.keys() == hooked.keys()
    assert "trl.trainer.dpo_config:DPOConfig" in stock
    for name, fields in hooked.items():
        ours = name.partition(":")[0] not in ("trl.trainer.base_config", "trl.trainer.model_config")
        assert not stock[name]
        assert fields in (EXTRAS, MORE) if ours and fields is not None else not fields, name
    assert hooked["trl.trainer.sft_config:SFTConfig"] == MORE


@pytest.mark.parametrize("name", ["all", "After 0", "After 2", "zip", "editable", "bytecode"])
def test_every_config_is_patched(done: dict[str, tuple[Done, Done]], name: str) -> None:
    all_patched(*both(done, name))


@pytest.mark.parametrize("place", "02")
def test_every_config_is_patched_beside_a_finder_that_asks_all_others(
    done: dict[str, tuple[Done, Done]], place: str
) -> None:
    all_patched(*both(done, f"Others {place}"))


@pytest.mark.parametrize(
    ("name", "loader", "place"),
    [
        ("zip", "zipimporter", "trl.zip"),
        ("editable", "SourceFileLoader", "project"),
        ("bytecode", "SourcelessFileLoader", "bytecode"),
    ],
)
def test_another_kind_of_trl_is_the_one_that_is_imported(
    done: dict[str, tuple[Done, Done]], name: str, loader: str, place: str
) -> None:
    stock, hooked = both(done, name, -2)
    assert hooked == stock
    assert loader in hooked[2]
    assert place in hooked[0]


def test_a_finder_put_in_front_that_answers_for_all_of_trl(done: dict[str, tuple[Done, Done]]) -> None:
    stock, hooked = both(done, "in front")
    all_patched(stock[0], hooked[0])
    assert hooked[1:] == stock[1:] == [["Loader"], True]


def test_what_wrapt_hooks_too_is_reported_as_patched(done: dict[str, tuple[Done, Done]]) -> None:
    assert both(done, "wrapt", -3) == ([], ["patched", "patched"])


def test_wrapts_hook_is_called_after_ours_and_the_real_loader_is_back(done: dict[str, tuple[Done, Done]]) -> None:
    stock, hooked = both(done, "wrapt")
    assert stock == [[], []]
    assert hooked == [MORE, MORE]
    loaders, under_hook = both(done, "wrapt", -2)
    assert under_hook == loaders
    assert "SourceFileLoader" in loaders[0]


def test_pytests_assertion_rewriter_on_trl(done: dict[str, tuple[Done, Done]]) -> None:
    for run in done["rewriter"]:
        assert "1 passed" in run.stdout, run.stdout
    assert both(done, "rewriter") == ([], MORE)


def test_a_lazy_loader_around_ours(done: dict[str, tuple[Done, Done]]) -> None:
    stock, hooked = both(done, "lazy", -2)
    assert hooked == stock == [True, True, "trl.trainer.sft_config"]
    assert both(done, "lazy") == ([], MORE)


def test_only_modules_of_ours_are_imported_besides(done: dict[str, tuple[Done, Done]]) -> None:
    stock, hooked = both(done, "modules")
    assert {name.partition(".")[0] for name in set(hooked) - set(stock)} == {"unsloth_hook"}
    assert set(stock) <= set(hooked)


def test_a_hundred_reloads_wrap_once(done: dict[str, tuple[Done, Done]]) -> None:
    stock, hooked = both(done, "reload", -2)
    assert hooked == stock
    stock, hooked = both(done, "reload")
    assert hooked == {"fields": MORE, "same": True, "depth": 2, "GKD": MORE}
    assert stock == {"fields": [], "same": True, "depth": 1, "GKD": []}


def test_deleted_and_imported_again_it_is_patched_again(done: dict[str, tuple[Done, Done]]) -> None:
    stock, hooked = both(done, "deleted", -2)
    assert hooked == stock == [True, True]
    assert both(done, "deleted") == ([[], []], [MORE, MORE])


def test_python_m() -> None:
    """A real start; `runpy` in a fork, above, is compared with stock."""
    done = run_child(args=["-W", "error::RuntimeWarning", "-m", "trl.trainer.sft_config"], env={"UNSLOTH_HOOK": "1"})
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.whole
def test_coverage_run_m(tmp_path: Path) -> None:
    """Real starts: coverage cannot be started in a process in which torch is loaded."""
    measured = []
    for value in ("0", "1"):
        data = tmp_path / value
        run = ["-m", "coverage", "run", f"--data-file={data}", "--source=trl.trainer", "-m", "trl.trainer.sft_config"]
        done = run_child(args=run, env={"UNSLOTH_HOOK": value})
        lines = coverage.CoverageData(str(data))
        lines.read()
        files = {Path(file).name: sorted(lines.lines(file) or ()) for file in lines.measured_files()}
        measured.append((done.stdout, done.stderr, files))
    assert measured[0] == measured[1]
    assert len(measured[1][2]["sft_config.py"]) > 20
