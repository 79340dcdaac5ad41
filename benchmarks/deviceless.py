"""A GPU and a TPU that are not there: their compilers need none.

They take the JAX of the device (`jax[cuda12]`, `jax[tpu]`), and what a GPU is like. Its
kernels are not tuned by trying them out, which a device has to be there for.
"""

import os
import sys

import jax
from jax.experimental import topologies

H100 = """
gpu_device_info {
  cuda_compute_capability { major: 9 minor: 0 }
  core_count: 132
  fpus_per_core: 128
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  registers_per_block_limit: 65536
  registers_per_core_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  clock_rate_ghz: 1.98
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  device_memory_size: 84942979072
}
platform_name: "CUDA"
runtime_version { major: 12 minor: 9 patch: 0 }
dnn_version_info { major: 9 minor: 12 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
"""As XLA describes one, `stream_executor.GpuTargetConfigProto`."""
UNTUNED = {"xla_gpu_autotune_level": 0}
"""Options of a GPU's compiler."""
ALONE = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v4-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
}
"""What the library of TPUs would ask the network for."""


def h100():
    """Returns an H100 to compile for; JAX must not have started yet."""
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # No driver is there either.
    how = {"platform": "cuda", "target_config": H100, "topology": "1x1x1"}
    return _first("NVIDIA GPUs: pip install 'jax[cuda12]'", "h100", **how)


def v4():
    """Returns a TPU v4 to compile for; JAX must not have started yet."""
    os.environ.update(ALONE)
    return _first("TPUs: pip install 'jax[tpu]'", "v4:2x2x1", platform="tpu")


DEVICES = {"h100": h100, "v4": v4}
OPTIONS = {"h100": UNTUNED, "v4": None}
"""Options of the compilers."""


def _first(wanted, name, **how):
    jax.config.update("jax_platforms", "cpu")
    try:
        return topologies.get_topology_desc(name, **how).devices[0]
    except (NotImplementedError, RuntimeError):
        sys.exit(f"no compiler: expected the JAX of {wanted}")
