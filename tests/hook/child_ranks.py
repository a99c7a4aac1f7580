"""One of two ranks under torchrun or accelerate launch: configs travel both ways over gloo."""

import json
import sys

import torch
import torch.distributed as dist


def main():
    from trl import SFTConfig

    import unsloth_hook

    launcher = sys.argv[1]
    if launcher == "accelerate":
        from accelerate import PartialState

        PartialState(cpu=True)  # starts the process group
    else:
        dist.init_process_group("gloo")
    rank = dist.get_rank()
    config = SFTConfig(
        output_dir="out", report_to="none", use_cpu=True, unsloth_num_chunks=10 + rank, max_seq_length=64
    )
    everyone = [None, None]
    dist.all_gather_object(everyone, config)
    torch.save(everyone[1 - rank], f"{launcher}-{rank}.bin")
    seen = {
        "backend": dist.get_backend(),
        "size": dist.get_world_size(),
        "patched": unsloth_hook.is_patched(SFTConfig),
        "route": unsloth_hook.status()["route"],
        "same class": all(type(each) is SFTConfig for each in everyone),
        "values": [each.unsloth_num_chunks for each in everyone],
        "max_length": [each.max_length for each in everyone],
    }
    with open(f"{launcher}-{rank}.json", "w") as stream:
        json.dump(seen, stream)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
