"""Where the time of an update goes: our PPO on CartPole, by JAX's profiler.

The program of a training run is traced, operation by operation. The compiler says which
functions led to an operation, and these tell its part. What was fused counts where the
most of its operations come from; a product whose origin is lost is the network's.
"""

import collections
import functools
import re
import tempfile
import time
from pathlib import Path

import jax
import numpy as np
from hlo import COMPUTATION, INSTRUCTION
from measure import say
from ours import experiment, parser

from ppo_jax.arrays import devices
from ppo_jax.host.devices import mesh
from ppo_jax.host.loop import training
from ppo_jax.schedules import Progress

ACTING = "rollout: policy forward"
LEARNING = "forward and backward"
PARTS = (
    ("rollout: resets", "gymnax/environments/", ".reset_env"),
    ("rollout: environment steps", "gymnax/environments/", ""),
    ("rollout: environment steps", "ppo_jax/envs/", ""),
    ("rollout: environment steps", "ppo_jax/ppo/acting.py", "act"),
    (ACTING, "ppo_jax/ppo/acting.py", "evaluate"),
    ("random numbers", "ppo_jax/arrays/keys.py", ""),
    ("random numbers", "ppo_jax/networks/distributions/", ".sample"),
    ("guards", "ppo_jax/ppo/quarantine.py", ""),
    ("guards", "ppo_jax/arrays/tree.py", "where"),
    ("metrics", "ppo_jax/ppo/diagnostics.py", ""),
    ("metrics", "ppo_jax/ppo/update.py", "_result"),
    ("devices that meet", "ppo_jax/arrays/sharding.py", ""),
    ("optimiser", "ppo_jax/optimizers/", ""),
    ("optimiser", "optax/", "apply_updates"),
    ("shuffling and gathering", "ppo_jax/ppo/permutation.py", ""),
    ("shuffling and gathering", "ppo_jax/ppo/update.py", "gather"),
    (LEARNING, "ppo_jax/ppo/update.py", "_gradients"),
    ("advantages and batch", "ppo_jax/ppo/batch.py", ""),
    ("rollout: rest", "ppo_jax/ppo/rollout.py", ""),
)
"""Parts of an update by file and function: that of the innermost named here."""
REST = "rest"
KERNELS = ("kernel", "recurrent")
"""Parameters that rows are multiplied by."""

FRAME = re.compile(r"stack_frame_id=(\d+)")
CALLED = re.compile(r"calls=%?([\w.\-]+)")
PRODUCT = re.compile(r" dot\(|__ynn_fusion")


def table(text, name):
    """Lines of a table at the head of a compiled program, by number."""
    rest = text.partition(f"\n{name}\n")[2]
    lines = rest.partition("\n\n")[0].splitlines()
    return {int(n): row for n, _, row in (line.partition(" ") for line in lines)}


def stacks(text):
    """Files and functions that led to each frame, from the innermost, by number."""
    files, functions, locations, frames = (
        table(text, name)
        for name in ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
    )

    def fields(row):
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", row)}

    @functools.cache
    def stack(number):
        if number not in frames:
            return ()
        frame = fields(frames[number])
        place = fields(locations[frame["file_location_id"]])
        here = files[place["file_name_id"]], functions[place["function_name_id"]]
        return (here, *stack(frame["parent_frame_id"] - 1))

    return {number: stack(number) for number in frames}


def part_of(stack):
    """The part of what these functions led to."""
    for file, function in stack:
        for part, place, name in PARTS:
            if place in file and name in function:
                return part
    return REST


def most_common(parts):
    """Of parts that are known, if there are any."""
    known = collections.Counter(part for part in parts if part != REST)
    return known.most_common(1)[0][0] if known else REST


def parts(text):
    """The part of every instruction of a compiled program, by its name."""
    frames = {number: part_of(stack) for number, stack in stacks(text).items()}
    bodies = {name: body for name, body in COMPUTATION.findall(text)}

    def said(line):
        found = FRAME.search(line)
        return frames.get(int(found[1]), REST) if found else REST

    @functools.cache
    def of_all(computation):
        lines = INSTRUCTION.findall(bodies.get(computation, ""))
        return most_common(said(line) for _, line in lines)

    found = {}
    for computation, body in bodies.items():
        network = ACTING if of_all(computation).startswith("rollout") else LEARNING
        for name, line in INSTRUCTION.findall(body):
            called = CALLED.search(line)
            inside = of_all(called[1]) if called else REST
            found[name] = network if PRODUCT.search(line) else said(line)
            if found[name] == REST:
                found[name] = inside
    return found


def own_seconds(trace):
    """Seconds of each operation without those that it contains, by name."""
    own = collections.Counter()
    (path,) = Path(trace).rglob("*.xplane.pb")
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            events = [(x.start_ns, x.duration_ns, x.name) for x in line.events]
            around = []
            for start, duration, name in sorted(events, key=lambda x: (x[0], -x[1])):
                while around and around[-1][0] <= start:
                    around.pop()
                own[name] += duration / 1e9
                if around:
                    own[around[-1][1]] -= duration / 1e9
                around.append((start + duration, name))
    return own


def warmed(config):
    """The program of all updates, what runs it, and members that it has trained."""
    updates = config.num_updates
    progress = Progress.of(np.arange(updates), updates)
    layout = mesh.layout_of(config, config.num_members)
    members = layout.making(training.start, config)()
    program = layout.advance.lower(members, progress, np.int32(1)).compile()

    def advance(members):
        return jax.block_until_ready(program(members, progress, np.int32(updates)))[0]

    return program, advance, advance(members)


def traced(config):
    """Seconds of an update without a trace, and with it by part, of all threads."""
    updates = config.num_updates
    program, advance, members = warmed(config)
    began = time.perf_counter()
    members = advance(members)
    seconds = (time.perf_counter() - began) / updates
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            advance(members)
        own = own_seconds(folder)
    known, shares = parts(program.as_text()), collections.Counter()
    for name, spent in own.items():
        if name in known:
            shares[known[name]] += spent / updates
    return seconds, shares


def network_flops(config):
    """Of the products of an update: forward in the rollout, 3 × that in each epoch."""
    params = jax.eval_shape(training.start, config).runs.learner.params
    leaves = jax.tree_util.tree_leaves_with_path(params)
    weights = sum(x.size for path, x in leaves if path[-1].key in KERNELS)
    return 2 * weights * config.steps_per_update * (1 + 3 * config.num_epochs)


def main():
    """Prints a table, and a line of JSON."""
    arguments = parser().parse_args()
    devices.prepare()
    config = experiment(arguments)
    seconds, shares = traced(config)
    whole = sum(shares.values())
    print("| part | µs of an update | share |\n|---|--:|--:|")
    for part, spent in shares.most_common():
        print(f"| {part} | {1e6 * spent:,.0f} | {spent / whole:.1%} |")
    say(
        {
            "seconds_per_update": seconds,
            "steps_per_second": round(config.steps_per_update / seconds),
            "gflops": round(network_flops(config) / seconds / 1e9, 2),
            "parts": {part: round(1e6 * x, 1) for part, x in shares.items()},
        }
    )


if __name__ == "__main__":
    main()
