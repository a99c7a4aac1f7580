"""Part of a child script, run with the hook and without (`stock.observe`): pickles of a config in every form."""

import copy
import dataclasses
import io
import os
import pickle
import types
from multiprocessing.reduction import ForkingPickler

from child_configs import attempt, full_name, keywords

import __main__

HEIRS = """
class Heir(Base):
    pass

@dataclasses.dataclass
class DataHeir(Base):
    mine: int = 3
"""


def recorder():
    """A stand-in for the module `pickle` that notes each global asked for, in order, while it loads."""
    names = []

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            names.append(f"{module}.{name}")
            return super().find_class(module, name)

    def load(file, **kwargs):
        return Unpickler(file, **kwargs).load()

    return names, types.SimpleNamespace(Unpickler=Unpickler, load=load, __name__="pickle")


def load(data):
    names, module = recorder()
    return names, module.load(io.BytesIO(data))


def load_torch(file):
    import torch

    names, module = recorder()
    return names, torch.load(file, weights_only=False, pickle_module=module)


def sample(cls):
    """A config with a value in an extra field, set in a way that works with the hook and without."""
    config = cls(**keywords(cls))
    config.unsloth_num_chunks = 4
    config.note = "set by hand"
    return config


def forms(config):
    """The config as bytes, by everything that pickles."""
    import cloudpickle
    import dill
    import torch

    def torch_save(**kwargs):
        buffer = io.BytesIO()
        torch.save(config, buffer, **kwargs)
        return buffer.getvalue()

    return {
        **{f"protocol-{number}": pickle.dumps(config, number) for number in range(6)},
        "python-pickler": python_dumps(config),
        "multiprocessing": bytes(ForkingPickler.dumps(config)),
        "dill": dill.dumps(config),
        "cloudpickle": cloudpickle.dumps(config),
        "torch-zip": torch_save(),
        "torch-legacy": torch_save(_use_new_zipfile_serialization=False),
        "torch-dill": torch_save(pickle_module=dill),
    }


def python_dumps(config):
    buffer = io.BytesIO()
    pickle._Pickler(buffer, 4).dump(config)
    return buffer.getvalue()


def state(config):
    return {name: repr(value) for name, value in vars(config).items()}


def safe_load(file, names):
    """`torch.load` with `weights_only=True`: refused as it is, then with these names allowed."""
    import torch

    def with_allow_list():
        allowed = [pickle.Unpickler(io.BytesIO()).find_class(*name.rsplit(".", 1)) for name in names]
        with torch.serialization.safe_globals(allowed):
            loaded = torch.load(file, weights_only=True)
        return [full_name(type(loaded)), state(loaded)]

    refused = attempt(torch.load, file, weights_only=True)
    return {
        "unsafe": attempt(lambda: sorted(torch.serialization.get_unsafe_globals_in_checkpoint(file))),
        "refused": refused.replace(os.path.dirname(file), ""),
        "default": attempt(torch.load, file).replace(os.path.dirname(file), ""),
        "allowed": attempt(with_allow_list),
    }


def heirs(cls, folder, key):
    """A subclass in `__main__`, which cloudpickle and dill write by value."""
    import cloudpickle

    __main__.Base, __main__.dataclasses = cls, dataclasses
    exec(HEIRS, vars(__main__))
    result = {}
    for heir in (__main__.Heir, __main__.DataHeir):
        data = cloudpickle.dumps(sample(heir))
        write(folder, key, f"cloudpickle-{heir.__name__}", data)
        by_reference = attempt(pickle.dumps, sample(heir))
        result[heir.__name__] = {
            "cloudpickle": sorted(set(load(data)[0])),
            "pickle": by_reference if isinstance(by_reference, str) else load(by_reference)[0],
        }
    return result


def write(folder, key, form, data):
    file = os.path.join(folder, f"{key}.{form}")
    with open(file, "wb") as stream:
        stream.write(data)
    return file


def describe(cls, folder, key):
    config = sample(cls)
    result = {"globals": {}, "round_trip": {}}
    for form, data in forms(config).items():
        file = write(folder, key, form, data)
        names, loaded = load_torch(file) if form.startswith("torch") else load(data)
        result["globals"][form] = names
        result["round_trip"][form] = [type(loaded) is cls, loaded is config, state(loaded) == state(config)]
    for form, copied in (("copy", copy.copy(config)), ("deepcopy", copy.deepcopy(config))):
        result["round_trip"][form] = [type(copied) is cls, copied is config, state(copied) == state(config)]
    for form in ("torch-zip", "torch-legacy"):
        result[form] = safe_load(os.path.join(folder, f"{key}.{form}"), result["globals"][form])
    result["heirs"] = heirs(cls, folder, key)
    result["class"] = [load(pickle.dumps(cls))[0], pickle.loads(pickle.dumps(cls)) is cls]
    result["reduced"] = [full_name(part) for part in config.__reduce_ex__(2)[1]]
    # As another release of TRL would have written it: a field of today is missing, one of then is there.
    del vars(config)["learning_rate"], vars(config)["unsloth_num_chunks"]
    config.field_of_old = 3
    write(folder, key, "other-release", pickle.dumps(config))
    return result
