"""`import unsloth` on a machine without a GPU, for child scripts.

Unsloth since August 2026 has a switch for that, `UNSLOTH_ALLOW_CPU=1`, and no more is done for it here; under that
switch it leaves TRL's trainers alone until `patch_trl_rl_trainers()` is called. Earlier releases probe the GPU while
they are imported. For them this is a stand-in for a card, and the only one in these tests: it answers those probes, on
the `torch` module, as one card of compute capability 8.0 would while Unsloth is imported, and "no device" afterwards.
Nothing else of torch is touched: everything is computed on the CPU, by torch's own code.
"""

import contextlib
import importlib.metadata
import types
from collections.abc import Iterator

RELEASE = importlib.metadata.version("unsloth")
FIXED = tuple(map(int, RELEASE.split(".")[:2])) >= (2026, 8)  # pickles under TRL's names by itself

MEMORY = 8 << 30  # bytes
CARD = types.SimpleNamespace(
    name="stand-in", major=8, minor=0, total_memory=MEMORY, multi_processor_count=8, gcnArchName=""
)


@contextlib.contextmanager
def one_card() -> Iterator[None]:
    """While the block runs, an Unsloth that probes the GPU finds one; after it, there is no device to compute on."""
    if FIXED:
        yield
        return
    import torch

    cuda = torch.cuda
    cuda.get_device_capability = lambda *device: (CARD.major, CARD.minor)
    cuda.is_bf16_supported = lambda *args, **kwargs: True
    cuda.get_device_properties = lambda *device: CARD
    cuda.get_device_name = lambda *device: CARD.name
    cuda.current_device = lambda: 0
    cuda.memory.mem_get_info = lambda *device: (MEMORY, MEMORY)
    torch._C._cuda_getCurrentRawStream = lambda device: 0
    cuda.is_available, cuda.device_count = (lambda: True), (lambda: 1)
    try:
        yield
    finally:
        cuda.is_available, cuda.device_count = (lambda: False), (lambda: 0)


def import_unsloth() -> None:
    """`import unsloth`, nothing more."""
    with one_card():
        import unsloth  # noqa: F401


def patch_trainers() -> None:
    """What `import unsloth` does by itself on a machine with a GPU; where it was done then, it is done again."""
    from unsloth.models.rl import patch_trl_rl_trainers

    patch_trl_rl_trainers()
