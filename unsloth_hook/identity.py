"""Who owns a name. A displaced class has lost its name to an owner; its instances still live and must still pickle."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

TARGET = "_unsloth_config_pickle_target"  # Unsloth 2026.8 and later use the same attribute for the same purpose

owners: dict[tuple[str, str], tuple[type, type]] = {}  # (module, qualified name) -> TRL's class, and its owner by us
patched: set[type] = set()  # every class that carries the extra fields by the hook's doing
known: set[type] = set()  # the same, and the classes that were left
classes: "dict[str, dict[str, Any]]" = {}  # full class name -> {"state": patched, inherited, unsloth or left, ...}


def is_patched(cls: type) -> bool:
    """Does this class carry the hook's extra fields?

    Args:
        cls: any class.

    Returns:
        True for a patched class and for every subclass of one (Unsloth's included). For why not, see `status()`.

    Raises:
        TypeError: `cls` is no class.
    """
    if not isinstance(cls, type):
        raise TypeError(f"is_patched() takes a class, not {type(cls).__name__!r} object {cls!r}")
    return not patched.isdisjoint(cls.__mro__)


def register_displaced(displaced: type, owner: type) -> None:
    """Let instances of `displaced` pickle under the name of `owner`, which took that name over.

    Pickling (or copying) such an instance first makes it an instance of its owner: `pickle` refuses a stand-in whose
    `__class__` is not the class being written, and any other reducer would leave globals of its own in the file.
    Calling it again with the same classes changes nothing; chains are followed to the end.

    Args:
        displaced: the class that has lost its name.
        owner: a subclass of it, or a sibling: every base of `displaced` is also a base of `owner` (TRL's deprecation
            shims; for a base that was displaced itself, its owner counts too).

    Raises:
        TypeError: `owner` is unrelated, so that instances would lose state, or an argument is no class.
        ValueError: `owner` has itself been displaced by `displaced`.
    """
    for cls in (displaced, owner):
        if not isinstance(cls, type):
            raise TypeError(f"register_displaced() takes two classes, not {type(cls).__name__!r} object {cls!r}")
    if displaced is owner:
        return
    if displaced in _lineage(owner):
        raise ValueError(f"{displaced!r} cannot be displaced by {owner!r}, which it has displaced itself")
    if not _can_hold(owner, displaced):
        raise TypeError(
            f"{owner!r} cannot hold the state of {displaced!r}: it is neither a subclass of it nor derived from all of "
            "its bases. Give a subclass, or pickle the instances under a name of their own."
        )
    import copyreg

    setattr(displaced, TARGET, owner)
    copyreg.dispatch_table[displaced] = _reduce_as_owner


def owner_of(cls: type) -> type:
    """The class that instances of `cls` pickle as: the end of the chain of owners, `cls` itself if not displaced."""
    *_, last = _lineage(cls)
    return last


def _lineage(cls: type | None) -> "Iterator[type]":
    while cls is not None:
        yield cls
        cls = vars(cls).get(TARGET)


def _can_hold(owner: type, displaced: type) -> bool:
    return issubclass(owner, displaced) or all(
        base is not object and any(heir in owner.__bases__ for heir in _lineage(base)) for base in displaced.__bases__
    )


def _reduce_as_owner(instance: "Any") -> "Any":
    instance.__class__ = owner_of(type(instance))
    return instance.__reduce_ex__(2)
