"""Groups of a DeviceMesh have the schedules that blinkc job made for them.

usage: torchrun --nproc-per-node 8 mesh.py, of a job with grid { "dp": 4, "tp": 2 } in BLINK_SCHEDULES
"""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import blink.torch  # noqa: F401


def main() -> None:
    rank = int(os.environ["RANK"])
    # Each rank is a server of its own: on one, short messages have built-in schedules.
    os.environ.update(BLINK_HOST_ID=f"host{rank}")
    dist.init_process_group("blink")
    mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp"))
    data = {name: torch.full((1 << 16,), float(rank)) for name in ("dp", "tp")}
    calls = [dist.all_reduce(data[name], group=mesh.get_group(name), async_op=True) for name in data]
    for call in calls:
        call.wait()
    want = {"dp": sum(range(rank % 2, 8, 2)), "tp": 2 * (rank // 2 * 2) + 1}
    for name, sums in data.items():
        if not bool((sums == want[name]).all()):
            raise SystemExit(f"rank {rank}: {name}: {sums[0]}, want {want[name]}")
    dist.destroy_process_group()


main()
