"""Contract 9 on a TRL that misbehaves, and on a start-up that does.

The ``trl`` and ``transformers`` here are stand-ins of a few lines each: no release has these faults.
"""

import json
import os
import re
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from helpers import PACKAGE, ROOT, run_child

BASE = """
from dataclasses import dataclass, field

@dataclass
class TrainingArguments:
    output_dir: str = "here"
    seed: int = 1

    def __post_init__(self):
        self.seen = self.seed
"""

BEGIN = """
import sys
from dataclasses import dataclass, field
from transformers.training_args import TrainingArguments
"""

# Some that cannot be patched: the text of the module, and what the line on stderr says of the reason.
REFUSING = {
    "own_init": (
        """
        @dataclass
        class OwnInitConfig(TrainingArguments):
            own: int = 2
            def __init__(self, own=2):
                super().__init__()
                self.own = own
        """,
        "__init__",
    ),
    "final": (
        """
        @dataclass
        class FinalConfig(TrainingArguments):
            own: int = 2
            def __init_subclass__(cls):
                raise RuntimeError("FinalConfig is final")
        """,
        "FinalConfig is final",
    ),
    "read_only": (
        """
        import types
        @dataclass
        class ReadOnlyConfig(TrainingArguments):
            own: int = 2
        class ReadOnly(types.ModuleType):
            def __setattr__(self, name, value):
                if name == "ReadOnlyConfig":
                    raise AttributeError("this module is read-only")
                super().__setattr__(name, value)
        sys.modules[__name__].__class__ = ReadOnly
        """,
        "this module is read-only",
    ),
}

# Those that can; `test_isolation` has every odd kind of them, and of the others.
PATCHED = {
    "good": """
        @dataclass
        class GoodConfig(TrainingArguments):
            own: int = 2
        """,
    "later": """
        @dataclass
        class LaterConfig(TrainingArguments):
            own: int = 2
        """,
    "two": """
        @dataclass
        class OneConfig(TrainingArguments):
            own: int = 2
        @dataclass
        class OtherConfig(OneConfig):
            other: int = 3
        """,
}

# Modules with no class for us: nothing is patched, nothing is said.
NOTHING = {
    "empty": "",
    "none": "NoneConfig = None",
    "function": "def FunctionConfig(**values): return TrainingArguments(**values)",
    "unrelated": "@dataclass\nclass UnrelatedConfig:\n    own: int = 2",
    "imported": "from transformers.training_args import TrainingArguments as ImportedConfig",
    "from_elsewhere": "from trl.elsewhere import ElsewhereConfig",
    "private": "@dataclass\nclass _PrivateConfig(TrainingArguments):\n    own: int = 2",
    "another_name": "@dataclass\nclass Another(TrainingArguments):\n    own: int = 2\nAnotherConfig = Another",
    "same_base_name": """
class TrainingArguments:  # the user's own
    pass
@dataclass
class SameBaseNameConfig(TrainingArguments):
    own: int = 2
""",
}


@pytest.fixture(scope="module")
def trl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the stand-ins."""
    folder = tmp_path_factory.mktemp("standin")
    for package in ("trl", "trl/trainer", "transformers"):
        (folder / package).mkdir()
        (folder / package / "__init__.py").touch()
    (folder / "transformers" / "training_args.py").write_text(BASE)
    (folder / "trl" / "elsewhere.py").write_text(BEGIN + textwrap.dedent(PATCHED["good"]).replace("Good", "Elsewhere"))
    texts = {**{name: text for name, (text, _) in REFUSING.items()}, **PATCHED, **NOTHING}
    for name, text in texts.items():
        (folder / "trl" / "trainer" / f"{name}_config.py").write_text(BEGIN + textwrap.dedent(text))
    return folder


def run(trl: Path, script: str, hook: str | None = "1", **options: Any) -> Any:
    """Run a script with the stand-ins, and with `start()` called first as the `.pth` line does; return the process."""
    start = "from unsloth_hook._bootstrap import start; start()\n" if hook is not None else ""
    env = {"PYTHONPATH": os.pathsep.join([str(trl), str(ROOT)]), "UNSLOTH_HOOK": hook, **options.pop("env", {})}
    return run_child(start + textwrap.dedent(script), python=sys.executable, env=env, **options)


IMPORT_ALL = f"""
import importlib, json, sys, unsloth_hook
for name in {[*REFUSING, *PATCHED, *NOTHING]!r}:
    importlib.import_module(f"trl.trainer.{{name}}_config")
"""


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


# ---- configs that cannot be patched


def test_a_config_that_cannot_be_patched_stays_stock_and_one_line_says_why(trl: Path) -> None:
    script = (
        IMPORT_ALL
        + f"""
print(json.dumps({{name: [
    [base.__name__ for base in getattr(sys.modules[f"trl.trainer.{{name}}_config"], camel + "Config").__mro__],
    getattr(sys.modules[f"trl.trainer.{{name}}_config"], camel + "Config")().own,
] for name, camel in {[(name, camel(name)) for name in REFUSING]!r}}}))
print(json.dumps(unsloth_hook.status()))
"""
    )
    done = run(trl, script)
    classes, status = map(json.loads, done.stdout.splitlines())
    lines = done.stderr.splitlines()
    assert len(lines) == len(REFUSING), done.stderr
    for name, (_, reason) in REFUSING.items():
        cls = f"trl.trainer.{name}_config.{camel(name)}Config"
        assert classes[name] == [[f"{camel(name)}Config", "TrainingArguments", "object"], 2]
        (line,) = (line for line in lines if cls in line)
        assert line.startswith("unsloth_hook: ")
        assert reason in line
        assert status["classes"][cls]["state"] == "left"
        assert reason in status["classes"][cls]["reason"]
    assert status["active"] is True


def test_its_instances_pickle_as_stock(trl: Path) -> None:
    script = """
        import pickle, pickletools
        for name in ("OwnInit", "Final", "ReadOnly"):
            lower = {"OwnInit": "own_init", "Final": "final", "ReadOnly": "read_only"}[name]
            module = __import__(f"trl.trainer.{lower}_config", fromlist=["x"])
            made = vars(module)[name + "Config"]()
            data = pickle.dumps(made, 2)
            print(sorted(arg for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"))
            print(type(pickle.loads(data)) is type(made), vars(pickle.loads(data)))
    """
    stock, hooked = run(trl, script, None), run(trl, script)
    assert hooked.stdout == stock.stdout
    assert "True" in stock.stdout


def test_two_configs_of_one_module_are_patched_each_with_the_fields_once(trl: Path) -> None:
    script = """
        import json, pickle, unsloth_hook
        from trl.trainer.two_config import OneConfig, OtherConfig
        made = OtherConfig(own=5, other=4, unsloth_num_chunks=7)
        again = pickle.loads(pickle.dumps(made))
        print(json.dumps([
            [unsloth_hook.is_patched(cls) for cls in (OneConfig, OtherConfig)],
            type(again) is OtherConfig, again == made,
            list(OtherConfig.__dataclass_fields__).count("unsloth_num_chunks"),
            [made.own, made.other, made.seen, again.unsloth_num_chunks, made.vllm_sampling_params],
        ]))
    """
    expected = [[True, True], True, True, 1, [5, 4, 1, 7, None]]
    assert json.loads(run(trl, script).stdout) == expected


def test_a_config_that_beartype_has_decorated_is_patched(trl: Path) -> None:
    """A stand-in for `beartype.claw`, which wraps the generated `__init__` in one that it generates itself."""
    decorated = """
        def decorate(cls):
            made = {"stock": cls.__init__}
            code = "def __init__(*args, **values):\\n    return stock(*args, **values)"
            exec(compile(code, "<@beartype(trl.trainer.beartype_config) at 0x7f00>", "exec"), made)
            cls.__init__, made["__init__"].__wrapped__ = made["__init__"], cls.__init__
            return cls
        @decorate
    """
    text = textwrap.dedent(decorated) + textwrap.dedent(PATCHED["good"]).strip().replace("Good", "Beartype")
    (trl / "trl" / "trainer" / "beartype_config.py").write_text(BEGIN + text)
    done = run(trl, "from trl.trainer.beartype_config import *\nprint(BeartypeConfig(own=3).unsloth_num_chunks)")
    assert (done.stdout, done.stderr) == ("-1\n", "")


def test_two_names_of_one_class_stay_two_names_of_one_class(trl: Path) -> None:
    (trl / "trl" / "trainer" / "alias_config.py").write_text(
        BEGIN + textwrap.dedent(PATCHED["good"]).replace("Good", "Alias") + "OlderConfig = AliasConfig\n"
    )
    script = """
        import unsloth_hook
        from trl.trainer.alias_config import AliasConfig, OlderConfig
        print(AliasConfig is OlderConfig, unsloth_hook.is_patched(AliasConfig), list(unsloth_hook.status()["classes"]))
    """
    assert run(trl, script).stdout == "True True ['trl.trainer.alias_config.AliasConfig']\n"


def test_a_module_without_a_config_of_ours_is_left_alone_in_silence_and_status_says_why(trl: Path) -> None:
    script = f"""
import importlib, json, sys
for name in {[*NOTHING]!r}:
    module = importlib.import_module(f"trl.trainer.{{name}}_config")
    print(name, {{key: [base.__name__ for base in value.__mro__] if isinstance(value, type) else type(value).__name__
        for key, value in vars(module).items() if not key.startswith("__")}})
if "unsloth_hook" in sys.modules:
    import unsloth_hook
    left = {{name.rpartition(".")[2]: entry for name, entry in unsloth_hook.status()["classes"].items()}}
    reason = "it does not derive from transformers.TrainingArguments"
    expected = {{"state": "left", "reason": reason}}
    assert left == {{"UnrelatedConfig": expected, "SameBaseNameConfig": expected}}, left
"""
    stock, hooked = run(trl, script, None), run(trl, script)
    assert (hooked.stdout, hooked.stderr) == (stock.stdout, stock.stderr)
    assert hooked.stderr == ""


def test_a_reason_of_several_lines_is_one_line_on_stderr(trl: Path) -> None:
    (trl / "trl" / "trainer" / "lines_config.py").write_text(
        BEGIN + "@dataclass\nclass LinesConfig(TrainingArguments):\n    def __init_subclass__(cls):\n"
        "        raise RuntimeError('one\\ntwo\\n\\nthree')\n"
    )
    done = run(trl, "import trl.trainer.lines_config")
    assert done.stderr.count("\n") == 1
    assert "one two three" in done.stderr


@pytest.mark.parametrize("how", ["gone", "cut short", "empty", "of another version"])
def test_a_package_that_breaks_after_the_start_leaves_imports_as_stock_with_one_line(
    trl: Path, tmp_path: Path, how: str
) -> None:
    """What a swap needs is imported with the first one: an upgrade may have come between."""
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    change = {
        "gone": "shutil.rmtree(package)",
        "cut short": "(package / 'patching.py').write_text('def swap(module')",
        "empty": "(package / 'patching.py').write_text('')",
        "of another version": "(package / 'identity.py').write_text('import nosuchthing')",
    }
    script = f"""
        import os, pathlib, shutil, sys
        package = pathlib.Path({str(tmp_path / PACKAGE.name)!r})
        from unsloth_hook._bootstrap import start
        start()
        {change[how]}
        from trl.trainer.good_config import GoodConfig
        assert not hasattr(GoodConfig, "unsloth_num_chunks") and GoodConfig(own=3).own == 3
        import trl.trainer.two_config
        os.environ["UNSLOTH_HOOK_STRICT"] = "1"
        try:
            import trl.trainer.later_config
        except Exception as error:
            print(type(error).__name__)
        import unsloth_hook
        unsloth_hook.uninstall()
        for _ in range(2):  # TRL is loaded now, and this needs what is not there
            try:
                unsloth_hook.install()
            except Exception:
                assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("unsloth_hook")]
            else:
                raise AssertionError("installed")
    """
    env = {"PYTHONPATH": os.pathsep.join([str(trl), str(tmp_path)]), "UNSLOTH_HOOK": "1"}
    done = run_child(script, python=sys.executable, options=["-B"], env=env)
    assert done.stderr.count("\n") == 1
    assert re.match("unsloth_hook: trl.trainer.good_config, and what comes after it, .* is not whole: ", done.stderr)
    assert done.stdout.rstrip() in ("ImportError", "SyntaxError", "ModuleNotFoundError")


# ---- strict

STRICT = """
import json, sys, unsloth_hook
names = [f"trl.trainer.{name}_config" for name in ("own_init", "final", "read_only")]
errors = []
for name in names * 2:
    try:
        __import__(name)
    except unsloth_hook.PatchError as error:
        errors.append([str(error), type(error.__cause__).__name__, isinstance(error, RuntimeError)])
    assert name not in sys.modules
from trl.trainer.good_config import GoodConfig
from trl.trainer import empty_config
states = {name.rpartition(".")[2]: entry["state"] for name, entry in unsloth_hook.status()["classes"].items()}
print(json.dumps([errors, GoodConfig.unsloth_num_chunks, states]))
"""


@pytest.mark.parametrize("how", ["variable", "argument"])
def test_strict_raises_a_named_error(trl: Path, how: str) -> None:
    if how == "variable":
        done = run(trl, STRICT, env={"UNSLOTH_HOOK_STRICT": "1"})
    else:
        done = run(trl, "import unsloth_hook; unsloth_hook.install(strict=True)\n" + STRICT, None)
    errors, chunks, states = json.loads(done.stdout)
    assert len(errors) == 2 * len(REFUSING)
    for (text, cause, is_runtime_error), (name, (_, reason)) in zip(errors, [*REFUSING.items()] * 2, strict=True):
        assert f"trl.trainer.{name}_config.{camel(name)}Config" in text
        assert reason in text
        assert cause in ("TypeError", "RuntimeError", "AttributeError")
        assert is_runtime_error
    assert chunks == -1
    assert states.pop("GoodConfig") == "patched"
    assert set(states.values()) == {"left"}
    assert done.stderr == ""


@pytest.mark.parametrize("value", ["0", "", "no"])
def test_strict_is_off_by_any_other_value(trl: Path, value: str) -> None:
    done = run(trl, "import trl.trainer.final_config", env={"UNSLOTH_HOOK_STRICT": value})
    assert "FinalConfig is final" in done.stderr


def test_a_late_strict_install_that_fails_leaves_the_hook_off(trl: Path) -> None:
    script = """
        import json, sys
        import trl.trainer.final_config, trl.trainer.good_config
        before, loaded = list(sys.meta_path), set(sys.modules)
        import unsloth_hook
        try:
            unsloth_hook.install(strict=True)
        except unsloth_hook.PatchError as error:
            print("PatchError", error)
        status = unsloth_hook.status()
        print(sys.meta_path == before, status["active"], status["route"])
        import trl.trainer.two_config
        print(unsloth_hook.is_patched(trl.trainer.two_config.OneConfig))
        unsloth_hook.install()  # not strict any more
        print(unsloth_hook.status()["active"], unsloth_hook.is_patched(trl.trainer.good_config.GoodConfig))
    """
    done = run(trl, script, None)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("PatchError trl.trainer.final_config.FinalConfig")
    assert lines[1:] == ["True False None", "False", "True True"]
    assert done.stderr.count("FinalConfig is final") == 1


# ---- installing, more than once


def test_install_and_uninstall_in_any_order(trl: Path) -> None:
    script = """
        import json, os, sys
        before, environment = list(sys.meta_path), dict(os.environ)
        import unsloth_hook
        def state():
            types = [type(finder) for finder in sys.meta_path]
            names = [type_.__name__ for type_ in types if type_.__module__.startswith("unsloth_hook")]
            return [len(names), len(set(names)), unsloth_hook.status()["active"], unsloth_hook.status()["route"]]
        first, second = unsloth_hook.install(), unsloth_hook.install()
        installed = state()
        assert installed[0] == installed[1] >= 1 and installed[2:] == [True, "install"], installed
        second.uninstall()
        assert sys.meta_path == before and state()[2:] == [False, None]
        second.uninstall(), first.uninstall(), unsloth_hook.uninstall()
        assert sys.meta_path == before
        unsloth_hook.install()
        assert state() == installed
        from trl.trainer.good_config import GoodConfig
        assert GoodConfig.unsloth_num_chunks == -1
        entry = unsloth_hook.status()["classes"]["trl.trainer.good_config.GoodConfig"]

        sys.meta_path[:] = before  # by hand, as a test's fixture does
        assert state()[2:] == [False, None]
        unsloth_hook.install()
        assert state() == installed
        assert sys.modules["trl.trainer.good_config"].GoodConfig is GoodConfig
        from trl.trainer.two_config import OneConfig
        assert unsloth_hook.is_patched(OneConfig)

        unsloth_hook.uninstall()
        with unsloth_hook.install():
            with unsloth_hook.install():
                assert state() == installed
            assert state() == installed  # it was on before the inner block
        assert sys.meta_path == before
        from trl.trainer.later_config import LaterConfig
        assert not unsloth_hook.is_patched(LaterConfig)
        assert dict(os.environ) == environment
        print(json.dumps([entry, unsloth_hook.status()["classes"]["trl.trainer.good_config.GoodConfig"]]))
    """
    entries = json.loads(run(trl, script, None).stdout)
    assert entries[0]["state"] == "patched"
    assert entries[0]["fields"] == entries[1]["fields"]


def test_installing_again_keeps_what_is_on_record(trl: Path) -> None:
    script = """
        import json, unsloth_hook
        from trl.trainer.good_config import GoodConfig
        before = unsloth_hook.status()
        unsloth_hook.uninstall()
        unsloth_hook.install()
        print(json.dumps([before["classes"], unsloth_hook.status()["classes"]]))
    """
    before, after = json.loads(run(trl, script).stdout)
    assert before["trl.trainer.good_config.GoodConfig"]["state"] == "patched"
    assert after == before


def test_off_wins_over_install(trl: Path) -> None:
    script = """
        import sys
        before = list(sys.meta_path)
        import unsloth_hook
        with unsloth_hook.install(strict=True) as handle:
            assert sys.meta_path == before and not unsloth_hook.status()["active"]
        import trl.trainer.good_config
        assert not unsloth_hook.is_patched(trl.trainer.good_config.GoodConfig)
    """
    assert run(trl, script, "off").stderr == ""


# ---- exceptions and warnings of what the user imports

RAISING = {
    "import_error": "raise ImportError('text', name='a name', path='a path')",
    "missing": "import no_such_module_anywhere",
    "missing_name": "from json import no_such_name",
    "syntax": "def f(:\n    pass",
    "indentation": "def f():\npass",
    "null": "x = '\0'",
    "value": "def f(): raise ValueError(1, 'two')\nf()",
    "cause": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise LookupError('x') from error",
    "context": "try:\n    1 / 0\nfinally:\n    {}['x']",
    "interrupt": "raise KeyboardInterrupt",
    "exit": "raise SystemExit(7)",
    "exit_text": "import sys\nsys.exit('a text')",
    "generator": "raise GeneratorExit",
    "recursion": "def f(): f()\nf()",
    "inner": "from trl.trainer import value_config",
    "circular": "from trl.trainer.circular_config import CircularConfig",
    "deleted": "import sys\ndel sys.modules[__name__]",
    "field": "from transformers.training_args import TrainingArguments\nTrainingArguments(nope=1)",
    "defaults": "from dataclasses import dataclass\nfrom transformers.training_args import TrainingArguments\n"
    "@dataclass\nclass DefaultsConfig(TrainingArguments):\n    own: int",
}

ERRORS = f"""
import importlib, sys, traceback
sys.setrecursionlimit(150)
names = {[*RAISING]!r} + ["nosuch"]
ways = {{
    "statement": lambda name: exec(f"import trl.trainer.{{name}}_config"),
    "from": lambda name: exec(f"from trl.trainer import {{name}}_config"),
    "class": lambda name: exec(f"from trl.trainer.{{name}}_config import NoSuchConfig"),
    "function": lambda name: importlib.import_module(f"trl.trainer.{{name}}_config"),
}}
for name in names:
    for way, do in ways.items():
        try:
            do(name)
        except BaseException as error:
            print(name, way, type(error).__mro__, error.args, vars(error), getattr(error, "name", None),
                  getattr(error, "path", None), getattr(error, "filename", None), getattr(error, "lineno", None))
            print(repr(error.__cause__), repr(error.__context__), error.__suppress_context__)
            if name != "recursion" and not (way == "function" and sys.version_info < (3, 11)):
                print(traceback.format_exc())
        else:
            print(name, way, "no error")
        print(sorted(module for module in sys.modules if module.startswith("trl")))
"""


def test_exceptions_pass_through_unchanged(trl: Path, tmp_path: Path) -> None:
    """Type, arguments, attributes, cause, context, traceback: compared with a process without the hook."""
    for name, text in RAISING.items():
        (trl / "trl" / "trainer" / f"{name}_config.py").write_text(text)
    (tmp_path / "errors.py").write_text(ERRORS)  # one path in both tracebacks
    script = f"import runpy; runpy.run_path({str(tmp_path / 'errors.py')!r})"
    stock, hooked = run(trl, script, None, options=["-B"]), run(trl, script, options=["-B"])
    assert hooked.stdout == stock.stdout
    assert hooked.stderr == stock.stderr == ""
    assert "unsloth_hook" not in hooked.stdout
    assert stock.stdout.count("Traceback") > 40


@pytest.mark.parametrize(("failure", "code"), [("raise SystemExit(7)", 7), ("raise SystemExit", 0), ("1 / 0", 1)])
def test_the_exit_code_and_what_is_printed_are_as_stock(trl: Path, tmp_path: Path, failure: str, code: int) -> None:
    (trl / "trl" / "trainer" / "ending_config.py").write_text(failure + "\n")
    runs = [
        run_child(
            args=["-c", "import unsloth_hook._bootstrap as b; b.start()\nimport trl.trainer.ending_config"],
            python=sys.executable,
            env={"PYTHONPATH": os.pathsep.join([str(trl), str(ROOT)]), "UNSLOTH_HOOK": value},
            check=False,
        )
        for value in ("0", "1")
    ]
    assert [(run.returncode, run.stdout, run.stderr) for run in runs] == [(code, "", runs[0].stderr)] * 2


def test_warnings_of_the_module_have_stocks_file_and_line(trl: Path, tmp_path: Path) -> None:
    (trl / "trl" / "trainer" / "warning_config.py").write_text(
        "import warnings\nfor level in (1, 2, 3, 4):\n    warnings.warn(f'{level}', FutureWarning, stacklevel=level)\n"
    )
    script = """
        import warnings
        from pathlib import Path
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            def importing():
                import trl.trainer.warning_config

            importing()
        print([(str(one.message), one.category.__name__, Path(one.filename).name, one.lineno) for one in caught])
    """
    # The line that starts the hook is one line; stock runs with an empty one, so that the numbers are the same.
    stock, hooked = run(trl, "\n" + textwrap.dedent(script), None), run(trl, script)
    assert hooked.stdout == stock.stdout
    assert "child.py" in stock.stdout


# ---- start-up, every step made to raise

STEPS = """
import builtins, json, os, sys
from unsloth_hook import _bootstrap, switch

failures = [Exception("x"), SystemExit(3), KeyboardInterrupt(), BaseException("y"), GeneratorExit(), MemoryError()]

class Raise:
    "Makes the import of one module raise."
    def __init__(self, name, failure):
        self.name, self.failure = name, failure
    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            raise self.failure

class MetaPath(list):
    "Makes one change of the list raise, after some that pass."
    failure, passing = None, 0
    def insert(self, *args):
        if self.passing == 0:
            raise self.failure
        self.passing -= 1
        super().insert(*args)
    append = lambda self, finder: self.insert(len(self), finder)

def forget():
    for name in [name for name in sys.modules if name.startswith("unsloth_hook.")]:
        if name in ("unsloth_hook._bootstrap", "unsloth_hook.switch"):
            continue
        del sys.modules[name]
        delattr(sys.modules["unsloth_hook"], name.partition(".")[2])

def raising(failure):
    def step(*args, **kwargs):
        raise failure
    return step

def check(what, failure):
    _bootstrap.start()  # must return
    assert switch.ours() == [], (what, failure)
    count.append(what)

def is_off(what):
    activation = sys.modules.get("unsloth_hook.activation")  # what status() would say, without importing more
    assert (switch.ours(), getattr(activation, "route", None)) == ([], None), what

# What start() asks before it acts; the other functions there are what clears up after a failure.
asking = [name for name, value in vars(switch).items()
          if type(value) is type(forget) and name not in ("is_strict", "take_off", "ours", "say")]

def works():
    _bootstrap.start()
    found = len(switch.ours())
    switch.take_off()
    forget()
    assert found >= 1

switch.take_off()  # where the package is installed, its .pth line has been here
forget()
count, stock = [], list(sys.meta_path)
_bootstrap.start()
modules = {name for name in sys.modules if name.startswith("unsloth_hook.")}
modules = sorted(modules - {"unsloth_hook._bootstrap", "unsloth_hook.switch"})
changes = len(switch.ours())
switch.take_off()
forget()

for failure in failures:
    for name in modules:
        sys.meta_path.insert(0, Raise(name, failure))
        check(name, failure)
        sys.meta_path[:] = stock
        is_off(name)
        works()

    import unsloth_hook.activation, unsloth_hook.late_activation
    places = [
        (unsloth_hook.activation, "activate"),
        (os.environ, "get"), (unsloth_hook.late_activation, "swap_loaded"), *((switch, name) for name in asking),
    ]
    import trl.trainer.good_config  # so that swap_loaded is a step
    for place, name in places:
        real = getattr(place, name)
        setattr(place, name, raising(failure))
        check(name, failure)
        setattr(place, name, real)
        is_off(name)
    for name in [name for name in sys.modules if name.startswith("trl")]:
        del sys.modules[name]

    for number in range(changes):
        sys.meta_path = MetaPath(stock)
        sys.meta_path.failure, sys.meta_path.passing = failure, number
        check("meta_path", failure)
        sys.meta_path = list(stock)
        is_off("meta_path")
    works()

print(len(modules), changes, len(asking), len(count))
"""


def test_every_step_of_start_made_to_raise_leaves_nothing(trl: Path) -> None:
    done = run(trl, STEPS, None, env={"UNSLOTH_HOOK": "1"})
    modules, changes, asking, count = map(int, done.stdout.split())
    assert modules >= 3 and changes >= 1 and asking >= 1
    assert count == 6 * (modules + changes + asking + 3)
    lines = done.stderr.splitlines()
    assert len(lines) == count
    assert all(line.startswith("unsloth_hook: the hook stays off: ") for line in lines)


@pytest.mark.parametrize("stream", ["None", "open(os.devnull, 'w')", "Closed()"])
def test_start_survives_a_standard_error_that_is_not_there(trl: Path, stream: str) -> None:
    script = f"""
        import os, sys
        from unsloth_hook import _bootstrap, switch
        class Closed:
            def write(self, text):
                raise KeyboardInterrupt
        sys.stderr = {stream}
        os.environ["UNSLOTH_HOOK"] = "banana"
        _bootstrap.start()
        os.environ["UNSLOTH_HOOK"] = "1"
        sys.modules["unsloth_hook.activation"] = None
        _bootstrap.start()
        print(switch.ours())
        os._exit(0) if sys.stdout.flush() is None else None
    """
    assert run(trl, script, None).stdout == "[]\n"


def test_start_survives_any_finder_of_others(trl: Path) -> None:
    script = """
        import sys
        sys.meta_path.append(type("Odd", (), {"__module__": None, "find_spec": lambda self, *question: None})())
        from unsloth_hook._bootstrap import start
        from unsloth_hook.switch import ours
        start()
        print(len(ours()) >= 1)
    """
    assert run(trl, script, None, env={"UNSLOTH_HOOK": "1"}).stdout == "True\n"


# ---- what start-up imports, and how long it is

NEW = """
import os, sys
sys.path.append({root!r})
before = set(sys.modules)
from unsloth_hook._bootstrap import start
start()
print(sorted(set(sys.modules) - before - {{name for name in sys.modules if name.startswith("unsloth_hook")}}))
print(len([finder for finder in sys.meta_path if type(finder).__module__.startswith("unsloth_hook")]))
"""


def test_on_imports_nothing_but_ours_into_a_bare_python() -> None:
    """Without `site`, whose `.pth` lines may have imported anything."""
    done = run_child(NEW.format(root=str(ROOT)), python=sys.executable, options=["-S"], env={"UNSLOTH_HOOK": "1"})
    assert done.stdout.splitlines()[0] == "[]"


def test_on_imports_none_of_the_slow_ones() -> None:
    done = run_child(NEW.format(root=str(ROOT)), python=sys.executable, options=["-S"], env={"UNSLOTH_HOOK": "1"})
    new, finders = done.stdout.splitlines()
    assert int(finders) >= 1
    slow = "re typing dataclasses inspect importlib.util logging torch transformers trl threading functools collections"
    assert not set(slow.split()) & set(json.loads(new.replace("'", '"')))


def test_off_start_does_nothing() -> None:
    for value in ("0", "false", "No", "OFF", "", " ", None):
        done = run_child(NEW.format(root=str(ROOT)), python=sys.executable, options=["-S"], env={"UNSLOTH_HOOK": value})
        assert done.stdout == "[]\n0\n", value


def test_importing_the_package_is_not_switching_it_on() -> None:
    script = f"""
        import sys
        sys.path.append({str(ROOT)!r})
        before = set(sys.modules)
        import unsloth_hook
        print(sorted(set(sys.modules) - before))
        assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("unsloth_hook")]
    """
    done = run_child(script, python=sys.executable, options=["-S"], env={"UNSLOTH_HOOK": "1"})
    assert done.stdout == "['unsloth_hook']\n"


def test_the_start_up_path_is_short() -> None:
    """The gate: what runs in every interpreter, before anything is known to be wanted."""
    texts = [(PACKAGE / name).read_text(encoding="utf-8") for name in ("_bootstrap.py", "_pth.py", "switch.py")]
    assert sum(bool(line.strip()) for text in texts for line in text.splitlines()) < 75
