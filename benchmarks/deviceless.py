"""A GPU that is not there: its compiler needs none.

It takes the JAX of the device (`jax[cuda12]`), and what the device is like. Kernels are
not tuned by trying them out, which a device has to be there for.
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
"""Options of the compiler."""


def h100():
    """Returns an H100 to compile for; JAX must not have started yet."""
    jax.config.update("jax_platforms", "cpu")
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # No driver is there either.
    how = {"platform": "cuda", "target_config": H100, "topology": "1x1x1"}
    try:
        return topologies.get_topology_desc("h100", **how).devices[0]
    except NotImplementedError:
        sys.exit("--absent: expected the JAX of NVIDIA GPUs: pip install 'jax[cuda12]'")
