"""Contract 5: switching the hook on after TRL was imported; and what the handle, `uninstall()` and `status()` do."""

import json
from pathlib import Path
from typing import Any

import helpers
import pytest
import stand_in
import stock
from helpers import run_child
from stock import EXTRAS, is_extra

# Three processes run this: without the hook, with it from the start (by the variable), and with it switched on late.
SCRIPT = """
import dataclasses, gc, inspect, json, os, pickle, sys, types, warnings

warnings.simplefilter("ignore")
LATE = "UNSLOTH_HOOK" not in os.environ
import torch, transformers, trl
from child_configs import attempt, full_name, keywords
from child_pickles import forms, load, load_torch, sample, state
from trl import SFTConfig, SFTTrainer
from trl.experimental.gkd.gkd_config import GKDConfig
from trl.trainer.grpo_config import GRPOConfig as Renamed

class Mine(SFTConfig):
    more = "of mine"

    def __post_init__(self):
        super().__post_init__()
        self.counted = getattr(self, "counted", 0) + 1

# What user code took before.
holder = types.ModuleType("holder")
holder.SFTConfig = SFTConfig
made = {"SFTConfig": sample(SFTConfig), "GKDConfig": sample(GKDConfig), "GRPOConfig": sample(Renamed),
        "Mine": sample(Mine)}
states = {name: state(config) for name, config in made.items()}
with_token = SFTConfig("token", use_cpu=True, bf16=False, report_to="none", max_steps=1, hub_token="secret",
                       save_strategy="no", disable_tqdm=True, seed=1)
with_token.by_hand = ["kept"]
environment = dict(os.environ)
result = {}

if LATE:
    import unsloth_hook
    result["before"] = [unsloth_hook.is_patched(SFTConfig), unsloth_hook.status()]
    unsloth_hook.install()
    result["environment"] = environment == dict(os.environ)

# A pickle of each, by every form; and what comes back.
made["made after"] = sample(SFTConfig)
made["GKDConfig made after"] = sample(GKDConfig)
made["Mine made after"] = sample(Mine)
made["past every constructor"] = object.__new__(SFTConfig)
vars(made["past every constructor"]).update(vars(made["SFTConfig"]))
result["globals"], result["back"] = {}, {}
result["depth of KTOConfig"] = len(trl.KTOConfig.__mro__)
for name, config in made.items():
    result["globals"][name], result["back"][name] = {}, {}
    for form, data in forms(config).items():
        if "dill" in form and "Mine" in name:  # written by value, it can be read by dill only
            continue
        if form.startswith("torch"):
            with open("file.bin", "wb") as file:
                file.write(data)
            names, loaded = load_torch("file.bin")
        else:
            names, loaded = load(data)
        if form == "cloudpickle" and "Mine" in name:
            names = [found for found in names if "unsloth" in found]  # pickled by value: its code and all
        result["globals"][name][form] = names
        result["back"][name][form] = [full_name(type(loaded)), state(loaded) == state(config)]
result["kept"] = {name: state(made[name]) == states[name] for name in states}
result["counted"] = [made[name].counted for name in ("Mine", "Mine made after")]
result["signature"] = [str(p) for p in inspect.signature(SFTConfig).parameters.values()]
result["isinstance"] = [isinstance(config, holder.SFTConfig) for config in made.values()]
result["values"] = holder.SFTConfig(**keywords(SFTConfig)).to_dict()

if LATE:
    owner = trl.SFTConfig
    import trl.trainer.sft_config as module
    result["facts"] = {
        "captured is bound no more": owner is not SFTConfig and module.SFTConfig is owner,
        "captured is the pristine one": owner.__mro__[1] is SFTConfig,
        "patched": [unsloth_hook.is_patched(cls) for cls in (owner, trl.GRPOConfig, GKDConfig, SFTConfig)],
        "gkd": unsloth_hook.is_patched(sys.modules["trl.experimental.gkd.gkd_config"].GKDConfig),
        "target": vars(SFTConfig)["_unsloth_config_pickle_target"] is owner,
        "still held": [
            f"{name}.{key}" for name, held in list(sys.modules.items())
            if name.split(".")[0] == "trl" and isinstance(held, types.ModuleType)
            for key, value in list(vars(held).items()) if any(value is old for old in (SFTConfig, Renamed))
        ],
        "user's reference": holder.SFTConfig is SFTConfig,
        "imports anew": __import__("importlib").import_module("trl.trainer.kto_config").KTOConfig in
                        unsloth_hook.identity.patched,
        "extras by the captured class": [
            SFTConfig(**keywords(SFTConfig), unsloth_num_chunks=3, max_seq_length=7).max_length,
            Renamed(**keywords(Renamed), unsloth_num_chunks=3).unsloth_num_chunks,
        ],
    }
    result["status"] = unsloth_hook.status()

# Real training: a Llama of nobody's, a step, a save.
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainingArguments

words = ["<pad>", "</s>", "the", "red", "cat", "sleeps"]
tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<pad>"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>")

def train(args):
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=len(words), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=16, pad_token_id=0, eos_token_id=1,
    ))
    trainer = SFTTrainer(
        model=model, args=args, processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"text": ["the red cat sleeps", "the cat sleeps"] * 8}),
    )
    loss = trainer.train().training_loss
    trainer.save_model("saved")
    names, loaded = load_torch("saved/training_args.bin")
    cls = type(trainer.args)
    return {
        "class": full_name(cls),
        "declared": "unsloth_num_chunks" in cls.__dataclass_fields__,
        "owner": trl.SFTConfig is cls,
        "same object": trainer.args is args,
        "steps": trainer.state.global_step,
        "loss": loss,
        "token": trainer.args.hub_token,
        "by hand": getattr(trainer.args, "by_hand", None),
        "chunks": getattr(trainer.args, "unsloth_num_chunks", None),
        "learning rate": trainer.args.learning_rate,
        "globals": names,
        "saved": [full_name(type(loaded)), loaded.hub_token, getattr(loaded, "by_hand", None)],
    }

plain = {"use_cpu": True, "report_to": "none", "max_steps": 1, "save_strategy": "no", "disable_tqdm": True, "seed": 1}

def user_class(**members):
    return dataclasses.dataclass(type("TrainingArguments", (TrainingArguments,), {"__module__": "__main__", **members}))

same_name = user_class()
more_fields = user_class(mine=3, __annotations__={"mine": int})
result["train"] = {
    "config with token": attempt(train, with_token),
    "captured class": attempt(lambda: train(SFTConfig("made", bf16=False, hub_token="secret", **plain))),
    "subclass": attempt(lambda: train(Mine("mine", bf16=False, hub_token="secret", **plain))),
    "TrainingArguments": attempt(lambda: train(TrainingArguments("plain", hub_token="secret", **plain))),
    "user's TrainingArguments": attempt(lambda: train(same_name("users", hub_token="secret", **plain))),
    "user's TrainingArguments with a field": attempt(lambda: train(more_fields("more", hub_token="secret", **plain))),
}
print(json.dumps(result, default=str))
"""

CONFIGS = ["SFTConfig", "GKDConfig", "GRPOConfig", "Mine", "made after", "GKDConfig made after", "Mine made after"]
PAST = "past every constructor"
SFT = "trl.trainer.sft_config.SFTConfig"


@helpers.once
def seen() -> Any:
    """What the three processes saw."""
    return stock.at_once(
        stock=lambda: stock.run(SCRIPT, "0"),
        early=lambda: stock.run(SCRIPT, "1"),
        late=lambda: stock.run(SCRIPT, None),
    )


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("config", [*CONFIGS, PAST])
def test_pickles_name_only_what_stock_names(config: str, when: str) -> None:
    """Configs made before a late switch, by classes taken before it, in every form of pickle."""
    late, plain = seen()[when]["globals"][config], seen()["stock"]["globals"][config]
    if config == PAST:  # the only one whose class is displaced still: protocols 2 to 5 are promised
        late, plain = (
            {form: names for form, names in globals_.items() if form not in ("protocol-0", "protocol-1")}
            for globals_ in (late, plain)
        )
    assert len(plain) > 8
    assert late == plain


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("config", [*CONFIGS, PAST])
def test_they_come_back_with_all_their_state(config: str, when: str) -> None:
    assert seen()[when]["back"][config] == seen()["stock"]["back"][config]
    assert {whole for _, whole in seen()[when]["back"][config].values()} == {True}


def test_a_late_switch_changes_no_value_of_what_exists() -> None:
    late = seen()["late"]
    assert set(late["kept"].values()) == {True}
    assert late["counted"] == seen()["stock"]["counted"] == [1, 1], "__post_init__ ran again, or not at all"
    assert late["isinstance"] == seen()["stock"]["isinstance"]
    assert late["values"] == seen()["stock"]["values"]


def test_the_captured_class_has_trl_signature_still() -> None:
    late = seen()["late"]["signature"]
    assert [text for text in late if not is_extra(text.split(":")[0])] == seen()["stock"]["signature"]


def test_loaded_config_modules_are_swapped_and_every_trl_module_rebound() -> None:
    facts = seen()["late"]["facts"]
    assert facts["captured is bound no more"]
    assert facts["captured is the pristine one"]
    assert facts["still held"] == []
    assert facts["patched"][:2] == [True, True]
    assert facts["patched"][2] and facts["gkd"], "what inherits the fields stays the class that it is"
    assert facts["imports anew"], "what is imported after a late switch is patched too"


def test_the_pristine_class_is_displaced() -> None:
    facts = seen()["late"]["facts"]
    assert facts["target"]
    assert facts["user's reference"], "what user code holds cannot be rebound"
    assert not facts["patched"][3]


def test_the_captured_class_takes_the_extra_fields() -> None:
    assert seen()["late"]["facts"]["extras by the captured class"] == [7, 3]


def test_status_says_that_it_was_late_and_what_was_done() -> None:
    late = seen()["late"]
    patched, before = late["before"]
    assert not patched
    assert (before["active"], before["route"], before["late"], before["classes"]) == (False, None, False, {})
    status = late["status"]
    assert (status["active"], status["route"], status["late"]) == (True, "install", True)
    assert status["classes"][SFT] == {"state": "patched", "fields": list(EXTRAS)}
    assert status["classes"]["trl.trainer.grpo_config.GRPOConfig"] == {"state": "patched", "fields": list(EXTRAS)[:-1]}
    assert status["classes"]["trl.experimental.gkd.gkd_config.GKDConfig"]["fields"] == list(EXTRAS)


def test_install_leaves_the_environment_alone() -> None:
    assert seen()["late"]["environment"]


TRAINED = ["config with token", "captured class", "subclass", "TrainingArguments", "user's TrainingArguments"]


@pytest.mark.parametrize("when", ["stock", "early", "late"])
@pytest.mark.parametrize("args", TRAINED)
def test_a_trainer_trains_and_saves_and_loses_nothing(args: str, when: str) -> None:
    run, plain = seen()[when]["train"][args], seen()["stock"]["train"][args]
    for key in ("class", "same object", "steps", "loss", "token", "by hand", "learning rate", "globals", "saved"):
        assert run[key] == plain[key], key
    assert run["steps"] == 1
    assert run["token"] == run["saved"][1] == "secret"
    assert run["by hand"] == run["saved"][2] == (["kept"] if args == "config with token" else None)


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("args", TRAINED)
def test_the_class_that_the_trainer_ends_up_with(args: str, when: str) -> None:
    """The owner of TRL's name, with the extras as declared fields; the user's subclass stays the user's.

    A config made before a late switch is given to the trainer as it is and is not rebuilt: it has become the owner's.
    A subclass that was made before it has no new declared fields, but they answer.
    """
    run = seen()[when]["train"][args]
    assert run["class"] == ("__main__.Mine" if args == "subclass" else SFT)
    assert run["owner"] == (args != "subclass")
    assert run["declared"]
    assert run["chunks"] == -1
    assert run["same object"] == (args in ("config with token", "captured class", "subclass"))


def test_a_users_own_training_arguments_with_more_fields_fare_as_with_stock() -> None:
    args = "user's TrainingArguments with a field"
    plain = seen()["stock"]["train"][args]
    assert plain == "TypeError: SFTConfig.__init__() got an unexpected keyword argument 'mine'"
    assert seen()["early"]["train"][args] == plain
    assert seen()["late"]["train"][args] == plain


UNINSTALL = """
import json, os, pickle, sys, warnings
warnings.simplefilter("ignore")
import child_pickles, unsloth_hook
from child_configs import full_name
from trl.trainer.sft_config import SFTConfig

old = child_pickles.sample(SFTConfig)
on = unsloth_hook.status()
unsloth_hook.uninstall()
off = unsloth_hook.status()
from trl.trainer.reward_config import RewardConfig
from trl.trainer.kto_config import KTOConfig
import trl, trl.trainer.sft_config
new = child_pickles.sample(SFTConfig)
result = {
    "status": [on, off],
    "finders": [type(finder).__name__ for finder in sys.meta_path if "unsloth" in type(finder).__module__],
    "patched": [unsloth_hook.is_patched(cls) for cls in (SFTConfig, RewardConfig, KTOConfig)],
    "same": trl.trainer.sft_config.SFTConfig is SFTConfig,
    "globals": [
        {form: child_pickles.load(data)[0] for form, data in child_pickles.forms(config).items() if "torch" not in form}
        for config in (old, new)
    ],
    "extras": [old.unsloth_num_chunks, new.unsloth_grpo_mini_batch],
    "plain": child_pickles.load(pickle.dumps(child_pickles.sample(KTOConfig)))[0][0],
}
unsloth_hook.install()
import trl.trainer.kto_config
result["again"] = [
    unsloth_hook.is_patched(trl.trainer.kto_config.KTOConfig),
    trl.trainer.sft_config.SFTConfig is SFTConfig,
    len(trl.trainer.kto_config.KTOConfig.__mro__),
    type(pickle.loads(pickle.dumps(old))) is SFTConfig,
    type(pickle.loads(pickle.dumps(child_pickles.sample(KTOConfig)))) is trl.trainer.kto_config.KTOConfig,
    unsloth_hook.status()["late"],
]
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def uninstalled() -> Any:
    return stock.run(UNINSTALL, "1")


def test_after_uninstall_classes_stay_patched_and_keep_pickling(uninstalled: Any) -> None:
    assert uninstalled["patched"] == [True, False, False]
    assert uninstalled["same"]
    assert uninstalled["extras"] == [4, None]
    expected = seen()["stock"]["globals"]["SFTConfig"]
    for names in uninstalled["globals"]:
        assert names == {form: expected[form] for form in names}


def test_after_uninstall_nothing_new_is_patched(uninstalled: Any) -> None:
    on, off = uninstalled["status"]
    assert (on["active"], on["route"]) == (True, "env")
    assert (off["active"], off["route"]) == (False, None)
    assert off["classes"] == on["classes"]
    assert uninstalled["finders"] == []
    assert uninstalled["plain"] == "trl.trainer.kto_config.KTOConfig"


def test_installed_again_it_takes_up_what_it_missed(uninstalled: Any) -> None:
    patched, same, depth, old, missed, late = uninstalled["again"]
    assert (patched, same, old, missed, late) == (True, True, True, True, True)
    assert depth == 1 + seen()["stock"]["depth of KTOConfig"]


# From here on a stand-in for TRL does, and takes a tenth of a second: what is tested is the hook's own switch.

FOLDER = {
    "trl/trainer/a_config.py": stand_in.CONFIG.format(name="AConfig"),
    "trl/trainer/b_config.py": stand_in.CONFIG.format(name="BConfig"),
}


@pytest.fixture(scope="module")
def trl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in.make(tmp_path_factory.mktemp("trl"), FOLDER)


def child(folder: Path, script: str, hook: str | None = None, **env: str) -> Any:
    done = run_child(script, env={"UNSLOTH_HOOK": hook, "PYTHONPATH": str(folder), **env})
    return json.loads(done.stdout), done.stderr


FINDERS = """
    import json, os, sys, unsloth_hook

    def finders():
        return [type(finder).__name__ for finder in sys.meta_path if "unsloth" in type(finder).__module__]
"""


def test_the_handle_uninstalls(trl: Path) -> None:
    script = (
        FINDERS
        + """
    before = list(sys.meta_path)
    handle = unsloth_hook.install()
    on = finders()
    handle.uninstall()
    handle.uninstall()
    from trl.trainer.a_config import AConfig
    print(json.dumps([on != [], sys.meta_path == before, unsloth_hook.is_patched(AConfig)]))
    """
    )
    assert child(trl, script) == ([True, True, False], "")


def test_as_a_context_manager_it_is_on_inside_and_off_after(trl: Path) -> None:
    script = (
        FINDERS
        + """
    try:
        with unsloth_hook.install():
            from trl.trainer.a_config import AConfig
            raise KeyError
    except KeyError:
        pass
    from trl.trainer.b_config import BConfig
    print(json.dumps([finders(), unsloth_hook.is_patched(AConfig), unsloth_hook.is_patched(BConfig)]))
    """
    )
    assert child(trl, script) == ([[], True, False], "")


@pytest.mark.parametrize("hook", [None, "1"])
def test_a_context_manager_inside_leaves_on_what_was_on_before(trl: Path, hook: str | None) -> None:
    script = (
        FINDERS
        + """
    unsloth_hook.install()
    before = finders()
    with unsloth_hook.install():
        inside = finders()
    print(json.dumps([before == inside == finders(), before != []]))
    """
    )
    assert child(trl, script, hook) == ([True, True], "")


def test_installing_again_adds_no_finder(trl: Path) -> None:
    script = (
        FINDERS
        + """
    unsloth_hook.install()
    once = list(sys.meta_path)
    unsloth_hook.install()
    print(json.dumps([once == sys.meta_path, len(finders()) == len(set(finders()))]))
    """
    )
    assert child(trl, script) == ([True, True], "")


@pytest.mark.parametrize("hook", ["0", "false", "no", "off", "OFF", " 0 "])
@pytest.mark.parametrize("late", [False, True])
def test_the_variable_disables_install(trl: Path, hook: str, late: bool) -> None:
    script = (
        FINDERS
        + f"""
    if {late}:
        import trl.trainer.a_config
    before = list(sys.meta_path)
    with unsloth_hook.install() as handle:
        from trl.trainer.a_config import AConfig
        inside = [sys.meta_path == before, unsloth_hook.is_patched(AConfig), unsloth_hook.status()["active"]]
    handle.uninstall()
    print(json.dumps(inside))
    """
    )
    assert child(trl, script, hook) == ([True, False, False], "")


def test_install_touches_neither_environment_nor_path(trl: Path) -> None:
    script = (
        FINDERS
        + """
    before = dict(os.environ), list(sys.path), list(sys.path_hooks)
    with unsloth_hook.install():
        import trl.trainer.a_config
    print(json.dumps(before == (dict(os.environ), list(sys.path), list(sys.path_hooks))))
    """
    )
    assert child(trl, script) == (True, "")


def test_is_patched(trl: Path) -> None:
    script = (
        FINDERS
        + """
    from transformers.training_args import TrainingArguments
    unsloth_hook.install()
    from trl.trainer.a_config import AConfig
    class Mine(AConfig): pass
    errors = []
    for wrong in (AConfig(), "trl.SFTConfig", None):
        try:
            unsloth_hook.is_patched(wrong)
        except TypeError as error:
            errors.append(str(error))
    classes = (AConfig, Mine, AConfig.__mro__[1], TrainingArguments, int, type)
    print(json.dumps([[unsloth_hook.is_patched(cls) for cls in classes], errors]))
    """
    )
    (answers, errors), stderr = child(trl, script)
    assert answers == [True, True, False, False, False, False]
    assert len(errors) == 3
    assert all("is_patched() takes a class" in error for error in errors)
    assert "trl.SFTConfig" in errors[1]
    assert stderr == ""


def test_status_is_plain_values_and_a_copy(trl: Path) -> None:
    script = (
        FINDERS
        + """
    unsloth_hook.install()
    import trl.trainer.a_config
    status = unsloth_hook.status()
    status["classes"]["trl.trainer.a_config.AConfig"]["state"] = "changed"
    status["classes"]["more"] = 1
    print(json.dumps(unsloth_hook.status()))
    """
    )
    status, stderr = child(trl, script)
    assert stderr == ""
    assert (status["active"], status["route"], status["late"]) == (True, "install", False)
    assert status["classes"] == {"trl.trainer.a_config.AConfig": {"state": "patched", "fields": list(EXTRAS)}}


# A config that cannot be patched: what makes the extra fields impossible is that its `__init__` is written by hand.
BAD = (
    stand_in.HEAD + "@dataclass(init=False)\nclass BadConfig(TrainingArguments):\n    def __init__(self): self.a = 1\n"
)


@pytest.mark.parametrize("late", [False, True])
def test_a_config_that_cannot_be_patched_stays_stock_and_the_others_work(tmp_path: Path, late: bool) -> None:
    stand_in.make(tmp_path, {**FOLDER, "trl/trainer/bad_config.py": BAD})
    load = "import trl.trainer.a_config, trl.trainer.bad_config, trl.trainer.b_config"
    script = f"""
        import json, pickle, unsloth_hook
        {load if late else "unsloth_hook.install()"}
        {"unsloth_hook.install()" if late else load}
        classes = trl.trainer.a_config.AConfig, trl.trainer.bad_config.BadConfig, trl.trainer.b_config.BConfig
        print(json.dumps([
            [unsloth_hook.is_patched(cls) for cls in classes], len(classes[1].__mro__),
            type(pickle.loads(pickle.dumps(classes[1]()))) is classes[1], sorted(vars(classes[1]()) ),
            unsloth_hook.status(),
        ]))
    """
    (patched, depth, pickles, state, status), stderr = child(tmp_path, script)
    assert patched == [True, False, True]
    assert (depth, pickles, state) == (3, True, ["a"])
    name = "trl.trainer.bad_config.BadConfig"
    assert status["late"] == late
    assert status["classes"][name]["state"] == "left"
    assert "__init__" in status["classes"][name]["reason"]
    assert stderr.count("\n") == 1
    assert name in stderr
    assert status["classes"][name]["reason"] in stderr


@pytest.mark.parametrize(("keyword", "variable"), [("strict=True", "0"), ("", "1")])
@pytest.mark.parametrize("late", [False, True])
def test_strict_mode_raises_a_named_exception(tmp_path: Path, late: bool, keyword: str, variable: str) -> None:
    stand_in.make(tmp_path, {**FOLDER, "trl/trainer/bad_config.py": BAD})
    script = (
        FINDERS
        + f"""
    import trl.trainer.a_config
    if {late}:
        import trl.trainer.bad_config
    try:
        unsloth_hook.install({keyword})
        import trl.trainer.bad_config
    except unsloth_hook.PatchError as error:
        print(json.dumps([str(error), type(error.__cause__).__name__, finders() != []]))
    """
    )
    (text, cause, still_on), stderr = child(tmp_path, script, UNSLOTH_HOOK_STRICT=variable)
    assert text.startswith("trl.trainer.bad_config.BadConfig cannot be patched: TypeError: ")
    assert cause == "TypeError"
    assert still_on != late, "a late switch that fails is off again; an import that fails leaves it on"
    assert stderr == ""


def test_strict_ends_with_uninstall(tmp_path: Path) -> None:
    stand_in.make(tmp_path, {"trl/trainer/bad_config.py": BAD})
    script = (
        FINDERS
        + """
    unsloth_hook.install(strict=True)
    unsloth_hook.uninstall()
    unsloth_hook.install()
    from trl.trainer.bad_config import BadConfig
    print(json.dumps(unsloth_hook.is_patched(BadConfig)))
    """
    )
    patched, stderr = child(tmp_path, script)
    assert patched is False
    assert stderr.count("\n") == 1
