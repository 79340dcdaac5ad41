"""What a first day gets wrong is told: by name, with what was expected, and no more.

A message names whose part is wrong and shows the user's own lines; nothing comes raw,
nothing is taken for something else, and nothing is left behind.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import urllib.request
from unittest import mock

import pytest
from runs import EXPERIMENT, OFFLINE, SAYS_ALL, WALK, called, part

from ppo_jax.host.run_dir import experiment as experiments

BEGINNING = (
    EXPERIMENT.format(memory="")
    + """
import dataclasses
import flax.linen as nn
import numpy as np
import optax
from ppo_jax import PBT, LogUniform, Uniform, adversaries, attacks, critics, envs
from ppo_jax import optimizers, pbt, terms
from ppo_jax.component import component, replace_at

class Features(nn.Module):
    pass

def changed(**fields):
    return dataclasses.replace(config, **fields)

def seen_by(torso, env):
    return changed(env=env, network=networks.ActorCritic(torso))

def acting(**parts):
    return changed(network=networks.ActorCritic(**parts))

def searching(path, **fields):
    return changed(pbt=PBT({path: Uniform(0.2, 0.8)}, size=4), **fields)

def selecting(metric):
    space = {"optimizer.learning_rate": LogUniform(1e-4, 1e-2)}
    return changed(pbt=PBT(space, size=4, fitness=pbt.Maximize(metric)))

def constrained(quantity, critic, count=1):
    constraint = terms.CVaRConstraint(quantity=quantity, estimate=terms.Predicted())
    return changed(critic=critic, terms=(*config.terms, *[constraint] * count))

"""
)
BY_KIND = "terms are addressed by their kind; this one is terms.entropy.coef"
HEADS = ["GaussianHead", "SigmoidHead", "TanhHead"]
WRITTEN = {
    # No config.
    "dict(num_envs=4)": ["expected a Config named `config`, got a dict"],
    "Config": ["`config`, got a type; a class has to be called: Config(…)"],
    "Config()": ["missing 1 required positional argument: 'env'"],
    # Numbers.
    "changed(num_envs=-1)": ["Config.num_envs: expected at least 1, got -1"],
    "changed(num_steps=0)": ["Config.num_steps: expected at least 1, got 0"],
    "changed(num_envs=True)": ["Config.num_envs: expected int, got True (bool)"],
    "changed(num_envs=10**12)": [
        "Config.total_timesteps: expected at least one rollout of num_envs · num_steps"
    ],
    "changed(num_envs=2**28, num_steps=8, total_timesteps=2**40)": [
        "Config.num_envs: expected num_envs · num_steps = num_envs · 8 below 2³¹, got"
    ],
    "changed(total_timesteps=1.5)": ["Config.total_timesteps: expected int, got 1.5"],
    "changed(eval_episodes=0)": ["Config.eval_episodes: expected at least 1, got 0"],
    "changed(gamma=np.float32(2.0))": ["Config.gamma", "got 2.0"],
    "changed(gamma=float('nan'))": ["Config.gamma: expected a number in (0, 1]", "nan"],
    "changed(gamma='0.99')": ["Config.gamma: expected float, got '0.99' (str)"],
    "changed(obs_clip=0.0)": ["Config.obs_clip: expected a number > 0, or None, got 0"],
    "changed(seed=-1)": ["Config.seed: expected 0 to 2³² − 1, got -1"],
    "changed(seed=2**32)": ["Config.seed: expected 0 to 2³² − 1, got 4294967296"],
    "changed(optimizer=optimizers.Adam(-1e-3))": [
        "Adam.learning_rate: expected a finite number ≥ 0, got -0.001"
    ],
    "changed(optimizer=optimizers.UPGD(float('inf')))": [
        "UPGD.learning_rate: expected a finite number ≥ 0, got inf"
    ],
    "changed(terms=(terms.Surrogate(), terms.Value(), terms.Entropy(float('nan'))))": [
        "Entropy.coef: expected a finite number, got nan"
    ],
    "changed(terms=(terms.Surrogate(-0.2), terms.Value()))": [
        "Surrogate.clip_eps: expected a number > 0, got -0.2"
    ],
    "changed(critic=critics.Quantile(0))": ["Quantile.num_quantiles: expected at leas"],
    "acting(critic_hidden=(8, 0))": ["ActorCritic.critic_hidden: expected at least 1"],
    "acting(torso=networks.Mlp(hidden=64))": ["Mlp.hidden: expected tuple[int, ...]"],
    # Components.
    "changed(optimizer='adam')": ["Config.optimizer: expected Optimizer, got 'adam'"],
    "changed(optimizer=optax.adam(1e-3))": [
        "Config.optimizer: expected Optimizer, got what is optax's; give Optax(learning"
    ],
    "changed(optimizer=optimizers.Adam)": [
        "Config.optimizer: expected Optimizer",
        "a class has to be called: Adam(…)",
    ],
    "changed(terms=())": ["Config.terms: expected a term to learn from"],
    "changed(terms='ppo')": ["Config.terms: expected tuple", "Term, ...], got 'ppo'"],
    "changed(terms=(terms.Surrogate, terms.Value()))": [
        "Config.terms: expected tuple",
        "a class has to be called: Surrogate(…)",
    ],
    "changed(network=networks.Mlp())": ["Config.network: expected ActorCritic, got Ml"],
    "acting(memory='lstm')": ["ActorCritic.memory: expected ", "Memory", "got 'lstm'"],
    "acting(compute_dtype='bf16')": [
        "ActorCritic.compute_dtype: expected ",
        "['float32', 'bfloat16'], got 'bf16'",
    ],
    "acting(torso=Features())": ["ActorCritic.torso: expected Torso, got Features("],
    "acting(memory=networks.Recurrent())": ["Recurrent.cell: expected a Cell"],
    "acting(head=networks.Mlp())": ["ActorCritic.head: expected Head, got Mlp("],
    "acting(head=networks.Categorical())": HEADS,
    "changed(adversary=attacks.Pgd(0.1))": ["Config.adversary: expected ", "Adversary"],
    "seen_by(networks.Cnn(channels=(8,) * 6), 'Breakout-MinAtar')": [
        "Cnn.channels: expected at most 4 layers for grids of 10×10",
        "got (8, 8, 8, 8, 8, 8)",
    ],
    "seen_by(networks.Cnn(), 'CartPole-v1')": ["[H, W, features], got [(4,)]"],
    "constrained(terms.Returns(), critics.Scalar())": [
        "Config.critic: expected a Quantile"
    ],
    "constrained(terms.Rewards(), critics.Quantile(4))": [
        "CVaRConstraint.quantity: expected Returns(), which critics predict"
    ],
    "constrained(terms.Returns(), critics.Quantile(4), count=2)": [
        "Config.terms: expected at most"
    ],
    # Names.
    "Config('CartPole-v1', learning_rate=1e-3)": [
        "'optimizer.learning_rate'; give optimizer=Adam(learning_rate=…)"
    ],
    "Config('CartPole-v1', num_enves=8)": ["closest is 'num_envs'"],
    "Config('CartPole-v1', terms=(terms.Entropy(coeff=1),))": ["closest is 'coef'"],
    "replace_at(config, 'num_envs', 8)": ["use dataclasses.replace(…, num_envs=…)"],
    "replace_at(config, 'terms.2.coef', 0.5)": [f"terms.2.coef: {BY_KIND}"],
    "searching('terms.2.coef')": [f"PBT.space: terms.2.coef: {BY_KIND}"],
    "searching('terms.2.coeff')": [f"PBT.space: terms.2.coeff: {BY_KIND}f"],
    "searching('terms.7.coef')": ["'terms.7.coef'; the closest is 'terms.value.coef'"],
    # Environments.
    "changed(env=3)": ["expected an Env or an id, got 3"],
    "changed(env=TimeLimitChain)": ["a class has to be called: TimeLimitChain(…)"],
    "Config('cartpole')": ["called 'cartpole'; the closest is 'CartPole-v1'"],
    "Config('HalfCheetah-v4')": ["there are: CartPole-v1, ", "Freeway-MinAtar"],
    "Config('MNISTBandit-bsuite')": [
        "MNISTBandit-bsuite",
        "needs the network to download",
    ],
    "Config(envs.Gymnax('CartPole-v1', params={'gravty': 9}))": ["'gravity'"],
    "Config(envs.Gymnax('CartPole-v1', params={'gravity': 'low'}))": [
        "CartPole-v1.gravity: expected float | None, got 'low'"
    ],
    "Config(envs.Gymnax('Pendulum-v1', params={'max_torque': 4.0}))": [
        "Gymnax.params: expected numbers that leave the actions Box(low=(-2.0,)"
    ],
    # Populations.
    "searching('num_epochs')": ["num_epochs is structure, which cannot", "sweep"],
    "searching('obs_clip')": ["obs_clip is absent"],
    "searching('pbt.selector.ratio')": ["pbt.selector.ratio is of the search itself"],
    "searching('gama', num_minibatches=7)": ["closest is 'gamma'"],
    "changed(pbt=PBT)": ["Config.pbt: expected ", "a class has to be called: PBT(…)"],
    "changed(pbt=PBT({}, size=3))": ["PBT.selector.ratio: expected at least 1 / size"],
    "changed(pbt=PBT({}, size=1))": ["PBT.size: expected at least 2, got 1"],
    "changed(pbt=PBT(['gamma']))": ["PBT.space: expected ranges by path, got ['gamm"],
    "changed(pbt=PBT({'gamma': (0.9, 0.99)}))": [
        "PBT.space: gamma: expected a range such as Uniform(0.1, 0.9), got (0.9, 0.99)"
    ],
    "changed(pbt=PBT({'gamma': Uniform(0.99, 0.9)}))": [
        "Uniform.low, high: expected two finite numbers, low < high, got (0.99, 0.9)"
    ],
    "changed(pbt=PBT({'gamma': Uniform(0.9, 1.5)}))": [
        "PBT.space: Config.gamma: expected a number in (0, 1], got 1.5"
    ],
    "changed(pbt=PBT({'gamma': Uniform('0.9', 1.0)}))": [
        "Uniform.low: expected float, got '0.9' (str)"
    ],
    "selecting('eval/mean_rewrd')": [
        "error: Config.pbt.fitness: Maximize.metric: no metric is called 'eval/mean_rew"
    ],
}
OWN = '  File "{path}", line 2, in <module>\n    '
FILES = {
    "": ["error: {path}: expected a Config named `config`, got none\n"],
    f"{BEGINNING}\nother = config\ndel config\n": ["got one named `other`"],
    "\nrate = 1 / 0\n": [
        f"error: {{path}}: ZeroDivisionError: division by zero\n{OWN}rate = 1 / 0\n"
    ],
    "\nconfig = dict(\n": [
        "error: {path}: SyntaxError: '(' was never closed ({path}, line 2)\n"
        '  File "{path}", line 2\n    config = dict(\n                 ^\n'
    ],
    "\nassert False\n": [f"error: {{path}}: AssertionError\n{OWN}assert False\n"],
    "\nexit('done')\n": [f"error: {{path}}: SystemExit: done\n{OWN}exit('done')\n"],
    "\nimport sys; sys.exit(0)\n": ["error: {path}: SystemExit: 0\n"],
    "\nimport ppo_jaxx\n": ["ModuleNotFoundError: No module named 'ppo_jaxx'", OWN],
    "\nfrom ppo_jax import PPO\n": [
        "cannot import name 'PPO'",
        "it has Choice, Config",
    ],
    "\nimport ppo_jax\nppo_jax.Confg()\n": [
        "module 'ppo_jax' has no attribute 'Confg'",
        "it has Choice, Config",
    ],
    "\nfrom ppo_jax import networks\nnetworks.LSTM()\n": ["'LSTM'", "Layered, Lstm"],
}
LINE = 1 + WALK[: WALK.index("state = state + 1")].count("\n")
ENVIRONMENTS = {
    ("return jnp.zeros(1), jnp.zeros(())", "return jnp.zeros(1)"): ["- reset: got "],
    ("return jnp.zeros(1), jnp", "return jnp.zeros(3), jnp"): [
        "- transition: obs: got float32[1], expected float32[3]"
    ],
    ("state[None], action", "jnp.zeros(2), action"): [
        "- transition: obs: got float32[2], expected float32[1]"
    ],
    ("return timestep, state", "return timestep, state.astype(int)"): [
        "- transition: state: got int32[], expected float32[]"
    ],
    ("return timestep, state", "return 1, 2, 3, 4, 5"): [
        "- transition: got a tuple of 5, expected (Timestep, state)"
    ],
    ("state = state + 1", "state = state + 1 if state < 9 else state"): [
        "- transition: got TracerBoolConversionError: Attempted boolean conversion of "
        "traced array with shape bool[]., expected code that JAX can trace; numbers "
        "are arrays here: choose with jnp.where, not with if\n"
        '  File "{path}", line {line}, in Walk.transition\n'
        "    state = state + 1 if state < 9 else state\n",
    ],
    ("state = state + 1", "state = state + len(None)"): [
        "- transition: got TypeError: object of type 'NoneType' has no len(), expected "
        'no error\n  File "{path}", line {line}, in Walk.transition\n'
        "    state = state + len(None)\n",
    ],
    ("def action_space", "def actions"): [
        "- Walk.action_space: missing; every Env needs one of its own\n"
    ],
    ("def reset", "def begin"): ["Walk.reset: missing; every Env needs one of its own"],
    ("return envs.Discrete(2)", "return 2"): [
        "- action_space: got 2, expected Discrete(n) with n ≥ 1"
    ],
    ("return envs.Discrete(2)", "return envs.Discrete(0)"): [
        "- action_space: got Discrete(n=0), expected Discrete(n) with n ≥ 1"
    ],
    ("return self.limit", "return 0"): [
        "- max_episode_steps: got 0, expected an int from 1 up"
    ],
}
PARTS = {
    ("terms.Term", SAYS_ALL.replace("out.log_ratio", "out.log_ratio.mean()")): [
        "Mine: loss: expected the shape (1, 16), a number per example, got float32[]"
    ],
    ("terms.Term", SAYS_ALL.replace(", {}", "")): [
        "Mine: expected (loss, dict of metrics), got float32[1, 16]"
    ],
    ("terms.Term", SAYS_ALL.replace("{}", "{'step': out.log_ratio}")): [
        "Mine: expected metrics with names such as 'mine/size', but not 'step' nor "
    ],
    ("terms.Term", "weight: float = 1.0"): [
        "Mine.__call__: missing; every Term needs one of its own"
    ],
    (
        "terms.Term",
        "def prepare(self, memory, rollout): return rollout.reward.sum(), {}",
    ): [
        "Mine.prepare: expected arrays whose shape begins with (8, 4), a row per step, "
        "got float32[]"
    ],
    (
        "terms.Term",
        f"{SAYS_ALL}\n    def update(self, memory, metrics): return jnp.ones(3)",
    ): ["Mine.update: expected () as before, got float32[3]"],
    (
        "critics.Scalar",
        "def loss(self, outputs, target): return (outputs[..., 0] - target).mean()",
    ): [
        "Mine.loss: expected the shape (1, 16), a number per prediction, got float32[]"
    ],
    ("networks.Torso", "width: int = 4"): [
        "Mine.__call__: missing; every Torso needs one of its own"
    ],
    ("networks.Torso", "def __call__(self, obs): return obs.mean()"): [
        "Mine: expected features of shape [1, 1, n], got float32[]"
    ],
    ("networks.Head", "width: int = 4"): [
        "Mine.policy: missing; every Head needs one of its own"
    ],
    ("networks.Head", "def free(self, space): return {'head': 1}"): [
        "Mine.free: expected a name that nothing else has, got 'head'"
    ],
    ("networks.Memory", "width: int = 4"): [
        "Mine.initial_carry: missing; every Memory needs one of its own"
    ],
    (
        "networks.Memory",
        "def initial_carry(self, num_envs): return (jnp.zeros((num_envs, 2)),)\n"
        "    def __call__(self, carry, x, reset): return carry * 2, x",
    ): [
        "Mine: expected the carry ('float32[1, 2]',) as before, got ('float32[1, 2]', "
    ],
}
NO_RUN = ": no run to be found there"
MANY = "error: swept: holds a sweep; ppo_jax.load_all finds its runs, each of"
UNWRITABLE = "error: right.py/below/a.file: cannot be {}: Not a directory\n"
LINES = {
    # What there is to run.
    "trian right.py": ["error: no command is called 'trian'; the closest is 'train'"],
    "train nowhere.py": ["error: nowhere.py: no such experiment file"],
    "train rigt.py": ["no such experiment file; the closest is right.py\n"],
    "train folder": ["error: folder: is a folder; expected a Python file\n"],
    "train run": ["error: run: is a folder; expected ", "such as run/experiment.py\n"],
    "train notes.txt": ["error: notes.txt: SyntaxError: invalid syntax", "no program"],
    "train run/config.json": ["error: run/config.json: expected a Config named"],
    "train bytes.py": ["error: bytes.py: ", "Error: source code"],
    "sweep folder": ["error: folder: is a folder; expected a Python file\n"],
    "selfcheck nowhere.py": ["error: nowhere.py: no such experiment file"],
    # Fields.
    "train right.py --learning-rate 1e-3": ["--optimizer.learning-rate"],
    "train right.py --num-enves 8": ["--num-envs"],
    "train right.py --optimizer.lerning-rate 1": ["--optimizer.learning-rate"],
    "train right.py --optimizer AdamW": ["components there are is for the file to say"],
    "train right.py --rundir x": ["'--rundir'; the closest is '--run-dir'\n"],
    "train right.py --rundir=x": ["'--rundir'; the closest is '--run-dir'\n"],
    "sweep right.py --grd gamma=1": ["'--grd'; the closest is '--grid'\n"],
    "train right.py --env gymax/CartPole-v1": ["'gymax'; the closest is 'gymnax'\n"],
    "train right.py --env Pendulun-v1": ["'Pendulun-v1'; the closest is 'Pendulum-v1'"],
    "train --num-envs 8 right.py": ["error: --num-envs: expected EXPERIMENT or R"],
    "replay --seed 8 run": ["error: --seed: expected EXPERIMENT or RUN_DIR before"],
    "train right.py right.py": ["error: 'right.py': expected --FIELD before it\n"],
    "train right.py --lr 0.1": ["--lr'; the closest is '--optimizer.learning-rate'\n"],
    "train right.py --batch_size=4": ["_size'; the closest is '--num-minibatches'\n"],
    "train right.py --total-timesteps 1.5": [
        "--total-timesteps",
        "expected a whole number, got '1.5'",
    ],
    "train right.py --total-timesteps many": [
        "--total-timesteps",
        "expected a whole number, got 'many'",
    ],
    "train right.py --num-envs many": [
        "--num-envs",
        "expected a whole number, got 'many'",
    ],
    "train right.py --num-envs": ["Missing value for argument '--num-envs'"],
    "train right.py --gamma 2": ["(0, 1], got 2.0"],
    "train right.py --gamma nan": ["(0, 1], got nan"],
    "train right.py --seed 99999999999999999999": [
        "Config.seed: expected 0 to 2³² − 1"
    ],
    "train right.py --num-minibatches 5": ["Config.num_minibatches"],
    "train right.py --chunk-length 3": ["Config.chunk_length"],
    "train right.py --devices-per-member 3": ["Config.devices_per_member"],
    "train right.py --optimizer.max-grad-norm -1": ["max_grad_norm"],
    "train right.py --terms.2.coef 0.5": [
        "error: --terms.2.coef: terms are addressed by their kind; this one is "
        "--terms.entropy.coef\n"
    ],
    "train right.py --terms.0.clip-eps=0.5": ["one is --terms.surrogate.clip-eps\n"],
    "train right.py --terms.7.coef 0.5": [
        "error: no option is called '--terms.7.coef'"
    ],
    "train right.py --terms.entrpy.coef 0.5": [
        "error: no option is called '--terms.entrpy.coef'; the closest is "
        "'--terms.entropy.coef'\n"
    ],
    # Other options.
    "train": ["required: EXPERIMENT"],
    "train right.py --run-dir": ["--run-dir: expected one argument"],
    "train right.py --resume=yes": ["--resume: ignored explicit argument 'yes'"],
    "train right.py --num-processes 2": ["error: --run-dir: expected, and the same"],
    "train right.py --max-seconds -1": ["Config.max_seconds: expected a number > 0"],
    "train right.py --stop-at eval/mean_rewrd 3": [
        "error: Config.stop_at: no metric is called 'eval/mean_rewrd'; the closest is "
        "'eval/mean_reward'\n"
    ],
    "train right.py --stop-at eval/mean_reward": ["--stop-at"],
    "train right.py --stop-at eval/mean_reward high": ["--stop-at", "high"],
    "train right.py --stop-at eval/mean_reward nan": ["finite numbers by metric"],
    "train right.py --warm-start nowhere": [f"error: nowhere{NO_RUN}"],
    "train right.py --warm-start begun": ["no checkpoint was saved: the run ended bef"],
    "train right.py --warm-start run --network.torso.hidden 4": [
        "error: expected an agent with the shapes of this experiment, got\n",
        "kernel: float32[1, 8] there, float32[1, 4] here\n",
    ],
    "train right.py --warm-start run --resume --run-dir run": [
        "error: --warm-start: a run that is resumed has begun; give one of both\n"
    ],
    "train right.py --warm-optimizer": ["--warm-optimizer: expected --warm-start as w"],
    "evaluate": ["required: RUN_DIR"],
    "evaluate run run": [
        "error: no option is called 'run'; there are: --episodes, ",
        "--json, --env, --env.FIELD\n",
    ],
    "watch run --envs x": ["no option is called '--envs'; the closest is '--env'\n"],
    "evaluate run --episods 3": ["'--episods'; the closest is '--episodes'\n"],
    "evaluate run --episodes": ["--episodes: expected one argument"],
    "evaluate run --episodes 0": ["error: --episodes: expected at least 1, got 0\n"],
    "evaluate run --episodes many": ["--episodes: invalid int value: 'many'"],
    "evaluate run --seed 99999999999999999999": ["error: --seed: expected 0 to 2³²"],
    "evaluate run --seed -1": ["error: --seed: expected 0 to 2³² − 1, got -1\n"],
    "evaluate run --checkpoint 20 --best": ["not allowed with argument --checkpoint"],
    "robustness run --eps": ["--eps: expected at least one argument"],
    "robustness run --eps much": ["--eps: invalid float value: 'much'"],
    "robustness run --eps -1": ["error: --eps: expected numbers ≥ 0, got -1.0\n"],
    "robustness run --eps 0.1 nan": ["error: --eps: expected numbers ≥ 0, got nan\n"],
    "robustness run --episodes 0": ["error: --episodes: expected at least 1, got 0\n"],
    # Settings of a sweep.
    "sweep right.py --grid optimizer.lerning_rate=1": ["'optimizer.learning_rate'"],
    "sweep right.py --grid terms.2.coef=0.5": [
        f"error: terms.2.coef=0.5: terms.2.coef: {BY_KIND}\n"
    ],
    "sweep right.py --random 2 --space terms.2.coef=Uniform(0.1,0.5)": [BY_KIND],
    "sweep right.py --stop-at eval/mean_rewrd 3": [
        "error: Config.stop_at: no metric is called 'eval/mean_rewrd'; the closest is "
        "'eval/mean_reward'\n"
    ],
    "sweep right.py --grid": ["--grid: expected at least one argument"],
    "sweep right.py --grid gamma": ["error: 'gamma': expected PATH=VALUE,VALUE…\n"],
    "sweep right.py --grid gamma=": ["error: 'gamma=': expected PATH=VALUE,VALUE…\n"],
    "sweep right.py --grid gamma=high": ["error: gamma: 'high' is no list of Python"],
    "sweep right.py --grid gamma=0.9,2.0": ["(0, 1], got 2.0"],
    "sweep right.py --grid gamma=0.9 gamma=0.8": ["error: gamma: is given twice\n"],
    "sweep right.py --grid gamma=Uniform(0.8,0.9)": ["give it to --space"],
    "sweep right.py --grid num_minibatches=5": ["Config.num_minibatches"],
    "sweep right.py --grid seed=1,2": ["error: seed: every setting has all seeds"],
    "sweep right.py --random 2": ["--random and --space: one needs the other"],
    "sweep right.py --space gamma=Uniform(0.8,0.9)": ["one needs the other"],
    "sweep right.py --random -1": ["error: --random: expected at least 0, got -1\n"],
    "sweep right.py --random 2 --space gamma=Uniform(0.5,1.5)": ["got 1.5"],
    "sweep right.py --random 2 --space gamma=Uniform(0.9,0.8)": ["low < high"],
    "sweep right.py --seeds 0": ["error: --seeds: expected at least 1, got 0\n"],
    "sweep right.py --memory 0": ["error: --memory: expected a number of MiB > 0, got"],
    "sweep right.py --memory nan": ["--memory: expected a number of MiB > 0, got nan"],
    "sweep right.py --metric eval/mean": ["eval/mean_reward", "got 'eval/mean'"],
    "sweep right.py --metric eval/std_reward": ["median_reward", "'eval/std_reward'"],
    # Runs that are none, and those that are.
    "evaluate nowhere": [f"error: nowhere{NO_RUN}"],
    "evaluate ruun": [f"error: ruun{NO_RUN}; the closest is run\n"],
    "evaluate folder": [f"error: folder{NO_RUN}"],
    "evaluate right.py": [f"error: right.py{NO_RUN}"],
    "replay nowhere": [f"error: nowhere{NO_RUN}"],
    "report nowhere": [f"error: nowhere{NO_RUN}"],
    "robustness nowhere": [f"error: nowhere{NO_RUN}"],
    "robustness run --against nowhere": [f"error: nowhere{NO_RUN}"],
    "robustness run --against other": ["error: other: a run in another environment\n"],
    "evaluate swept": [MANY],
    "export swept": [MANY],
    "robustness run --against swept": [MANY],
    "watch swept": [MANY],
    "train right.py --warm-start swept": [MANY],
    "robustness run --against ./run": ["error: --against: expected another run than"],
    "replay run": ["error: run: is no run of a population\n"],
    "evaluate run --checkpoint 7": ["no checkpoint 7; there are: 20, 24\n"],
    "evaluate run --member 1": ["error: --member: expected 0 to 0, got 1\n"],
    "robustness run --member -1": ["error: --member: expected 0 to 0, got -1\n"],
    "train right.py --run-dir run": ["error: run: holds a run already; give --resume"],
    "sweep right.py --run-dir run": ["error: run: holds a run already; give --resume"],
    "sweep right.py --run-dir scored": ["error: scored: holds a run already; give --"],
    "replay run --to run": ["error: run: holds a run already; give --resume"],
    # Exports.
    "export": ["required: RUN_DIR"],
    "export nowhere": [f"error: nowhere{NO_RUN}"],
    "export folder": [f"error: folder{NO_RUN}"],
    "export exported": [f"error: exported{NO_RUN}"],
    "export run --format onnx": ["--format: invalid choice: 'onnx' (", "stablehlo"],
    "export run --fromat numpy": ["'--fromat'; the closest is '--format'\n"],
    "export run --sample": ["error: no option is called '--sample'"],
    "export run --member 1": ["error: --member: expected 0 to 0, got 1\n"],
    "export run --checkpoint 7": ["no checkpoint 7; there are: 20, 24\n"],
    "export run --checkpoint 20 --best": ["not allowed with argument --checkpoint"],
    "export run --out right.py/below/a.file": [UNWRITABLE.format("made")],
    "export run --out other": ["error: other: expected a new folder, or one with an e"],
    "export run --out newer": ["error: newer: an export of a newer version, 2; expec"],
    "export run --out changed": ["error: changed: policy.npz was changed since it was"],
    "export begun": ["begun/checkpoints: no checkpoint was saved: the run ended bef"],
    # Going on.
    "train right.py --resume": ["error: --resume: expected --run-dir as well\n"],
    "train right.py --resume --run-dir nowhere": [f"error: nowhere{NO_RUN}"],
    "train right.py --resume --run-dir other": ["env.limit: 4 -> 5"],
    "train right.py --resume --run-dir swept": [MANY],
    "train right.py --resume --run-dir run --terms.2.coef 0.5": [
        f"error: --terms.2.coef: {BY_KIND.replace('terms.e', '--terms.e')}\n"
    ],
    "train turned.py --resume --run-dir run": [
        "  terms: surrogate, value, entropy -> entropy, value, surrogate\n"
    ],
    "train right.py --resume --run-dir run --num-envs 8": ["num_envs: 4 -> 8"],
    "train right.py --resume --run-dir run --obs-clip 10.0": ["clip: None -> 10.0"],
    "sweep right.py --resume": ["error: --resume: expected --run-dir as well\n"],
    "sweep right.py --resume --run-dir nowhere": [f"error: nowhere{NO_RUN}"],
    "sweep right.py --resume --run-dir run": [
        "error: run: holds a run of another command, without sweep.json\n"
    ],
    "sweep other.py --resume --run-dir swept": ["env.limit: 5 -> 4"],
    "sweep right.py --resume --run-dir swept --gamma 0.5": ["as it was asked for"],
    "sweep right.py --resume --run-dir swept --seeds 3": ["as it was asked for"],
    "sweep right.py --resume --run-dir swept --memory 800": [
        "error: --resume: a sweep goes on as it was asked for; give --memory to "
        "another one, in a new --run-dir\n"
    ],
    # Files that are damaged, missing, or cannot be written.
    "evaluate begun": ["begun/checkpoints: no checkpoint was saved: the run ended bef"],
    "evaluate emptied": ["cannot be read", "emptied/checkpoints: no checkpoint can be"],
    "evaluate without": ["error: without/experiment.py: no such experiment file\n"],
    "evaluate cut": ["error: cut/overrides.json: cannot be read: Expecting value"],
    "evaluate odd": ["error: odd/overrides.json: expected a list, got 3\n"],
    "train right.py --resume --run-dir odd": ["odd/overrides.json: expected a list"],
    "train right.py --resume --run-dir torn": ["torn/config.json: cannot be read: "],
    "train right.py --resume --run-dir listed": ["listed/config.json: expected a dict"],
    "report begun": ["error: begun: the run has logged nothing yet\n"],
    "report odd": ["error: odd/metrics.jsonl: line 2 is no JSON: Expecting value"],
    "report run --out missing/x.html": ["error: missing/x.html: cannot be written: No"],
    "evaluate run --json run": ["error: run: cannot be written: Is a directory\n"],
    "evaluate run --json missing/x.json": [
        "error: missing/x.json: cannot be written: "
    ],
    "evaluate run --json right.py/below/a.file": [UNWRITABLE.format("written")],
    "report run --out right.py/below/a.file": [UNWRITABLE.format("written")],
    "robustness run --out right.py/below/a.file": [UNWRITABLE.format("made")],
    "train right.py --run-dir right.py/below/a.file": [
        "error: right.py/below/a.file: no run can be kept there: ",
        "Not a directory",
    ],
    "sweep right.py --run-dir right.py/below/a.file": [
        "error: right.py/below/a.file: no run can be kept there: ",
        "Not a directory",
    ],
    "train right.py --run-dir notes.txt": ["error: notes.txt: no run can be kept ther"],
    "train right.py --run-dir /proc/x": ["error: /proc/x: no run can be kept there: "],
}
MISTAKES = WRITTEN | FILES | ENVIRONMENTS | PARTS | LINES
SILLY = {
    "Config('HalfCheetah-v4')": "closest",
    "searching('gama', num_minibatches=7)": "Config.num_minibatches",
}


def pretend(home):
    """A copy of the run that says it is one of the other experiment."""
    other = shutil.copytree(home / "run", home / "other")
    shutil.copy(home / "other.py", other / "experiment.py")
    told = json.loads((other / "config.json").read_text())
    told["env.limit"]["value"] = "4"
    (other / "config.json").write_text(json.dumps(told))


def damage(home):
    """Copies of the run, and of its export, in which something is wrong."""
    for name in ("begun", "emptied", "without", "cut", "odd", "torn", "listed"):
        shutil.copytree(home / "run", home / name)
    shutil.rmtree(home / "begun" / "checkpoints")
    (home / "begun" / "metrics.jsonl").unlink()
    for path in (home / "emptied" / "checkpoints").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    (home / "without" / "experiment.py").unlink()
    (home / "cut" / "overrides.json").write_text("[")
    (home / "odd" / "overrides.json").write_text("3")
    (home / "odd" / "metrics.jsonl").write_text("{}\nhello\n")
    (home / "torn" / "config.json").write_text("{")
    (home / "listed" / "config.json").write_text("[]")
    shutil.copytree(home / "swept", home / "scored")
    shutil.rmtree(home / "scored" / "batches" / "001" / "checkpoints")
    for name in ("newer", "changed"):
        shutil.copytree(home / "exported", home / name)
    told = json.loads((home / "newer" / "policy.json").read_text())
    (home / "newer" / "policy.json").write_text(json.dumps(told | {"version": 2}))
    (home / "changed" / "policy.npz").write_bytes(b"")


def answers(lines, home):
    """The exit status and the text of many command lines, offline."""
    with contextlib.chdir(home), mock.patch.dict(os.environ, OFFLINE):
        done = [called(*words) for words in lines]
    urllib.request.install_opener(None)  # The one that is kept stays offline.
    return [(one.returncode, one.stdout + one.stderr) for one in done]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder of experiments and runs, right ones and others."""
    home = tmp_path_factory.mktemp("mistakes")
    right = EXPERIMENT.format(memory="").replace("hidden=()", "hidden=(8,)")
    (home / "right.py").write_text(right)
    (home / "other.py").write_text(right.replace("limit=5", "limit=4"))
    turned = "import dataclasses\nterms = config.terms[::-1]\n"
    turned += "config = dataclasses.replace(config, terms=terms)\n"
    (home / "turned.py").write_text(right + turned)
    (home / "notes.txt").write_text("no program")
    (home / "bytes.py").write_bytes(bytes(range(256)))
    (home / "folder").mkdir()
    lines = (
        "train right.py --run-dir run",
        "sweep right.py --seeds 1 --run-dir swept",
        "export run --format numpy --out exported",
    )
    for status, text in answers(map(shlex.split, lines), home):
        assert status == 0, text
    pretend(home)
    damage(home)
    return home


@pytest.fixture(scope="module")
def told(home):
    """By mistake: its experiment, if it is one, the status and the text."""
    texts = {line: f"{BEGINNING}config = {line}\n" for line in WRITTEN}
    texts |= {text: text for text in FILES}
    texts |= {change: WALK.replace(*change) for change in ENVIRONMENTS}
    texts |= {mine: part(*mine) for mine in PARTS}
    paths = {mistake: f"{i}.py" for i, mistake in enumerate(texts)}
    for mistake, text in texts.items():
        (home / paths[mistake]).write_text(text)
    asked = {mistake: ["train", path] for mistake, path in paths.items()}
    for mistake in PARTS:  # They are found when a program is made of them.
        asked[mistake] += ["--run-dir", f"{paths[mistake]}.run"]
    asked |= {line: shlex.split(line) for line in LINES}
    found = answers(asked.values(), home)
    return {
        mistake: (paths.get(mistake), *ending)
        for mistake, ending in zip(asked, found, strict=True)
    }


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda x: str(x).strip()[-60:])
def test_a_mistake_is_told(told, mistake):
    """R-E1: what no critic predicts is no constraint, nor is what cannot be told apart.

    A message that begins with `error:` is the first thing that is said.
    """
    path, status, text = told[mistake]
    assert status == 2, text
    assert "Traceback" not in text and not re.search(r'File ".*site-packages', text)
    assert "at once" not in text  # A sweep has compiled its programs.
    if mistake in ENVIRONMENTS:  # And nothing was made.
        assert text.startswith("error: Walk(limit=4): ")
    for said in MISTAKES[mistake]:
        said = said.replace("{path}", str(path)).replace("{line}", str(LINE))
        found = text[: len(said)] if said.startswith("error: ") else text
        assert said in found, text
    if mistake in SILLY:
        assert SILLY[mistake] not in text


def test_a_mistake_leaves_nothing_behind(told, home):
    """No run that was not to be, in the place where it goes by itself.

    What reads a directory without checkpoints makes no place for any.
    """
    assert len(told) >= 150 and not (home / "runs").exists()
    assert not any((home / x / "checkpoints").exists() for x in ("begun", "swept"))


ODD = """
config = changed(
    terms=(terms.Value(), terms.Value()),
    pbt=PBT(
        {
            "optimizer.learning_rate": LogUniform(1e-4, 1e-2),
            "gamma": Uniform(0.9, 0.999),
        },
        size=4,
        interval=8,
        fitness=pbt.Minimize("train/value_loss"),
    ),
)
"""


def test_what_is_odd_is_told_in_a_line_and_trains(tmp_path):
    """A population of four too, with no rule of selection of its own."""
    path, run_dir = tmp_path / "experiment.py", tmp_path / "run"
    path.write_text(BEGINNING + ODD)
    done = called("train", path, "--run-dir", run_dir)
    assert done.returncode == 0, done.stderr
    expected = (
        "PBT.space: gamma: two steps by its factor cross Uniform(",
        "Config.terms: none says what the policy should do, only Value",
        "Config.terms: 2 of Value add up",
    )
    lines = done.stderr.splitlines()
    assert len(lines) == len(expected), done.stderr
    for line, beginning in zip(lines, expected, strict=True):
        assert line.startswith(f"warning: {beginning}")
    rows = [json.loads(x) for x in (run_dir / "lineage.jsonl").read_text().splitlines()]
    assert [sum(row["copied"]) for row in rows[1:]] == [1, 1, 1]


FREELY = """
config = changed(
    num_envs=np.int64(4),
    num_steps=np.array(8),
    total_timesteps=7.68e2,
    gamma=np.float32(0.5),
    gae_lambda=1,
    terms=[terms.Surrogate(), terms.Value(), terms.Entropy()],
    network=networks.ActorCritic(networks.Mlp(hidden=[8.0])),
)
"""


def test_what_loses_nothing_is_taken(tmp_path):
    """From Python and from the command line: whole floats, lists, scalars of NumPy."""
    path, run_dir = tmp_path / "experiment.py", tmp_path / "run"
    path.write_text(BEGINNING + FREELY)
    options = ("--num-epochs", "2e0", "--total-timesteps", "6.4e1", "--seed", "3.0")
    done = called("train", path, "--run-dir", run_dir, *options)
    assert done.returncode == 0, done.stderr
    told = experiments.stored(run_dir, "config.json")
    whole = dict(num_envs=4, num_steps=8, num_epochs=2, total_timesteps=64, seed=3)
    assert {name: told[name]["value"] for name in whole} == {
        name: str(value) for name, value in whole.items()
    }
    assert told["gamma"] == {"kind": "number", "value": "0.5"}
    assert told["gae_lambda"] == {"kind": "number", "value": "1.0"}
    assert told["network.torso.hidden"]["value"] == "(8,)"
    assert told["terms.value.type"]["value"] == "Value"
