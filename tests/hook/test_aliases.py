"""The reverse alias finder: stray names resolve to TRL's own objects, last, and only where TRL has them."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import checkpoint_files as files
import preloaded
import pytest
from helpers import PACKAGE, run_child

from unsloth_hook.releases import installed_classes

HOOK = {"UNSLOTH_HOOK": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}


def hooked(script: str, **options: Any) -> preloaded.Done:
    return preloaded.run_child(script, env={**HOOK, **options.pop("env", {})}, **options)


def test_it_imports_nothing_but_sys_and_the_names() -> None:
    script = f"""
    import sys
    sys.path.insert(0, {str(PACKAGE.parent)!r})
    import unsloth_hook
    before = set(sys.modules)
    import unsloth_hook.aliases
    names = "unsloth_hook.aliases", "unsloth_hook.releases", "unsloth_hook.releases.unsloth_module_names"
    assert set(sys.modules) - before == {{*names}}, set(sys.modules) - before
    """
    run_child(script, options=["-S"], python=sys.executable)


def test_every_spelling_is_the_canonical_class_and_trainer() -> None:
    script = """
    import importlib, sys, trl
    for stem, config, trainer in [("SFT", trl.SFTConfig, trl.SFTTrainer), ("GRPO", trl.GRPOConfig, trl.GRPOTrainer)]:
        for prefix in ("", "unsloth_compiled_cache.", "unsloth_cache_"):
            name = f"{prefix}Unsloth{stem}Trainer"
            alias = importlib.import_module(name)
            assert getattr(alias, f"Unsloth{stem}Config") is config
            assert getattr(alias, f"Unsloth{stem}Trainer") is trainer
            assert getattr(alias, f"{stem}Config") is config
            assert alias.__name__ == name and alias.__spec__.name == name
            assert f"Unsloth{stem}Config" in dir(alias)
    import UnslothRewardTrainer
    from unsloth_compiled_cache import UnslothDPOTrainer
    from unsloth_cache_UnslothRLOOTrainer import UnslothRLOOConfig
    assert UnslothDPOTrainer.UnslothDPOConfig is trl.DPOConfig and UnslothRLOOConfig is trl.RLOOConfig
    """
    hooked(script)


def test_a_config_is_looked_for_where_its_name_says() -> None:
    installed_classes.forget()
    assert installed_classes.in_trl("OnlineDPO") is not None
    assert installed_classes.classes.cache_info().misses <= 2  # not every config module of TRL


def test_the_canonical_module_is_untouched() -> None:
    script = """
    import sys, trl.trainer.sft_config as home
    before = (home.__name__, home.__spec__, home.__loader__, home.__file__)
    import UnslothSFTTrainer
    UnslothSFTTrainer.UnslothSFTConfig
    assert (home.__name__, home.__spec__, home.__loader__, home.__file__) == before
    assert sys.modules["trl.trainer.sft_config"] is home and UnslothSFTTrainer is not home
    """
    hooked(script)


def test_each_config_that_trl_has_resolves_by_rule() -> None:
    """Nothing of a list: whatever TRL is installed, every trainer config in its folders answers to its stray name."""
    script = """
    import importlib, inspect, pkgutil, transformers, trl.trainer, trl.experimental
    def modules():
        for info in pkgutil.iter_modules(trl.trainer.__path__):
            yield f"trl.trainer.{info.name}"
        for package in pkgutil.iter_modules(trl.experimental.__path__):
            if package.ispkg:
                path = [p + "/" + package.name for p in trl.experimental.__path__]
                for info in pkgutil.iter_modules(path):
                    yield f"trl.experimental.{package.name}.{info.name}"
    seen = 0
    for name in modules():
        if not name.endswith("_config"):
            continue
        module = importlib.import_module(name)
        for cls in vars(module).values():
            if not (inspect.isclass(cls) and cls.__module__ == name and issubclass(cls,
                transformers.TrainingArguments)): continue
            if cls.__name__.startswith("_"):
                continue
            stem = cls.__name__.removesuffix("Config")
            shim = cls.__mro__[1].__name__.lstrip("_") == cls.__name__ and cls.__mro__[1].__module__ != name
            alias = importlib.import_module(f"Unsloth{stem}Trainer")
            found = getattr(alias, f"Unsloth{stem}Config")
            assert found is cls or shim or found.__module__ != name, (found, cls)
            assert found.__name__ == cls.__name__
            seen += 1
    print(seen)
    """
    assert int(hooked(script).stdout.splitlines()[-1]) > 10


def test_plain_torch_load_opens_what_this_trl_has() -> None:
    script = """
    import json, sys, torch
    results = {}
    for path in sys.argv[1:]:
        try:
            results[path] = type(torch.load(path, weights_only=False)).__name__
        except (ModuleNotFoundError, AttributeError) as error:
            results[path] = f"{type(error).__name__}: {error}"
    print(json.dumps(results))
    """
    names = [name for name in files.ALL if name.startswith("unsloth-202") and "10.9" not in name]
    assert len(names) == 31
    done = hooked(script, args=[str(files.DATA / name) for name in names])
    found = json.loads(done.stdout.splitlines()[-1])
    opened = 0
    for name in names:
        stem = files.MANIFEST[name]["class"].rpartition("Unsloth")[2].removesuffix("Config")
        result = found[str(files.DATA / name)]
        if installed_classes.in_trl(stem) is None:
            assert result.startswith(f"ModuleNotFoundError: No module named 'Unsloth{stem}Trainer'")
            assert "load_training_args" in result and f"{stem}Config (TRL 0." in result
        elif stem == "DPO" and result.startswith("AttributeError"):
            assert "FDivergenceType" in result  # an enum that TRL removed: not a stray name
        else:
            assert result == f"{stem}Config"
            opened += 1
    assert opened > 15


def test_what_trl_lacks_fails_in_the_ordinary_way() -> None:
    script = """
    import importlib, importlib.util
    from unsloth_hook import aliases
    from unsloth_hook.releases import installed_classes
    def fails(name, wanted):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            assert error.name == name and error.path is None and type(error) is ModuleNotFoundError
            assert str(error).startswith(f"No module named {name!r}"), error
            assert (wanted in str(error)) if wanted else str(error) == f"No module named {name!r}", error
            names = [frame.f_code.co_filename for frame, _ in __import__("traceback").walk_tb(error.__traceback__)]
        else:
            raise AssertionError(name)
        assert importlib.util.find_spec(name) is None
    if installed_classes.in_trl("IterativeSFT") is None:
        for prefix in ("", "unsloth_cache_"):
            fails(prefix + "UnslothIterativeSFTTrainer", "TRL 0.18 to 0.23 as trl.trainer.iterative_sft_config")
            fails(prefix + "UnslothIterativeSFTTrainer", "unsloth_hook.load_training_args")
    for name in ("UnslothZebraTrainer", "UnslothTrainer", "UnslothSFTTrainers", "unslothSFTTrainer", "Unsloth",
                 "Unsloth-SFTTrainer", "unsloth_cache_SFTTrainer", "unsloth_cache_", "other_cache_UnslothSFTTrainer"):
        fails(name, "")
    try:
        import UnslothSFTTrainer
        UnslothSFTTrainer.UnslothGRPOConfig
    except AttributeError as error:
        assert str(error) == "module 'UnslothSFTTrainer' has no attribute 'UnslothGRPOConfig'"
    assert not hasattr(UnslothSFTTrainer, "__all__") and not hasattr(UnslothSFTTrainer, "__path__")
    """
    hooked(script)


def test_a_real_module_always_wins(tmp_path: Path) -> None:
    (tmp_path / "UnslothSFTTrainer.py").write_text("class UnslothSFTConfig: real = True\n")
    (tmp_path / "unsloth_compiled_cache").mkdir()
    (tmp_path / "unsloth_compiled_cache/UnslothDPOTrainer.py").write_text("UnslothDPOConfig = 'real'\n")
    script = """
    import UnslothSFTTrainer
    from unsloth_compiled_cache.UnslothDPOTrainer import UnslothDPOConfig
    from unsloth_compiled_cache.UnslothGRPOTrainer import UnslothGRPOConfig
    assert UnslothSFTTrainer.UnslothSFTConfig.real and UnslothDPOConfig == "real"
    import trl
    assert UnslothGRPOConfig is trl.GRPOConfig
    """
    hooked(script, env={"PYTHONPATH": str(tmp_path)})


def test_no_answer_while_unsloth_zoo_is_loaded_and_aliases_go_when_it_comes(tmp_path: Path) -> None:
    """A package of that name stands in for the real one, which tests/unsloth has."""
    (tmp_path / "unsloth_zoo").mkdir()
    (tmp_path / "unsloth_zoo/__init__.py").write_text(
        "import sys\nseen = [name for name in sys.modules if name.startswith(('UnslothSFT', 'unsloth_compiled'))]\n"
    )
    script = """
    import importlib, sys
    import UnslothSFTTrainer, unsloth_compiled_cache.UnslothDPOTrainer
    from unsloth_hook import aliases
    import unsloth_zoo
    assert unsloth_zoo.seen == [], unsloth_zoo.seen
    for name in ("UnslothSFTTrainer", "unsloth_compiled_cache", "unsloth_cache_UnslothSFTTrainer"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            assert str(error) == f"No module named {name!r}"
        else:
            raise AssertionError(name)
    del sys.modules["unsloth_zoo"]
    import UnslothSFTTrainer
    """
    hooked(script, env={"PYTHONPATH": str(tmp_path)})


def test_withdraw_takes_aliases_only(tmp_path: Path) -> None:
    (tmp_path / "UnslothKTOTrainer.py").write_text("")
    script = """
    import sys
    import UnslothSFTTrainer, UnslothKTOTrainer, unsloth_compiled_cache.UnslothDPOTrainer
    from unsloth_hook import aliases
    aliases.withdraw()
    left = [name for name in sys.modules if name.startswith(("Unsloth", "unsloth_c"))]
    assert left == ["UnslothKTOTrainer"], left
    """
    hooked(script, env={"PYTHONPATH": str(tmp_path)})


def test_withdraw_after_a_test_has_put_back_sys_modules(tmp_path: Path) -> None:
    """As fixtures do that restore import state: what was imported meanwhile is forgotten, our module with it."""
    (tmp_path / "unsloth_zoo.py").write_text("")
    script = """
    import sys
    before = dict(sys.modules)
    import UnslothSFTTrainer
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    import UnslothSFTTrainer
    import unsloth_zoo
    assert "UnslothSFTTrainer" not in sys.modules
    """
    hooked(script, env={"PYTHONPATH": str(tmp_path)})


def test_the_package_gone_since_the_start_is_as_if_it_were_off(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("UnslothSFTTrainer", "unsloth_zoo"):
        (tmp_path / f"{name}.py").write_text("")
    script = f"""
    import importlib.util, shutil, sys
    sys.path.insert(0, {str(tmp_path)!r})
    from unsloth_hook._bootstrap import start
    from unsloth_hook.switch import ours
    start()
    assert len(ours()) == 2
    shutil.rmtree({str(tmp_path / PACKAGE.name)!r})
    importlib.invalidate_caches()
    import UnslothSFTTrainer, unsloth_zoo
    del sys.modules["unsloth_zoo"]
    for name in ("UnslothDPOTrainer", "UnslothOther", "unsloth_cli", "unsloth_compiled_cache"):
        assert importlib.util.find_spec(name) is None, name
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            assert str(error) == f"No module named {{name!r}}"
    """
    done = run_child(script, options=["-S", "-B"], python=sys.executable, env=HOOK)
    assert re.fullmatch(
        "unsloth_hook: UnslothSFTTrainer, .*stays as it is, .*not whole: ModuleNotFoundError: .*\\n", done.stderr
    )


WHOLE = [pytest.param(method, marks=pytest.mark.whole) for method in ("fork", "forkserver") if sys.platform != "win32"]


@pytest.mark.parametrize("method", ["spawn", *WHOLE])
def test_a_worker_unpickles_a_stray_name(method: str) -> None:
    script = f"""
    import multiprocessing, zipfile
    def work(data):
        import pickle
        config = pickle.loads(data)
        return type(config).__name__, config.seed
    if __name__ == "__main__":
        with zipfile.ZipFile({str(files.SFT)!r}) as archive:
            data = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
        with multiprocessing.get_context({method!r}).Pool(1) as pool:
            assert pool.map(work, [data]) == [("SFTConfig", 11)]
    """
    run_child(script, env=HOOK)


def test_the_finder_is_last_and_off_means_off() -> None:
    script = """
    import sys
    from unsloth_hook import activation
    on = [finder for finder in sys.meta_path if isinstance(finder, activation.AliasFinder)]
    import os
    if os.environ["UNSLOTH_HOOK"] == "1":
        assert sys.meta_path[-1:] == on and len(on) == 1
    else:
        assert on == []
        try:
            import UnslothSFTTrainer
        except ModuleNotFoundError as error:
            assert str(error) == "No module named 'UnslothSFTTrainer'"
    """
    hooked(script)
    hooked(script, env={"UNSLOTH_HOOK": "0"})
