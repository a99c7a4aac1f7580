"""beartype.claw, typeguard, jaxtyping, coverage and pytest-xdist beside the hook: each does its work, and so does ours.

The tools are the real ones; the TRL is a stand-in, since what they do is done to whatever modules they are told to.
"""

import json
import textwrap
from pathlib import Path

import coverage
import pytest
import stand_in
from helpers import run_child
from stock import EXTRAS

CONFIG = (
    stand_in.CONFIG.format(name="SFTConfig")
    + """
def doubled(number: int) -> int:
    return 2 * number
"""
)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = stand_in.make(tmp_path_factory.mktemp("standins"), {"trl/trainer/sft_config.py": CONFIG})
    return {"UNSLOTH_HOOK": "1", "PYTHONPATH": str(folder)}


# How each tool is switched on, after the hook or before it: the lines, and what `doubled("x")` raises then.
TOOLS = {
    "beartype.claw": ("from beartype.claw import beartype_package; beartype_package('trl')", "BeartypeCall"),
    "typeguard": ("from typeguard import install_import_hook; install_import_hook('trl')", "TypeCheckError"),
    "jaxtyping": (
        "from jaxtyping import install_import_hook; install_import_hook('trl', 'beartype.beartype')",
        "TypeCheckError",
    ),
}

BOTH = """
    import json, pickle
    from trl.trainer.sft_config import SFTConfig, doubled
    import trl.trainer.sft_config as module
    import unsloth_hook
    try:
        raised = doubled("x")
    except Exception as error:
        raised = type(error).__name__
    try:
        refused = SFTConfig(max_length="long").max_length
    except Exception as error:
        refused = type(error).__name__
    made = SFTConfig("here", unsloth_num_chunks=4, max_seq_length=3)
    print(json.dumps({
        "raised": raised, "refused": refused, "state": unsloth_hook.status()["classes"],
        "made": [made.unsloth_num_chunks, made.max_length, pickle.loads(pickle.dumps(made)) == made],
        "loader": type(module.__loader__).__name__, "bypassed": unsloth_hook.status()["bypassed"],
    }))
"""


@pytest.mark.parametrize("order", ["the tool after the hook", "the tool before the hook"])
@pytest.mark.parametrize("tool", TOOLS)
def test_a_type_checker_checks_and_the_class_is_patched(env: dict[str, str], tool: str, order: str) -> None:
    lines, raises = TOOLS[tool]
    if order == "the tool after the hook":
        done = run_child(f"{lines}\n" + textwrap.dedent(BOTH), env=env)
    else:
        late = {**env, "UNSLOTH_HOOK": ""}
        done = run_child(f"{lines}\nimport unsloth_hook; unsloth_hook.install()\n" + textwrap.dedent(BOTH), env=late)
    told = json.loads(done.stdout)
    assert told["raised"].startswith(raises), told
    assert told["made"] == [4, 3, True]
    assert told["state"]["trl.trainer.sft_config.SFTConfig"]["state"] == "patched"
    assert told["bypassed"] == {}
    assert "PostImportLoader" not in told["loader"]


@pytest.mark.parametrize("tool", TOOLS)
def test_what_a_checker_checks_is_what_it_checks_without_the_hook(env: dict[str, str], tool: str) -> None:
    """Of the constructor too, which is written anew for the extra fields."""
    script = """
        import inspect
        from trl.trainer.sft_config import SFTConfig
        for values in ({"max_length": "long"}, {"max_length": 3}, {"nope": 1}, {"output_dir": 1}):
            try:
                print(SFTConfig(**values).max_length)
            except Exception as error:
                print(type(error).__name__)
        print([name for name in inspect.signature(SFTConfig.__init__).parameters if name not in {extras}])
    """.replace("{extras}", repr(list(EXTRAS)))
    script = TOOLS[tool][0] + "\n" + textwrap.dedent(script)
    stock, hooked = (run_child(script, env={**env, "UNSLOTH_HOOK": value}).stdout for value in ("0", "1"))
    assert hooked == stock
    assert stock.count("\n") == 5
    assert ("Beartype" in stock or "TypeCheckError" in stock) is (tool != "typeguard")  # which leaves dataclasses alone


@pytest.mark.parametrize("tool", TOOLS)
def test_a_checker_and_a_post_init_of_ones_own_leave_no_trace(env: dict[str, str], tool: str) -> None:
    script = """
        from trl.trainer.sft_config import SFTConfig
        class Mine(SFTConfig):
            def __post_init__(self): pass
        print(sorted(vars(Mine())), sorted(vars(SFTConfig())))
    """
    script = TOOLS[tool][0] + "\n" + textwrap.dedent(script)
    stock, hooked = (run_child(script, env={**env, "UNSLOTH_HOOK": value}).stdout for value in ("0", "1"))
    assert hooked == stock


def test_coverage_measures_the_config_module_and_the_class_is_patched(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "from trl.trainer.sft_config import SFTConfig, doubled\n"
        "print(doubled(SFTConfig(unsloth_num_chunks=4).unsloth_num_chunks))\n"
    )
    measured = []
    for value in ("0", "1"):
        data = tmp_path / f"data{value}"
        args = ["-m", "coverage", "run", f"--data-file={data}", "--branch", "--source=trl", str(tmp_path / "script.py")]
        done = run_child(args=args, env={**env, "UNSLOTH_HOOK": value}, check=value == "1")
        lines = coverage.CoverageData(str(data))
        lines.read()
        measured.append({Path(file).name: sorted(lines.lines(file) or ()) for file in lines.measured_files()})
    assert done.stdout == "8\n"
    before, after = (files["sft_config.py"] for files in measured)
    body = len(CONFIG.splitlines())
    assert set(after) - set(before) == {body}  # only under the hook is there such a field, and `doubled` is called
    assert set(before) <= set(after)


def test_xdists_workers_are_hooked(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest, unsloth_hook\n"
        "@pytest.mark.parametrize('number', range(4))\n"
        "def test_it(number, worker_id, testrun_uid):\n"
        "    from trl.trainer.sft_config import SFTConfig\n"
        "    assert worker_id.startswith('gw')\n"
        "    assert SFTConfig(unsloth_num_chunks=number).unsloth_num_chunks == number\n"
        "    print('route', unsloth_hook.status()['route'])\n"
    )
    for variable, plugin, route in (("1", [], "env"), ("", ["-p", "unsloth_hook.pytest_plugin"], "pytest")):
        args = ["-m", "pytest", "-n", "2", "-rP", "-p", "no:cacheprovider", *plugin, str(tmp_path)]
        done = run_child(args=args, env={**env, "UNSLOTH_HOOK": variable}, cwd=tmp_path)
        assert "4 passed" in done.stdout
        assert done.stdout.count(f"route {route}\n") == 4
