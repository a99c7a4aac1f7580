"""What logs, trackers, trainers and tracebacks show of a config."""

import json
import logging
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from idiom import PLAIN, attempt, make
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainerControl, TrainerState
from transformers.trainer_callback import CallbackHandler
from trl import DPOConfig, GRPOConfig, SFTConfig


class _Tracker:
    """A run of a tracker: it keeps what it is given."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    def log_parameters(self, values: dict[str, Any], prefix: str = "") -> None:
        self.given.update({f"{prefix}{name}": str(value) for name, value in values.items()})


def callback_of_a_tracker() -> Any:
    """Comet's, aim's and ml-optim's callbacks: `args.to_sanitized_dict()` at the begin of the training."""
    tracker = _Tracker()

    class Logs(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **options: Any) -> None:
            tracker.log_parameters(args.to_sanitized_dict(), prefix="args/")

    handler = CallbackHandler([Logs()], None, None, None, None)
    handler.on_train_begin(make(SFTConfig), TrainerState(), TrainerControl())
    return tracker.given


def combined_with_the_model_config() -> Any:
    """wandb's callback in transformers: `{**model_config, **args.to_dict()}`, arguments over the model's."""
    model = {"max_length": 20, "max_seq_length": 4096, "unsloth_num_chunks": "model's", "hidden_size": 8}
    combined = {**model, **make(SFTConfig, max_length=3).to_dict()}
    return combined["max_seq_length"], combined["unsloth_num_chunks"], combined


def parameters_in_portions() -> Any:
    """MLflow's callback: at most a hundred parameters at a time, long values left out."""
    items = list(make(SFTConfig).to_dict().items())
    portions = [dict(items[start : start + 100]) for start in range(0, len(items), 100)]
    return [[len(portion), next(iter(portion)), list(portion)[-1]] for portion in portions]


def hyperparameters_of_tensorboard() -> Any:
    """TensorBoard: `add_text("args", args.to_json_string())`, `add_hparams(args.to_sanitized_dict(), {})`."""
    config = make(DPOConfig)
    refused = [
        name
        for name, value in config.to_sanitized_dict().items()
        if not isinstance(value, (bool, int, float, str, torch.Tensor))
    ]
    return refused, config.to_json_string()


def sweep_of_wandb() -> Any:
    """`wandb.config.update(training_args)`, which takes `vars()` of it; then values of a sweep."""
    config = make(SFTConfig)
    logged = {name: str(value) for name, value in vars(config).items() if not name.startswith("_")}
    for name, value in {"learning_rate": 0.5, "max_length": 3}.items():
        assert name in logged
        setattr(config, name, value)
    return logged, config.learning_rate


def log_lines() -> Any:
    """`logger.info("Training/evaluation parameters %s", training_args)` in every example of transformers and TRL."""
    lines = []

    class Keeps(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.getLogger("idiom")
    logger.addHandler(Keeps())
    logger.setLevel(logging.INFO)
    logger.info("Training/evaluation parameters %s", make(GRPOConfig))
    return lines


def trained_and_saved() -> Any:
    """transformers' Trainer with a TRL config: state, log, and what lies in `training_args.bin`."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: torch.Tensor, labels: Any = None) -> dict[str, torch.Tensor]:
            return {"loss": ((x * self.weight).sum(-1) ** 2).mean()}

    rows = [{"x": torch.tensor([float(n), 1.0]), "labels": 0} for n in range(4)]
    options = {
        "max_steps": 2,
        "logging_steps": 1,
        "save_strategy": "no",
        "disable_tqdm": True,
        "per_device_train_batch_size": 2,
    }
    config = make(SFTConfig, gradient_checkpointing=False, **options)
    trainer = Trainer(model=Model(), args=config, train_dataset=rows)
    trainer.remove_callback(PrinterCallback)  # it prints times
    result = trainer.train()
    trainer.save_state()
    state = json.loads(Path("out", "trainer_state.json").read_text(encoding="utf-8"))
    torch.save(trainer.args, "training_args.bin")
    timeless = [
        [name, round(value, 6)]
        for entry in state["log_history"]
        for name, value in entry.items()
        if name in ("loss", "step", "learning_rate")
    ]
    sizes = torch.serialization.get_unsafe_globals_in_checkpoint("training_args.bin")
    return result.global_step, timeless, sorted(sizes), trainer.args is config, sorted(state)


def report_of_wrong_keyword() -> Any:
    """Everybody: a misspelt keyword, and the frames of the traceback."""
    found = []
    for cls in (SFTConfig, DPOConfig, GRPOConfig):
        try:
            cls(**PLAIN, lerning_rate=1)
        except TypeError as error:
            frames = [
                [Path(each.filename).name, each.name, each.line] for each in traceback.extract_tb(error.__traceback__)
            ]
            found.append([str(error), frames])
    return found


def report_of_wrong_value() -> Any:
    """A value that TRL or transformers refuse: message, and the names of the frames."""
    found = []
    for cls, options in (
        (SFTConfig, {"lr_scheduler_type": "nothing"}),
        (DPOConfig, {"save_strategy": "sometimes"}),
        (GRPOConfig, {"num_generations": 3}),
    ):
        try:
            make(cls, **options)
        except Exception as error:
            frames = [[Path(each.filename).name, each.name] for each in traceback.extract_tb(error.__traceback__)]
            found.append([type(error).__name__, str(error), frames])
    return found


def place_of_warnings() -> Any:
    """TRL's deprecations warn with `stacklevel=3`: the line of the caller, for a class and a subclass."""

    @dataclass
    class Sub(SFTConfig):
        def __post_init__(self) -> None:
            super().__post_init__()

    for cls, options in (
        (SFTConfig, {"pad_token": "<pad>"}),
        (SFTConfig, {"truncation_mode": "keep_end"}),
        (DPOConfig, {"pad_token": "<pad>"}),
        (DPOConfig, {"loss_type": "sigmoid", "truncation_mode": "keep_end"}),
        (GRPOConfig, {"scale_rewards": True}),
        (Sub, {"pad_token": "<pad>"}),
    ):
        attempt(cls, **PLAIN, **options)
    return attempt(SFTConfig, **PLAIN, gradient_checkpointing=True).__class__.__name__


def warnings_as_errors() -> Any:
    """`-W error` in CI: a config without anything deprecated warns of nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [attempt(lambda cls=cls: make(cls).output_dir) for cls in (SFTConfig, DPOConfig, GRPOConfig)]


def counted_calls() -> Any:
    """Profilers: how often TRL's and transformers' `__post_init__` run for one config."""
    import sys

    seen: list[str] = []

    def watch(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name in ("__post_init__", "__new__"):
            seen.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")

    sys.setprofile(watch)
    try:
        make(SFTConfig)
    finally:
        sys.setprofile(None)
    return [each for each in seen if each.startswith(("sft_config", "base_config", "training_args"))]


def model_card() -> Any:
    """Cards of pushed models: the hyperparameters that transformers' card lists."""
    from transformers.modelcard import extract_hyperparameters_from_trainer

    class Bare:
        args = make(SFTConfig, seed=5)
        hp_search_backend = None

    return attempt(extract_hyperparameters_from_trainer, Bare())
