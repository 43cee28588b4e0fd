"""Tensor parallelism on CPUs: tokens per second of a small transformer, by blink and by gloo.

    torchrun --nproc-per-node 2 examples/tensor_parallel.py

Each rank has a share of the heads of attention and of the hidden layer of the MLP, and all add up what they have after
both, so that a token takes two all_reduces in each layer, of a few KiB: what counts is how long a small call takes.
Both backends have to give the same tokens, and those of the model in one piece.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import gelu, layer_norm

import blink.torch  # noqa: F401  # makes the backend known

LAYERS, WIDTH, HEADS, WORDS, BATCH, TOKENS = 4, 256, 8, 512, 4, 48
HEAD = WIDTH // HEADS

Weights = dict[str, torch.Tensor]
Sum = Callable[[torch.Tensor], Any]


def weights_of(rank: int, size: int) -> list[Weights]:
    """The same random model on all ranks, of which each takes its part. qkv and up are divided by what they give, out
    and down by what they take."""
    generator = torch.Generator().manual_seed(7)

    def share(rows: int, columns: int, along: int) -> torch.Tensor:
        whole: torch.Tensor = torch.randn(rows, columns, generator=generator) / rows**0.5
        return whole.chunk(size, along)[rank].contiguous()

    return [
        {"q": share(WIDTH, WIDTH, 1), "k": share(WIDTH, WIDTH, 1), "v": share(WIDTH, WIDTH, 1),
         "out": share(WIDTH, WIDTH, 0), "up": share(WIDTH, 4 * WIDTH, 1), "down": share(4 * WIDTH, WIDTH, 0)}
        for _ in range(LAYERS)
    ]  # fmt: skip


class Model:
    """It holds keys and values of the tokens so far."""

    def __init__(self, rank: int, size: int, add_up: Sum) -> None:
        self.layers, self.add_up, self.heads = weights_of(rank, size), add_up, HEADS // size
        self.words = torch.randn(WORDS, WIDTH, generator=torch.Generator().manual_seed(8))
        self.cache = [torch.empty(2, BATCH, self.heads, TOKENS, HEAD) for _ in range(LAYERS)]

    def attention(self, x: torch.Tensor, layer: int, at: int) -> torch.Tensor:
        w, past = self.layers[layer], self.cache[layer]
        q = (x @ w["q"]).view(BATCH, self.heads, 1, HEAD)
        past[0, :, :, at] = (x @ w["k"]).view(BATCH, self.heads, HEAD)
        past[1, :, :, at] = (x @ w["v"]).view(BATCH, self.heads, HEAD)
        keys, values = past[:, :, :, : at + 1]
        weight = torch.softmax(q @ keys.transpose(2, 3) / HEAD**0.5, -1)
        result: torch.Tensor = (weight @ values).view(BATCH, self.heads * HEAD) @ w["out"]
        self.add_up(result)
        return result

    def mlp(self, x: torch.Tensor, layer: int) -> torch.Tensor:
        w = self.layers[layer]
        result = gelu(x @ w["up"]) @ w["down"]
        self.add_up(result)
        return result

    def next_word(self, word: torch.Tensor, at: int) -> torch.Tensor:
        x = self.words[word]
        for layer in range(LAYERS):
            x = x + self.attention(layer_norm(x, (WIDTH,)), layer, at)
            x = x + self.mlp(layer_norm(x, (WIDTH,)), layer)
        return (layer_norm(x, (WIDTH,)) @ self.words.T).argmax(1)

    def decode(self) -> torch.Tensor:
        words = [torch.arange(BATCH)]
        for at in range(TOKENS):
            words.append(self.next_word(words[-1], at))
        return torch.stack(words, 1)


@torch.inference_mode()
def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    if HEADS % size:
        raise SystemExit(f"{size} ranks: want a divisor of the {HEADS} heads")
    groups: dict[str, Any] = {"blink": dist.new_group(backend="blink"), "gloo": dist.group.WORLD}
    models = {name: Model(rank, size, functools.partial(dist.all_reduce, group=group)) for name, group in groups.items()}
    whole = Model(0, 1, lambda x: None).decode()
    best = dict.fromkeys(groups, float("inf"))
    for _ in range(int(os.environ.get("ROUNDS", 5))):
        for name, model in models.items():
            dist.barrier()
            begin = time.perf_counter()
            words = model.decode()
            best[name] = min(best[name], time.perf_counter() - begin)
            assert torch.equal(words, whole), f"{name}: other tokens than those of one rank"
    if rank == 0:
        print(f"{size} ranks, {2 * LAYERS} all_reduces of {BATCH * WIDTH * 4} bytes for {BATCH} tokens side by side")
        for name, seconds in best.items():
            print(f"{name:<6}{BATCH * TOKENS / seconds:10.0f} tokens/s{1e6 * seconds / TOKENS:10.0f} us for each step")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
