"""A child script, run with the hook and without: all that a config writes while nobody has set an extra."""

import copy
import hashlib
import io
import json
import pickle
import pprint
import sys
import types
import warnings

import child_configs
from child_configs import attempt, keywords
from child_pickles import python_dumps


def digest(data):
    return f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()[:16]}"


def written(config):
    """The bytes of everything that pickles, as digests."""
    import cloudpickle
    import dill
    import torch

    def torch_save(**kwargs):
        buffer = io.BytesIO()
        torch.save(config, buffer, **kwargs)
        return buffer.getvalue()

    made = {f"protocol-{number}": pickle.dumps(config, number) for number in range(6)}
    made |= {
        "python-pickler": python_dumps(config),
        "dill": dill.dumps(config),
        "cloudpickle": cloudpickle.dumps(config),
        "torch-zip": torch_save(),
        "torch-legacy": torch_save(_use_new_zipfile_serialization=False),
        "torch-protocol-5": torch_save(pickle_protocol=5),
    }
    return {form: digest(data) for form, data in made.items()}


def shown(config):
    """The texts."""
    import yaml

    return {
        "vars": [[name, repr(value)] for name, value in vars(config).items()],
        "to_dict": [[name, repr(value)] for name, value in config.to_dict().items()],
        "to_json_string": config.to_json_string(),
        "to_sanitized_dict": list(config.to_sanitized_dict().items()),
        "yaml": attempt(yaml.safe_dump, config.to_dict(), sort_keys=False),
        "repr": repr(config),
        "str": str(config),
        "format": f"{config}",
        "pprint": pprint.pformat(config),
        "rich": rich_text(config),
        "rebuilt": attempt(lambda: repr(type(config)(**config.to_dict()))),
    }


def rich_text(config):
    from rich.pretty import pretty_repr

    return pretty_repr(config)


class Recorder:
    """A stand-in for a tracker's own object, which would write times or need a network: it notes what it is told."""

    def __init__(self):
        self.calls = []

    def __setitem__(self, name, value):
        self.calls.append([name, repr(value)])

    def __getattr__(self, name):
        return lambda *args, **kwargs: self.calls.append([name, *map(repr, args), sorted(kwargs)])


def tracked(config):
    """What the callbacks of transformers tell TensorBoard and Weights & Biases, and the model card."""
    from transformers import TrainerControl, TrainerState
    from transformers.integrations import TensorBoardCallback, WandbCallback
    from transformers.modelcard import extract_hyperparameters_from_trainer

    state, control = TrainerState(is_world_process_zero=True), TrainerControl()
    board, wandb = Recorder(), Recorder()
    callback = TensorBoardCallback.__new__(TensorBoardCallback)
    callback.tb_writer, callback._SummaryWriter, callback.logging_dir = board, None, "logs"
    callback.on_train_begin(config, state, control)
    for part in ("wandb", "wandb.sdk", "wandb.sdk.lib", "wandb.sdk.lib.config_util"):
        sys.modules.setdefault(part, types.ModuleType(part)).ConfigError = ValueError
    run = types.SimpleNamespace(run=None, config=wandb, init=lambda **kwargs: setattr(run, "run", wandb))
    run.define_metric = run.watch = run.termwarn = lambda *args, **kwargs: None
    callback = WandbCallback.__new__(WandbCallback)
    callback._wandb, callback._initialized, callback._log_model = run, False, types.SimpleNamespace(is_enabled=False)
    logged = attempt(callback.setup, config, state, None)
    trainer = types.SimpleNamespace(args=config)
    return {
        "tensorboard": board.calls,
        "wandb": [wandb.calls, repr(logged)],
        "model card": attempt(extract_hyperparameters_from_trainer, trainer),
        "trainer_state.json": json.dumps(vars(TrainerState()), default=str),
    }


def heirs(cls):
    """The same of subclasses, and of copies."""
    import dataclasses

    class Heir(cls):
        pass

    @dataclasses.dataclass
    class DataHeir(cls):
        mine: int = 3

    config = cls(**keywords(cls))
    copies = {
        "copy": copy.copy(config),
        "deepcopy": copy.deepcopy(config),
        "pickle": pickle.loads(pickle.dumps(config)),
    }
    made = {"Heir": Heir(**keywords(cls)), "DataHeir": DataHeir(**keywords(cls)), **copies}
    return {name: shown(config) for name, config in made.items()}


def main():
    warnings.simplefilter("ignore")
    told = {}
    for name, cls in child_configs.public_configs().items():
        config = cls(**keywords(cls))
        told[name] = {
            "written": written(config),
            "shown": shown(config),
            "tracked": tracked(config),
            "heirs": heirs(cls),
        }
    # What was set, and set back, leaves none either.
    for name, cls in child_configs.public_configs().items():
        config = cls(**keywords(cls))
        for extra in sys.argv[1:]:
            if extra in cls.__dataclass_fields__:
                setattr(config, extra, 7)
                setattr(config, extra, cls.__dataclass_fields__[extra].default)
        told[name]["set back"] = written(config)
    print(json.dumps(told, default=str))


if __name__ == "__main__":
    main()
