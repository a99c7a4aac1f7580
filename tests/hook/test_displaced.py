"""Contract 4: instances of a class that has lost its name pickle under its owner's name."""

import copy
import copyreg
import io
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import stock

from unsloth_hook import identity, register_displaced

TARGET = "_unsloth_config_pickle_target"


class Base:
    """Stands for TRL's private base."""


class Other:
    pass


class Name(Base):
    """The class that has the name; the tests displace it and others like it."""

    value = "owner"


OWNER = Name


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """Take out of `copyreg` what a test has put there, and give the name back."""
    before = dict(copyreg.dispatch_table)
    yield
    copyreg.dispatch_table.clear()
    copyreg.dispatch_table.update(before)
    set_owner(OWNER)


def make(*bases: type, **members: Any) -> type:
    """A class that pickles as `Name` of this module, if it owns that name."""
    return type("Name", bases, {"__module__": __name__, "__qualname__": "Name", **members})


def set_owner(owner: type) -> None:
    vars(sys.modules[__name__])["Name"] = owner


def instance_of(cls: type) -> Any:
    instance = object.__new__(cls)
    instance.state = [1, 2]
    return instance


def globals_of(data: bytes) -> list[str]:
    names = []

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            names.append(f"{module}.{name}")
            return super().find_class(module, name)

    Unpickler(io.BytesIO(data)).load()
    return names


def test_without_registration_it_does_not_pickle() -> None:
    displaced = make(Base)
    set_owner(make(displaced))
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(instance_of(displaced))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("relation", ["subclass", "sub-subclass", "sibling", "sibling with more bases"])
def test_an_owner_that_can_hold_the_state(relation: str, protocol: int) -> None:
    displaced = make(Base)
    owner = {
        "subclass": lambda: make(displaced),
        "sub-subclass": lambda: make(make(displaced)),
        "sibling": lambda: make(Base),
        "sibling with more bases": lambda: make(Other, Base),
    }[relation]()
    set_owner(owner)
    register_displaced(displaced, owner)
    instance = instance_of(displaced)
    data = pickle.dumps(instance, protocol)
    assert globals_of(data) == [f"{__name__}.Name"], "no copyreg, no builtins, no name of the hook"
    loaded = pickle.loads(data)
    assert type(loaded) is owner
    assert vars(loaded) == vars(instance) == {"state": [1, 2]}


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_copies_are_the_owners(way: Any) -> None:
    displaced = make(Base)
    owner = make(displaced)
    register_displaced(displaced, owner)
    instance = instance_of(displaced)
    copied = way(instance)
    assert type(copied) is owner
    assert copied is not instance
    assert copied.state == [1, 2]
    assert (copied.state is instance.state) == (way is copy.copy)


def test_the_target_is_in_the_displaced_classs_own_dict() -> None:
    displaced = make(Base)
    owner = make(displaced)
    register_displaced(displaced, owner)
    assert vars(displaced)[TARGET] is owner
    assert TARGET not in vars(owner)
    assert TARGET not in vars(Base)
    assert identity.TARGET == TARGET


def test_a_subclass_of_a_displaced_class_is_not_displaced() -> None:
    """It finds the target by inheritance, and must not take it for its own."""
    displaced = make(Base)
    owner = make(displaced)
    register_displaced(displaced, owner)

    class Mine(displaced):  # type: ignore[misc, valid-type]
        pass

    Mine.__module__, Mine.__qualname__ = __name__, "Mine"
    vars(sys.modules[__name__])["Mine"] = Mine
    try:
        assert type(pickle.loads(pickle.dumps(instance_of(Mine)))) is Mine
        assert identity.owner_of(Mine) is Mine
        assert identity.owner_of(owner) is owner
    finally:
        del vars(sys.modules[__name__])["Mine"]


UNRELATED = {
    "another base": lambda displaced: make(Other),
    "no base at all": lambda displaced: make(object),
    "its own base": lambda displaced: Base,
    "one of two bases": lambda displaced: make(Base),
    "a base of the same name": lambda displaced: make(type("Base", (), {})),
}


@pytest.mark.parametrize("owner", UNRELATED)
def test_an_unrelated_owner_is_refused_and_leaves_nothing_behind(owner: str) -> None:
    displaced = make(Base, Other) if owner == "one of two bases" else make(Base)
    unrelated = UNRELATED[owner](displaced)
    before = dict(copyreg.dispatch_table)
    with pytest.raises(TypeError) as caught:
        register_displaced(displaced, unrelated)
    assert repr(displaced) in str(caught.value), "the error does not name the class"
    assert repr(unrelated) in str(caught.value)
    assert copyreg.dispatch_table == before
    for cls in (displaced, unrelated):
        assert not hasattr(cls, TARGET)


def test_a_refusal_leaves_an_earlier_registration_as_it_was() -> None:
    displaced = make(Base)
    owner = make(displaced)
    register_displaced(displaced, owner)
    before = dict(copyreg.dispatch_table)
    with pytest.raises(TypeError):
        register_displaced(displaced, make(Other))
    assert vars(displaced)[TARGET] is owner
    assert copyreg.dispatch_table == before


@pytest.mark.parametrize("arguments", [(1, Base), (Base, "Base"), (None, None)])
def test_what_is_no_class_is_refused(arguments: tuple[Any, Any]) -> None:
    before = dict(copyreg.dispatch_table)
    with pytest.raises(TypeError, match="register_displaced.*class"):
        register_displaced(*arguments)
    assert copyreg.dispatch_table == before


def test_twice_the_same_is_once() -> None:
    displaced = make(Base)
    owner = make(displaced)
    set_owner(owner)
    register_displaced(displaced, owner)
    once = (dict(copyreg.dispatch_table), dict(vars(displaced)), dict(vars(owner)))
    for _ in range(100):
        register_displaced(displaced, owner)
    assert (dict(copyreg.dispatch_table), dict(vars(displaced)), dict(vars(owner))) == once
    assert globals_of(pickle.dumps(instance_of(displaced))) == [f"{__name__}.Name"]


def test_a_class_does_not_displace_itself() -> None:
    displaced = make(Base)
    register_displaced(displaced, displaced)
    assert displaced not in copyreg.dispatch_table
    assert TARGET not in vars(displaced)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_chain_resolves_to_its_end(order: tuple[int, int]) -> None:
    """Pristine, patched, Unsloth's: in whichever order the two displacements were made known."""
    pristine = make(Base)
    patched = make(pristine)
    unsloths = make(patched)
    steps = [(pristine, patched), (patched, unsloths)]
    for step in order:
        register_displaced(*steps[step])
    set_owner(unsloths)
    for cls in (pristine, patched):
        assert identity.owner_of(cls) is unsloths
        assert type(pickle.loads(pickle.dumps(instance_of(cls)))) is unsloths


def test_a_sibling_by_way_of_a_base_that_was_displaced_itself() -> None:
    """After a reload: the old patched class and the new one have no class in common, but their bases are a chain."""
    old_pristine, new_pristine = make(Base), make(Base)
    old, new = make(old_pristine), make(new_pristine)
    with pytest.raises(TypeError):
        register_displaced(old, new)
    register_displaced(old_pristine, new_pristine)
    register_displaced(old, new)
    set_owner(new)
    assert type(pickle.loads(pickle.dumps(instance_of(old)))) is new


def test_a_circle_is_refused() -> None:
    first, second, third = make(Base), make(Base), make(Base)
    register_displaced(first, second)
    register_displaced(second, third)
    before = dict(copyreg.dispatch_table)
    for owner in (first, second):
        with pytest.raises(ValueError, match="has displaced itself"):
            register_displaced(third, owner)
    assert copyreg.dispatch_table == before
    assert identity.owner_of(first) is third


def test_a_new_owner_takes_the_place_of_the_old() -> None:
    displaced = make(Base)
    register_displaced(displaced, make(displaced))
    owner = make(displaced)
    set_owner(owner)
    register_displaced(displaced, owner)
    assert type(pickle.loads(pickle.dumps(instance_of(displaced)))) is owner


RELOADS = """
import copy, copyreg, importlib, json, pickle, sys, warnings
warnings.simplefilter("ignore")
import trl.trainer.sft_config as module
from child_configs import full_name
import child_pickles, unsloth_hook

first = module.SFTConfig
instance, entries = child_pickles.sample(first), len(copyreg.dispatch_table)
depths, states, loaders, instances = [], [], set(), [instance]
for count in range(40):
    importlib.reload(module)
    cls = module.SFTConfig
    depths.append(len(cls.__mro__))
    loaders.add(full_name(type(module.__spec__.loader)) + full_name(type(module.__loader__)))
    if count % 10 == 0:
        instances.append(child_pickles.sample(cls))
        states += [type(pickle.loads(pickle.dumps(old))) is cls for old in instances]
        instances = [object.__new__(old_cls) for old_cls in [first]] + instances[1:]
        vars(instances[0]).update(vars(instance))
result = {
    "depths": sorted(set(depths)), "states": states, "loaders": sorted(loaders),
    "patched": unsloth_hook.is_patched(module.SFTConfig), "new class": module.SFTConfig is not first,
    "globals": {form: child_pickles.load(data)[0] for form, data in child_pickles.forms(instances[0]).items()
                if not form.startswith(("torch", "protocol-0", "protocol-1"))},
    "fields": list(module.SFTConfig.__dataclass_fields__).count("unsloth_num_chunks"),
    "classes": list(unsloth_hook.status()["classes"]),
    "late": unsloth_hook.status()["late"],
}
for name in [name for name in sys.modules if name.split(".")[0] == "trl"]:
    del sys.modules[name]
anew = importlib.import_module("trl.trainer.sft_config").SFTConfig
result["anew"] = [
    unsloth_hook.is_patched(anew), len(anew.__mro__) in set(depths), anew is not cls,
    type(pickle.loads(pickle.dumps(child_pickles.sample(anew)))) is anew,
]
print(json.dumps(result))
"""


# Of a class that was never reloaded, without the hook.
STOCK = """
import json, pickle
import child_pickles
from trl.trainer.sft_config import SFTConfig
forms = child_pickles.forms(child_pickles.sample(SFTConfig))
names = {form: child_pickles.load(data)[0] for form, data in forms.items() if not form.startswith("torch")}
print(json.dumps({"globals": names, "depth": len(SFTConfig.__mro__)}))
"""


@pytest.fixture(scope="module")
def reloaded() -> Any:
    return stock.run(RELOADS, "1")


@pytest.fixture(scope="module")
def plain() -> Any:
    return stock.run(STOCK, "0")


def test_after_forty_reloads_old_instances_still_pickle(reloaded: Any, plain: Any) -> None:
    assert reloaded["new class"]
    assert len(reloaded["states"]) == 2 + 3 + 4 + 5
    assert set(reloaded["states"]) == {True}
    assert len(reloaded["globals"]) >= 7
    assert reloaded["globals"] == {form: plain["globals"][form] for form in reloaded["globals"]}


def test_forty_reloads_wrap_once(reloaded: Any, plain: Any) -> None:
    """One patched class over one pristine one, each time, and the real loader back in its place."""
    assert reloaded["depths"] == [1 + plain["depth"]]
    assert reloaded["loaders"] == ["_frozen_importlib_external.SourceFileLoader" * 2]
    assert reloaded["patched"]
    assert reloaded["fields"] == 1
    assert reloaded["classes"] == ["trl.trainer.sft_config.SFTConfig"]
    assert not reloaded["late"]


def test_trl_imported_anew_is_patched_anew(reloaded: Any) -> None:
    assert reloaded["anew"] == [True] * 4


def test_object_is_no_base_that_makes_siblings() -> None:
    class One:
        pass

    class Other:
        pass

    with pytest.raises(TypeError, match="cannot hold the state"):
        register_displaced(One, Other)
    assert One not in copyreg.dispatch_table
