"""`unsloth-hook verify`: each config of the installed TRL, opened by a Python without the hook (issue 5, item 4)."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers import hooked_python, make_venv, run_child
from test_run import LIBRARIES, ROOT

from unsloth_hook.command import verify_configs

# A config module of a user's TRL in which one thing is wrong each; `trl` below is a stand-in of four small files.
CONFIGS = {
    "good": "@dataclass\nclass GoodConfig(TrainingArguments):\n    max_length: int = 8\n",
    "closed": "@dataclass\nclass ClosedConfig(TrainingArguments):\n    made_by: object = lambda: None\n",
    "lost": """
@dataclass
class LostConfig(TrainingArguments):
    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "unsloth_num_chunks"}
""",
    "own_init": "class OwnInitConfig(TrainingArguments):\n    def __init__(self):\n        pass\n",
    "needs": """
@dataclass
class NeedsConfig(TrainingArguments):
    url: str | None = None
    def __post_init__(self):
        if self.url is None:
            raise ValueError("url must be set")
        super().__post_init__()
""",
    "optional": "import a_package_that_is_not_here\n",
}


def verify(python: Path, *args: str, **env: str | None) -> tuple[int, str, str]:
    done = run_child(args=["-m", "unsloth_hook", "verify", *args], env=env, python=python, check=False)
    return done.returncode, done.stdout, done.stderr


def modules() -> set[str]:
    """The config modules of the installed TRL by the names of its files, found without the hook."""
    folder = LIBRARIES / "trl"
    files = [*folder.glob("trainer/*_config.py"), *folder.glob("experimental/*/*_config.py")]
    found = {".".join(file.relative_to(LIBRARIES).with_suffix("").parts) for file in files}
    return found - {"trl.trainer.base_config", "trl.trainer.model_config"}


def test_each_config_module_of_the_installed_trl_is_verified() -> None:
    assert set(verify_configs.config_modules()) == modules()


@pytest.mark.whole
def test_all_of_the_installed_trl_pass() -> None:
    code, out, err = verify(hooked_python(), "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert {each["result"] for each in found} == {"ok"}
    assert {each["config"].rpartition(".")[0] for each in found} == modules()
    assert all({"unsloth_num_chunks", "vllm_sampling_params"} <= set(each["fields"]) for each in found)


@pytest.fixture(scope="module")
def broken_trl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python whose TRL is a stand-in with configs that go wrong, each in a way of its own."""
    folder = tmp_path_factory.mktemp("stand-in")
    trainer = folder / "libraries" / "trl" / "trainer"
    trainer.mkdir(parents=True)
    (trainer.parent / "__init__.py").touch()
    (trainer / "__init__.py").touch()
    for name, text in CONFIGS.items():
        head = "from dataclasses import dataclass\nfrom transformers import TrainingArguments\n"
        (trainer / f"{name}_config.py").write_text(text + head if name == "optional" else head + text)
    return make_venv(folder / "venv", folder / "libraries", ROOT, LIBRARIES)


def test_each_failure_is_named_and_the_rest_is_verified(broken_trl: Path) -> None:
    code, out, err = verify(broken_trl, COLUMNS="80")
    assert code == 1, err
    for shown in (
        "failed    LostConfig    trl.trainer  4\n  not the same fields without the hook: unsloth_num_chunks\n",
        "failed    OwnInitConfig  trl.trainer  0\n  TypeError: its __init__ is not one that dataclasses wrote\n",
        "failed    ClosedConfig",
        "PicklingError: Can't pickle <function ClosedConfig.<lambda>",
        "as stock  optional_config",
        "\n  ModuleNotFoundError: No module named 'a_package_that_is_not_here'\n",
        "ok        GoodConfig",
        "ok        NeedsConfig",
        "\n6 configs: 2 ok, 1 as stock, 3 failed\n",
    ):
        assert re.sub(" +", " ", shown) in re.sub(" +", " ", out), out


def test_nothing_to_verify_says_so(tmp_path: Path) -> None:
    empty: list[Any] = [path for path in LIBRARIES.iterdir() if path.name.split("-")[0] not in ("trl", "unsloth_hook")]
    (tmp_path / "libraries").mkdir()
    for path in empty:
        (tmp_path / "libraries" / path.name).symlink_to(path)
    without_trl = make_venv(tmp_path / "venv", ROOT, tmp_path / "libraries")
    code, out, err = verify(without_trl)
    assert (code, out) == (2, "")
    assert err.startswith("unsloth-hook: there is no TRL in this Python")
    code, out, err = verify(hooked_python(), UNSLOTH_HOOK="0")
    assert (code, out) == (1, "")
    assert err == "unsloth-hook: UNSLOTH_HOOK=0 keeps the hook off: nothing to verify\n"
