"""Acts as an exported policy; this file needs nothing but NumPy.

    policy = Policy("exported")
    state = policy.init(1)
    action, state = policy.act(state, obs)              # The most likely action.
    action, state = policy.act(state, obs, rng, reset=ended)

It reads policy.json and policy.npz and executes nothing of them. As a program it checks
that the files of an export are unchanged, and describes it: `python policy.py [FOLDER]`
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

VERSION = 1  # Of the format.
DESCRIPTION, ARRAYS, RUNNER = "policy.json", "policy.npz", "policy.py"
MASKED_LOGIT, GELU = -1e9, (2 / np.pi) ** 0.5


class ExportError(ValueError):
    """Error for a folder that is no export for this file; the message says why."""


def read(folder, names=None):
    """Returns the description of an export, if its files are as exported.

    Args:
        folder: The folder of the export.
        names: Names of the files that are needed; None: all.

    Raises:
        ExportError: If it is no export, of another version, or a file was changed.
    """
    folder = Path(folder)
    try:
        description = json.loads((folder / DESCRIPTION).read_text())
        version, known = int(description["version"]), dict(description["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        said = f"no export: {DESCRIPTION} cannot be read ({error!r:.80})"
        raise ExportError(f"{folder}: {said}") from None
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        said = f"an export of {age} version, {version}; expected {VERSION}"
        raise ExportError(f"{folder}: {said}")
    for name in known if names is None else names:
        if name not in known:
            raise ExportError(f"{folder}: {name} was not exported: {', '.join(known)}")
        if not (folder / name).is_file():
            raise ExportError(f"{folder}: {name} is missing")
        if checksum((folder / name).read_bytes()) != known[name]:
            raise ExportError(f"{folder}: {name} was changed since it was exported")
    return description


def checksum(data):
    """Returns the checksum of a file's content, as text."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class State(NamedTuple):
    """The memory of a policy for n episodes under way."""

    carry: tuple
    """Arrays `[n, ...]` of its memory, as `carry` of the description."""
    reset: Any
    """Whether each episode begins with the next observation, bool `[n]`."""


class Policy:
    """An exported policy.

    Args:
        folder: The folder of the export.
        xp: NumPy, or a module with its functions, such as `jax.numpy`.
    """

    def __init__(self, folder, xp=np):
        self._said = read(folder, (ARRAYS,))
        self._network = self._said["network"]
        if self._network is None:
            raise ExportError(f"{folder}: was not exported for NumPy")
        with np.load(Path(folder) / ARRAYS, allow_pickle=False) as arrays:
            self.arrays = {name: xp.asarray(arrays[name]) for name in arrays.files}
        self.xp = xp

    def init(self, n):
        """Returns the state of n episodes before their first observations."""
        if not (isinstance(n, int | np.integer) and n >= 1):
            raise ValueError(f"n: expected at least 1, got {n!r:.80}")
        carry = (np.zeros((n, *x["shape"]), x["dtype"]) for x in self._said["carry"])
        return State(tuple(carry), np.ones(n, bool))

    def act(self, state, obs, rng=None, *, reset=None, mask=None):
        """Takes one step of n episodes.

        Args:
            state: State of the episodes so far.
            obs: Observations, `[n, ...]` each, of the structure that was trained with.
            rng: `numpy.random.Generator`; None: the most likely actions are taken.
            reset: Which observations, beside the first, begin an episode, bool `[n]`.
            mask: Legal choices, bool `[n, choices]`; None where nothing is forbidden.

        Returns:
            Actions as environments take them, `[n, ...]`, and the next state.

        Raises:
            ValueError: If an argument has the wrong shape, type or structure.
        """
        if not isinstance(state, State) or len(state.carry) != len(self._said["carry"]):
            raise ValueError(f"state: expected that of `init`, got {state!r:.80}")
        n = len(state.reset)
        leaves = [self._leaf(obs, n, known) for known in self._said["observation"]]
        masks = self._said["mask"]
        if mask is not None or (masks and masks["used"]):
            _require("mask", mask, n, masks)
        if reset is not None:
            _require("reset", reset, n, {"dtype": "bool", "shape": ()})
        if not isinstance(rng, np.random.Generator | None):
            raise ValueError(f"rng: expected a numpy.random.Generator, got {rng!r:.80}")
        begins = state.reset if reset is None else state.reset | reset
        action, carry = self.step(state.carry, leaves, begins, mask, rng)
        return action, State(carry, np.zeros(n, bool))

    def step(self, carry, obs, reset, mask=None, rng=None):
        """Takes one step of arrays; returns actions, and the carry after it.

        Args:
            carry: The carry of a `State`.
            obs: The leaves of an observation, in the order of the description.
            reset: Whether each carry is cleared before the step, bool `[n]`.
            mask: True for legal choices, bool `[n, choices]`; None: all are legal.
            rng: As in `act`.
        """
        x, after = self._features(self._seen(obs)), []
        parts = 2 if self._network["memory"] == "lstm" else 1  # (c, h) or (h,).
        carry = [self.xp.where(reset[:, None], self.xp.zeros_like(x), x) for x in carry]
        for layer in range(len(carry) // parts):
            before = carry[layer * parts : (layer + 1) * parts]
            after += self._remembered(f"trunk.memory.layer_{layer}", before, x)
            x = after[-1]
        return self._action(self._dense("head", x), mask, rng), tuple(after)

    def _leaf(self, obs, n, known):
        """Returns a leaf of an observation, found by its path."""
        try:
            for key in known["path"]:
                named = isinstance(key, str) and not isinstance(obs, dict)
                obs = getattr(obs, key) if named else obs[key]
        except (AttributeError, LookupError, TypeError):
            raise ValueError(f"obs: expected something at {known['path']}") from None
        _require(_name(known), obs, n, known)
        return obs

    def _seen(self, obs):
        """Returns observations as the network sees them, or zeros if not finite."""
        xp, clip = self.xp, self._said["normaliser"]
        floats = [x for x in obs if x.dtype.kind not in "iub"]
        flat = [xp.isfinite(x).reshape(x.shape[0], -1) for x in floats]
        finite = xp.concatenate(flat, axis=1).all(axis=1) if flat else None
        seen = []
        for i, x in enumerate(obs):
            x = x.astype("float32")
            if clip is not None:
                mean, scale = (self.arrays[f"{k}.{i}"] for k in ("mean", "deviation"))
                x = xp.clip((x - mean[None]) / scale[None], -clip, clip)
            if finite is not None:
                x = xp.where(finite.reshape(-1, *(1 for _ in x.shape[1:])), x, 0.0)
            seen.append(x)
        return seen

    def _features(self, obs):
        """Returns the torso's features of observations, `[n, features]`."""
        flat, layer = [], 0
        for x in obs:
            for _ in range(self._network["convolutions"] if x.ndim == 4 else 0):
                x = self._activation(self._convolution(f"trunk.torso.Conv_{layer}", x))
                layer += 1
            flat.append(x.reshape(x.shape[0], -1))
        x = self.xp.concatenate(flat, axis=1)
        for layer in range(self._network["dense"]):
            x = self._activation(self._dense(f"trunk.torso._Layers_0.Dense_{layer}", x))
        return x

    def _dense(self, name, x):
        return x @ self._params(name, "kernel") + self._params(name, "bias")[None]

    def _convolution(self, name, x):
        """Convolves grids `[n, H, W, features]`, 3×3 without padding."""
        kernel, bias = (self._params(name, part) for part in ("kernel", "bias"))
        h, w = x.shape[1] - 2, x.shape[2] - 2
        around = [x[:, i : i + h, j : j + w] for i in range(3) for j in range(3)]
        rows = self.xp.concatenate(around, axis=3).reshape(-1, 9 * x.shape[3])
        rows = rows @ kernel.reshape(-1, kernel.shape[3]) + bias[None]
        return rows.reshape(-1, h, w, kernel.shape[3])

    def _remembered(self, name, before, x):
        """Returns the next carry of a recurrent layer; its last part is the output."""
        xp = self.xp
        inputs = self._dense(f"{name}.inputs", x)
        if self._network["memory"] == "min_gru":
            z, n = xp.split(inputs, 2, axis=1)
            return (before[0] + self._sigmoid(z) * (n - before[0]),)
        recurrent = before[-1] @ self._params(name, "recurrent")
        if self._network["memory"] == "lstm":
            i, f, g, o = xp.split(inputs + recurrent, 4, axis=1)
            c = self._sigmoid(f) * before[0] + self._sigmoid(i) * xp.tanh(g)
            return c, self._sigmoid(o) * xp.tanh(c)
        r, z, n = xp.split(inputs, 3, axis=1)
        r_h, z_h, n_h = xp.split(recurrent, 3, axis=1)
        new = xp.tanh(n + self._sigmoid(r + r_h) * n_h)
        kept = self._sigmoid(z + z_h)
        return ((1 - kept) * new + kept * before[0],)

    def _action(self, outputs, mask, rng):
        space = self._said["action"]
        if space["kind"] == "Box":
            return self._real(outputs, rng)
        if mask is not None:
            outputs = self.xp.where(mask, outputs, MASKED_LOGIT)
        if rng is not None:
            outputs = outputs + rng.gumbel(size=outputs.shape)
        ends = np.cumsum(space["choices"])[:-1].tolist()
        parts = self.xp.split(outputs, ends, axis=1)
        each = [self.xp.argmax(part, axis=1).astype("int32") for part in parts]
        return each[0] if space["kind"] == "Discrete" else self.xp.stack(each, axis=1)

    def _real(self, raw, rng):
        """Returns real actions, from the outputs of the last layer."""
        if rng is not None:
            noise = rng.standard_normal(raw.shape, np.float32)
            raw = raw + self.arrays["scale"][None] * noise
        low, high = self.arrays["low"][None], self.arrays["high"][None]
        if (steepness := self._network["steepness"]) is not None:
            raw = low + (high - low) * self._sigmoid(steepness * raw)
        return self.xp.clip(raw, low, high)

    def _activation(self, x):
        xp = self.xp
        return {
            "tanh": xp.tanh,
            "relu": lambda x: xp.maximum(x, 0.0),
            "leaky_relu": lambda x: xp.where(x > 0, x, 0.01 * x),
            "elu": lambda x: xp.where(x > 0, x, xp.expm1(xp.minimum(x, 0.0))),
            "gelu": lambda x: 0.5 * x * (1 + xp.tanh(GELU * (x + 0.044715 * x**3))),
            "silu": lambda x: x * self._sigmoid(x),
        }[self._network["activation"]](x)

    def _sigmoid(self, x):
        return 0.5 * (1.0 + self.xp.tanh(0.5 * x))  # Nothing overflows.

    def _params(self, *name):
        return self.arrays[".".join(("params", *name))]


def _require(name, given, n, known):
    """Raises a `ValueError` unless an array is n times the described one."""
    expected = _shown(known["dtype"], (n, *known["shape"])) if known else "None"
    got = _shown(given.dtype, given.shape) if hasattr(given, "dtype") else repr(given)
    if got != expected:
        raise ValueError(f"{name}: expected {expected}, got {got:.80}")


def _name(known):
    """Returns the name of a leaf of an observation."""
    return ".".join(map(str, ("obs", *known["path"])))


def _shown(kind, shape):
    """Describes an array, for example `float32[2, 3]`."""
    return f"{kind}[{', '.join(map(str, shape))}]"


def main(folder):
    """Prints the description of an export, and takes a step with it."""
    description = read(folder)
    leaves = description["observation"]
    for name in ("environment", "update", "steps", "member"):
        print(f"{name:>12}  {description['trained'].get(name)}")
    for leaf in leaves:
        kind = _shown(leaf["dtype"], ("n", *leaf["shape"]))
        print(f"{'observation':>12}  {_name(leaf)}: {kind}")
    print(f"{'action':>12}  {description['action']}")
    if description["network"] is not None:
        obs = [np.zeros((1, *x["shape"]), x["dtype"]) for x in leaves]
        policy = Policy(folder)
        carry, reset = policy.init(1)
        print(f"{'of zeros':>12}  {policy.step(carry, obs, reset)[0].tolist()}")


if __name__ == "__main__":
    try:
        main(*(sys.argv[1:2] or [Path(__file__).parent]))
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
