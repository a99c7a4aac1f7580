"""Writes a tree (`pickle_tree`) as a pickle, without importing anything that the tree names."""

from __future__ import annotations

import io
import pickle
from typing import Any

from .pickle_tree import Built, Global


class _Writer(pickle._Pickler):
    """The standard library's pickler, taught the two nodes that stand for a name and for an instance."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_name(self, node: Global) -> None:
        self.write(pickle.GLOBAL + f"{node.module}\n{node.name}\n".encode())  # type: ignore[attr-defined]
        self.memoize(node)  # type: ignore[attr-defined]

    def save_built(self, node: Built) -> None:
        self.save(node.func)  # type: ignore[attr-defined]
        self.save(node.args)  # type: ignore[attr-defined]
        self.write(pickle.REDUCE if node.called else pickle.NEWOBJ)  # type: ignore[attr-defined]
        self.memoize(node)  # type: ignore[attr-defined]
        for opening, values, closing in (
            (pickle.MARK, node.members, pickle.APPENDS),
            (pickle.MARK, [part for item in node.items for part in item], pickle.SETITEMS),
            (b"", [] if node.state is None else [node.state], pickle.BUILD),
        ):
            if values:
                self.write(opening)  # type: ignore[attr-defined]
                for value in values:
                    self.save(value)  # type: ignore[attr-defined]
                self.write(closing)  # type: ignore[attr-defined]

    dispatch[Global] = save_name  # type: ignore[assignment]
    dispatch[Built] = save_built  # type: ignore[assignment]


def write(root: Any, protocol: int = 2) -> bytes:
    """Write a tree as a pickle.

    Args:
        root: plain values, `Global` and `Built` nodes (without ``kwargs``).
        protocol: pickle protocol, 2 or more (2 is what ``torch.save`` writes).

    Returns:
        The pickle, naming exactly the globals of the tree (protocol 2 also names ``set`` and ``_codecs.encode`` for
        sets and bytes).
    """
    out = io.BytesIO()
    _Writer(out, protocol).dump(root)
    return out.getvalue()
