"""libblink as a backend of torch.distributed, for tensors on the CPU.

    import torch.distributed as dist
    import blink.torch
    dist.init_process_group("blink")

The ranks find each other by the store of torch.distributed; the process group's timeout is libblink's. Errors are
exceptions of the package blink, on every rank. Options are those of libblink, as `pg_options`, or its environment.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import torch.distributed as dist

from .. import Config as Options
from ._group import ProcessGroup

__all__ = ["Options", "ProcessGroup", "register"]


def _create(how: Any, options: object) -> ProcessGroup:
    """What torch.distributed calls for each process group that this rank is a member of."""
    if options is not None and not isinstance(options, Options):
        raise TypeError(f"pg_options: {type(options).__name__}: want blink.torch.Options")
    options = options or Options()
    if options.gpu is None and not os.environ.get("BLINK_GPU") and how.global_ranks_in_group:
        # A rank has the same GPU in all of its groups, if an index has as many.
        options = replace(options, gpu=f"={how.global_ranks_in_group[how.group_rank]}")
    return ProcessGroup(how.store, how.group_rank, how.group_size, how.timeout, options)


def register() -> None:
    """Make the backend "blink" known to torch.distributed. Importing this package does it."""
    if "BLINK" not in dist.Backend._plugins:
        dist.Backend.register_backend("blink", _create, extended_api=True, devices=["cpu"])


register()
