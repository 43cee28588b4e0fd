"""Training: losses and parameters of DDP, FSDP and a sharded optimiser are those that gloo gives.

Run by torchrun: training.py WHAT trains over both backends, one after the other; rank 0 writes what it got to the file
$RESULT. Without arguments: runs all and compares."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch._dynamo  # DDP would import it in each rank
from harness import init, launch, report
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Linear(64, 3))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's, at each step the same."""
    g = torch.Generator().manual_seed(dist.get_rank())
    return torch.randn(8, 20, generator=g), torch.randn(8, 3, generator=g)


def train(net: nn.Module, optimizer: Any, steps: int = 6) -> list[float]:
    """The mean loss of all ranks, at each step."""
    losses = []
    for _ in range(steps):
        x, y = batch()
        optimizer.zero_grad()
        loss: Any = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean) / dist.get_world_size())
    return losses


def parameters(net: nn.Module) -> list[torch.Tensor]:
    return [p.detach().clone() for p in net.parameters()]


def ddp() -> Any:
    """Small buckets: several are in the air at once."""
    net = DistributedDataParallel(model(), bucket_cap_mb=0.01)
    losses = train(net, torch.optim.SGD(net.parameters(), 0.1))
    return losses, parameters(net)


def ddp_hook() -> Any:
    """A hook in Python."""
    net = DistributedDataParallel(model(), bucket_cap_mb=0.01)
    net.register_comm_hook(None, default_hooks.bf16_compress_hook)
    return train(net, torch.optim.SGD(net.parameters(), 0.1)), parameters(net)


def power_sgd() -> Any:
    """A hook whose callbacks make calls and wait for them. With one bucket: of several, the order would be left to
    chance, with any backend."""
    net = DistributedDataParallel(model())
    state = powerSGD_hook.PowerSGDState(None, 4, start_powerSGD_iter=2)
    net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return train(net, torch.optim.SGD(net.parameters(), 0.1)), parameters(net)


def zero() -> Any:
    """A sharded optimiser."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    net = DistributedDataParallel(model())
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=0.01)
    return train(net, optimizer), parameters(net)


def sharded() -> Any:
    """FSDP 2: parameters as shards, gathered for each layer; gradients by reducescatter."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    net: Any = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    losses = train(net, torch.optim.Adam(net.parameters(), 0.01))
    return losses, [p.full_tensor().detach().clone() for p in net.parameters()]


def by_hand() -> Any:
    """What a sharded optimiser does, by allgather and reducescatter of flat buffers."""
    net, rank, size = model(), dist.get_rank(), dist.get_world_size()
    flat = nn.utils.parameters_to_vector(net.parameters()).detach()
    share = -(-flat.numel() // size)
    padded = torch.cat([flat, torch.zeros(size * share - flat.numel())])
    mine = padded[rank * share : (rank + 1) * share].clone()
    losses = []
    for _ in range(6):
        dist.all_gather_into_tensor(padded, mine)
        nn.utils.vector_to_parameters(padded[: flat.numel()].clone(), net.parameters())
        x, y = batch()
        loss = nn.functional.mse_loss(net(x), y)
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        whole = torch.zeros_like(padded)
        whole[: flat.numel()] = torch.cat([gradient.reshape(-1) for gradient in gradients])
        part = torch.empty_like(mine)
        dist.reduce_scatter_tensor(part, whole)
        mine -= 0.1 * part / size
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean) / size)
    return losses, [padded]


def pipeline() -> Any:
    """A layer on each rank: activations go forward, gradients back, by messages."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    layer = nn.Linear(16, 16)
    losses = []
    for step in range(4):
        x = torch.randn(4, 16, generator=torch.Generator().manual_seed(step))
        if rank:
            dist.recv(x, rank - 1)
        x.requires_grad_()
        y: Any = torch.tanh(layer(x))
        gradient = 2 * y.detach()
        if rank < size - 1:
            dist.send(y.detach(), rank + 1)
            dist.recv(gradient, rank + 1)
        y.backward(gradient)
        assert x.grad is not None
        if rank:
            dist.send(x.grad, rank - 1)
        with torch.no_grad():
            for p in layer.parameters():
                assert p.grad is not None
                p.sub_(0.1 * p.grad)
                p.grad = None
        loss = (y.detach() ** 2).sum()
        dist.broadcast(loss, size - 1)
        losses.append(float(loss))
    return losses, parameters(layer)


WHAT = {f.__name__: f for f in (ddp, ddp_hook, power_sgd, zero, sharded, by_hand, pipeline)}


def both(names: str, init: Callable[[str], None]) -> None:
    torch.set_num_threads(1)
    results = {}
    for backend in ("blink", "gloo"):
        init(backend)
        results[backend] = {name: WHAT[name]() for name in names.split(",")}
        rank = dist.get_rank()
        dist.destroy_process_group()
    if rank == 0:
        torch.save(results, os.environ["RESULT"])


def by_torchrun(names: str, ranks: int) -> str | None:
    """What went wrong."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    done = subprocess.run([*torchrun, __file__, names], env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=150, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if "Error" in line or "terminate" in line]
    return f"exit {done.returncode}: {' | '.join(lines[:20])}" if done.returncode else None


def by_fork(names: str, ranks: int) -> str | None:
    def rank_main(rank: int, size: int, folder: str) -> list[str]:
        def init_one(backend: str) -> None:
            os.makedirs(f"{folder}/{backend}", exist_ok=True)
            init(rank, size, f"{folder}/{backend}", backend)

        both(names, init_one)
        return []

    wrong = [str(result) for result in launch(ranks, rank_main, 150) if result != []]
    return wrong[0] if wrong else None


def compare(names: str, ranks: int, run: Callable[[str, int], str | None]) -> None:
    with tempfile.NamedTemporaryFile() as file:
        os.environ["RESULT"] = file.name
        why = run(names, ranks)
        if why:
            report(f"{names}, {ranks} ranks", why)
            return
        results = torch.load(file.name)
    for name in names.split(","):
        (losses, parameters), (their_losses, their_parameters) = results["blink"][name], results["gloo"][name]
        off = max(abs(a - b) / max(abs(b), 1e-9) for a, b in zip(losses, their_losses))
        away = max(float((a - b).abs().max()) for a, b in zip(parameters, their_parameters))
        limit = 0.0 if ranks == 2 else 1e-2 if name == "ddp_hook" else 1e-5     # of two numbers there is one sum
        why = f"losses off by {off:.2g}, parameters by {away:.2g}" if max(off, away) > limit else None
        if not losses[-1] < losses[0]:
            why = f"the loss went from {losses[0]} to {losses[-1]}"
        report(f"{name.replace('_', ' ')}, {ranks} ranks: the loss of gloo, {losses[-1]:.6f}", why)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        both(sys.argv[1], lambda backend: dist.init_process_group(backend, timeout=timedelta(seconds=60)))
    else:
        compare(",".join(WHAT), 2, by_torchrun)
        compare(",".join(WHAT), 3, by_fork)
        compare("ddp,sharded", 8, by_torchrun)
