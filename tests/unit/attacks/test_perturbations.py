"""Attacks: the ball, the bounds, independence of samples, and how strong they are."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ppo_jax.attacks.norms import L2, LInf
from ppo_jax.attacks.perturbations import Attack, Fgsm, Noise, Pgd
from ppo_jax.component import as_arrays, component
from ppo_jax.errors import Misfit
from ppo_jax.schedules import Cosine, Linear, Ramp

EPS = 0.25
NORMS = [LInf(), L2()]
ATTACKS = [
    kind(eps=EPS, norm=norm, **numbers)
    for norm in NORMS
    for kind, numbers in [
        (Noise, {}),
        (Fgsm, {}),
        (Pgd, {"steps": 5, "start": 0.0}),
        (Pgd, {"steps": 5, "step_size": 0.7}),
        (Pgd, {"steps": 2, "step_size": 30.0, "restarts": 3}),
    ]
]


def draws(attack):
    """Whether an attack is random."""
    return isinstance(attack, Noise) or getattr(attack, "start", 0.0) > 0


each_attack = pytest.mark.parametrize("attack", ATTACKS, ids=repr)
each_norm = pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)


def linear(gradient):
    """An objective with a given gradient per sample; leaves `[n, ...]`."""

    def objective(obs):
        parts = jax.tree.map(
            lambda x, g: (x * g).reshape(x.shape[0], -1).sum(axis=-1), obs, gradient
        )
        return sum(jax.tree.leaves(parts))

    return objective


@jax.jit
def against_linear(attack, gradient, obs, key):
    return attack(linear(gradient), obs, key)


@jax.jit
def against_quadratic(attack, centre, obs, key):
    return attack(functools.partial(quadratic, centre), obs, key)


def quadratic(centre, obs):
    """A concave hill per sample, narrow along one diagonal; its top may be far."""
    d = obs - centre
    return -(d.sum(axis=-1) ** 2 + 0.1 * (d**2).sum(axis=-1))


def normal(seed):
    """Nine samples of a grid and a vector."""
    rng = np.random.default_rng(seed)
    shapes = {"grid": (9, 3, 2), "vector": (9, 4)}
    return {name: np.float32(rng.normal(size=shape)) for name, shape in shapes.items()}


def squash(params, obs):
    """A loss per sample of numbers of several types."""
    return jnp.tanh(obs["x"].astype(jnp.float32) @ params + obs["y"]) ** 2 + obs["id"]


@jax.jit
@functools.partial(jax.grad, argnums=(0, 1), has_aux=True)
def against_squash(params, seen, attack, obs, key):
    """Gradients of a loss under attack: directly, and by what the attacker sees."""
    moved = attack(functools.partial(squash, seen), obs, key)
    return squash(params, moved).mean(), moved


def typed(x, y):
    return {"id": np.int32(range(len(y))), "x": np.float16(x), "y": np.float32(y)}


def sizes(norm, delta):
    """Float64 size of the samples of a tree with leaves `[n, ...]`."""
    rows = [np.asarray(x, np.float64).reshape(x.shape[0], -1) for x in delta]
    flat = np.concatenate(rows, axis=1)
    if isinstance(norm, LInf):
        return np.abs(flat).max(axis=1)
    return np.sqrt((flat**2).sum(axis=1))


@each_attack
def test_perturbations_stay_in_the_ball(attack, key):
    """A3, R-A15: also for gradients that are huge, tiny, infinite or NaN."""
    gradients = normal(seed=0)
    gradient = gradients["grid"]
    gradient[1], gradient[2] = 1e38, -1e-38
    gradient[3, 0], gradient[4, 1] = np.inf, np.nan
    gradient[5], gradient[6], gradient[7] = -np.inf, np.nan, 0.0
    obs = jax.tree.map(np.zeros_like, gradients)
    moved = against_linear(as_arrays(attack), gradients, obs, key)
    size = sizes(attack.norm, jax.tree.leaves(moved))
    assert (size <= EPS * (1 + 1e-6)).all()
    assert (size[[0, 1, 2, 3, 4, 8]] > 0).all()


@each_norm
def test_a_non_finite_gradient_counts_as_zero(norm, key):
    """A3, R-A15: only its own component stands still."""
    gradient = np.float32([[np.nan, 1.0, np.inf], [3.0, -np.inf, 4.0]])
    attack = Fgsm(eps=1.0, norm=norm)
    got = against_linear(as_arrays(attack), gradient, np.zeros((2, 3)), key)
    want = [[0, 1, 0], [1, 0, 1] if isinstance(norm, LInf) else [0.6, 0, 0.8]]
    chex.assert_trees_all_close(got, np.array(want), rtol=1e-6)


@each_attack
def test_no_radius_is_no_attack(attack, key):
    """Exactly the true observations, at the same cost."""
    obs = normal(seed=1)
    off = as_arrays(dataclasses.replace(attack, eps=0.0))
    chex.assert_trees_all_equal(against_linear(off, obs, obs, key), obs)


@each_attack
def test_bounds_hold_and_never_break_the_ball(attack, key):
    """A clean observation beyond the bounds moves towards them at most."""
    obs = np.float32([[0.0, 0.9], [-0.9, 0.1], [1.5, -3.0]])
    gradient = np.float32([[1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]])
    bounded = dataclasses.replace(attack, low=-1.0, high=1.0)
    moved = np.asarray(against_linear(as_arrays(bounded), gradient, obs, key))
    assert (np.abs(moved[:2]) <= 1.0 + 1e-6).all()
    assert moved[2, 0] <= 1.5
    assert moved[2, 1] >= -3.0
    assert (sizes(attack.norm, [moved - obs]) <= EPS + 1e-6).all()


def test_one_bound_holds_without_the_other(key):
    obs, gradient = np.float32([[0.0, 0.9]]), np.float32([[-1.0, 1.0]])
    for bounds, expected in (
        ({"high": 0.95}, [-EPS, 0.95]),
        ({"low": -0.1}, [-0.1, 0.9 + EPS]),
    ):
        attack = as_arrays(Fgsm(eps=EPS, **bounds))
        moved = against_linear(attack, gradient, obs, key)
        chex.assert_trees_all_close(moved, np.float32([expected]), rtol=1e-6)


@each_attack
def test_only_floats_are_attacked(attack, key):
    params, obs = np.ones(3, np.float32), typed(np.full((6, 3), 0.1), np.full(6, 0.1))
    _, moved = against_squash(params, params, as_arrays(attack), obs, key)
    chex.assert_trees_all_equal(moved["id"], obs["id"])
    chex.assert_trees_all_equal_dtypes(moved, obs)
    assert (moved["y"] != obs["y"]).any()
    assert (moved["x"] != obs["x"]).any()
    with pytest.raises(ValueError, match="float leaf"):
        attack(lambda obs: obs.astype(jnp.float32), jnp.arange(4), key)


@pytest.mark.parametrize("attack", [a for a in ATTACKS if not draws(a)], ids=repr)
def test_samples_do_not_see_each_other(attack, key):
    """A batch of 64 is 64 batches of 1, and a poisoned sample harms itself only."""
    centre, obs = np.float32(np.random.default_rng(0).normal(size=(2, 64, 2)))
    together = np.asarray(against_quadratic(as_arrays(attack), centre, obs, key))
    for i in (0, 17, 63):
        rows = slice(i, i + 1)
        alone = against_quadratic(as_arrays(attack), centre[rows], obs[rows], key)
        chex.assert_trees_all_close(together[rows], alone, rtol=0, atol=1e-6)
    order = np.random.default_rng(0).permutation(64)
    shuffled = against_quadratic(as_arrays(attack), centre[order], obs[order], key)
    chex.assert_trees_all_close(shuffled, together[order], rtol=0, atol=1e-6)
    centre = np.where(np.arange(64)[:, None] == 5, np.float32(np.nan), centre)
    poisoned = against_quadratic(as_arrays(attack), centre, obs, key)
    chex.assert_trees_all_equal(poisoned[:5], together[:5])
    chex.assert_trees_all_equal(poisoned[5], obs[5])


def test_a_large_batch_does_not_weaken_an_attack(key):
    """Gradients near the smallest float: those of a mean would vanish."""
    gradient = np.full((64, 2), 1e-37)
    for norm, size in ((LInf(), EPS), (L2(), EPS / np.sqrt(2))):
        attack = as_arrays(Fgsm(eps=EPS, norm=norm))
        moved = against_linear(attack, gradient, np.zeros((64, 2)), key)
        chex.assert_trees_all_close(moved, size, rtol=1e-6)


@each_attack
def test_attacks_are_functions_of_their_key(attack, key):
    """On a plain, where nothing but chance moves a sample, as well as on a slope."""
    slope = normal(seed=2)
    for x in slope.values():
        x[::2] = 0
    obs = jax.tree.map(np.zeros_like, slope)
    one, same, other = (
        against_linear(as_arrays(attack), slope, obs, k)
        for k in (key, key, jax.random.key(9))
    )
    chex.assert_trees_all_equal(one, same)
    for x, y in zip(one.values(), other.values(), strict=True):
        assert (x != y).any() == draws(attack)


@each_attack
def test_no_gradient_leaks_from_an_attack(attack, key):
    """A4, R-A15: parameter gradients are those of a constant perturbation."""
    params, rng = np.float32([0.5, -1.0, 2.0]), np.random.default_rng(0)
    obs = typed(rng.normal(size=(6, 3)), rng.normal(size=6))
    attack = as_arrays(attack)
    (direct, leaked), moved = against_squash(params, params, attack, obs, key)
    assert np.abs(moved["x"] - obs["x"]).max() > 0.01
    x = np.asarray(moved["x"], np.float64)
    y = np.tanh(x @ np.asarray(params, np.float64) + moved["y"])
    constant = (2 * y * (1 - y**2)) @ x / len(x)
    chex.assert_trees_all_close(direct, constant, rtol=1e-5)
    chex.assert_trees_all_equal(leaked, 0.0)


def test_one_step_of_pgd_is_fgsm(key):
    """L∞ and L2: a whole step from the clean observation."""
    centre, obs = np.float32(np.random.default_rng(0).normal(size=(2, 64, 2)))
    for norm in NORMS:
        step = Pgd(eps=EPS, norm=norm, steps=1, step_size=1.0, start=0.0)
        got = against_quadratic(as_arrays(step), centre, obs, key)
        want = against_quadratic(as_arrays(Fgsm(eps=EPS, norm=norm)), centre, obs, key)
        chex.assert_trees_all_close(got, want, rtol=0, atol=1e-6)


@each_norm
def test_the_border_is_reached_on_a_linear_problem(norm, key):
    """From anywhere in the ball, if steps · step size allow it."""
    g = np.random.default_rng(0).normal(size=(8, 3))
    attack = Pgd(eps=EPS, norm=norm, steps=40, step_size=0.4)
    got = against_linear(as_arrays(attack), np.float32(g), np.zeros_like(g), key)
    unit = np.sign(g) if isinstance(norm, LInf) else g / sizes(norm, [g])[:, None]
    chex.assert_trees_all_close(got, EPS * unit, rtol=0, atol=2e-4)


def test_convex_objectives_never_fall(key):
    """f(s + δ) ≥ f(s) from the clean observation; more steps are not worse."""
    obs = np.float32(np.random.default_rng(0).normal(size=(32, 3)))

    @jax.jit
    def reached(obs):
        attacks = [Pgd(eps=EPS, steps=steps, start=0.0) for steps in (1, 2, 4)]
        return [attack(lambda x: jnp.cosh(x).sum(-1), obs, key) for attack in attacks]

    values = [np.cosh(moved).sum(axis=-1) for moved in jax.device_get(reached(obs))]
    assert (values[0] >= np.cosh(obs).sum(axis=-1)).all()
    assert (np.diff(values, axis=0) >= -1e-5).all()


@each_norm
def test_pgd_beats_fgsm_beats_noise(norm, key):
    """On a concave problem, against the best point of a fine grid."""
    centre = np.float32(0.6 * np.random.default_rng(0).normal(size=(64, 2)))
    obs, eps = np.zeros_like(centre), 0.5
    reached = {}
    for name, attack in {
        "noise": Noise(eps=eps, norm=norm),
        "fgsm": Fgsm(eps=eps, norm=norm),
        "pgd": Pgd(eps=eps, norm=norm, steps=100, step_size=0.02),
    }.items():
        moved = against_quadratic(as_arrays(attack), centre, obs, key)
        reached[name] = quadratic(centre, np.asarray(moved))
    axis = np.linspace(-eps, eps, 201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    grid = grid[sizes(norm, [grid]) <= eps]
    best = np.array([quadratic(c, grid).max() for c in centre])
    assert reached["pgd"].mean() > reached["fgsm"].mean() + 0.02
    assert reached["fgsm"].mean() > reached["noise"].mean() + 0.02
    assert (reached["pgd"] <= best + 0.01).all()
    assert reached["pgd"].mean() > best.mean() - 0.02


def test_restarts_keep_the_best_of_every_sample(key):
    """Two hills: one start finds the lower one about half of the time."""

    def hills(obs):
        x = obs[..., 0]
        return jnp.exp(-((x - 0.8) ** 2) / 0.02) + 2 * jnp.exp(-((x + 0.8) ** 2) / 0.02)

    @functools.partial(jax.jit, static_argnums=0)
    def highest(restarts, obs):
        attack = Pgd(eps=1.0, steps=20, step_size=0.05, restarts=restarts)
        return jnp.mean(hills(attack(hills, obs, key)) > 1.5)

    obs = np.zeros((200, 1), np.float32)
    assert 0.2 < highest(1, obs) < 0.8
    assert highest(8, obs) > 0.95


def test_a_divergence_needs_a_random_start(key):
    """At the clean observation KL has no gradient."""
    obs = np.float32(np.random.default_rng(0).normal(size=(8, 3)))

    def divergence(x):
        return 0.5 * jnp.square((x - obs) @ np.float32([1.0, -2.0, 3.0]))

    @jax.jit
    def reached(start):
        attack = Pgd(eps=EPS, steps=5, start=start)
        return divergence(attack(divergence, obs, key))

    chex.assert_trees_all_equal(reached(0.0), 0.0)
    chex.assert_trees_all_close(reached(1.0), 0.5 * (6 * EPS) ** 2, rtol=1e-4)


def test_a_sequence_is_attacked_as_a_whole(key):
    """Two batch axes: early observations move for the sake of later losses."""
    obs = jnp.zeros((5, 3, 2))

    def objective(obs):
        memory = jnp.cumsum(obs, axis=0)
        last = jnp.arange(5)[:, None] == 4
        return jnp.where(last, memory @ jnp.array([3.0, -4.0]), 0.0)

    for norm, want in ((LInf(), [EPS, -EPS]), (L2(), [0.6 * EPS, -0.8 * EPS])):
        moved = jax.jit(lambda key, norm=norm: Fgsm(EPS, norm)(objective, obs, key))(
            key
        )
        chex.assert_trees_all_close(moved, np.broadcast_to(want, obs.shape), rtol=1e-5)


def test_members_have_their_own_radius_and_nothing_recompiles(key):
    """ε is a number: one trace for all of them."""
    chex.clear_trace_counter()
    obs = jnp.zeros((4, 2))

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None))
    @chex.assert_max_traces(n=1)
    def attacked(attack, key):
        return jnp.abs(attack(lambda x: x.sum(axis=-1), obs, key)).max()

    for eps in ([0.0, 0.1, 0.3], [0.2, 0.4, 0.0]):
        members = jax.vmap(lambda e: as_arrays(Pgd(e, step_size=1.0)))(jnp.array(eps))
        chex.assert_trees_all_close(attacked(members, key), np.array(eps), rtol=1e-6)


@pytest.mark.parametrize("schedule", [Linear(final=2 / 3), Cosine(final=2 / 3)])
def test_the_radius_falls_with_progress(schedule):
    """From .075 to .05, a pure function that nothing compounds."""
    attack = Pgd(eps=0.075, schedule=schedule)
    eps = [float(attack.at(p).eps) for p in np.linspace(0, 1, 11)]
    chex.assert_trees_all_close(eps[::5], [0.075, 0.0625, 0.05], rtol=1e-6)
    assert (np.diff(eps) < 0).all()
    again = [float(attack.at(p).eps) for p in (0.5, 0.5, 1.0, 2.0)]
    chex.assert_trees_all_close(again, [0.0625, 0.0625, 0.05, 0.05], rtol=1e-6)
    assert attack.at(0.5).at(0.5).eps == attack.at(0.5).eps


def test_the_radius_may_rise_from_zero_after_a_warm_up():
    attack = Fgsm(eps=0.3, schedule=Ramp(initial=0.0, final=1.0, begin=0.1, length=0.6))
    eps = [float(attack.at(p).eps) for p in (0.0, 0.1, 0.4, 0.7, 1.0)]
    chex.assert_trees_all_close(eps, [0.0, 0.0, 0.15, 0.3, 0.3], rtol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fgsm(eps=-0.1),
        lambda: Noise(low=1.0, high=1.0),
        lambda: Pgd(steps=0),
        lambda: Pgd(step_size=0.0),
        lambda: Pgd(start=1.5),
        lambda: Pgd(restarts=0),
        lambda: Pgd(eps=-1.0),
        lambda: Noise(eps=float("inf")),
        lambda: Pgd(step_size=float("inf")),
        lambda: Fgsm(low=float("nan")),
        lambda: Pgd(high=float("nan")),
    ],
)
def test_impossible_numbers_are_errors(make):
    with pytest.raises(ValueError, match=r"\w+\.\w+: expected"):
        make()


@component
class Saying(Attack):
    """Says what it is told to say."""

    words: object = None

    def perturbation(self, problem, key):
        return self.words


WIDE = np.zeros((9, 4), np.float32)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (None, "a list of 1, an array for each float leaf, got None"),
        (WIDE, "a list of 1, an array for each float leaf, got float32"),
        ([], "a list of 1, an array for each float leaf, got a list of 0"),
        ([WIDE, WIDE], "a list of 1, an array for each float leaf, got a list of 2"),
        ([0.1], r"the shape \(9, 4\), that of the observations, got a float"),
        ([WIDE[0]], r"the shape \(9, 4\), that of the observations, got float32\[4\]"),
    ],
)
def test_a_perturbation_is_as_large_as_the_observations(words, said, key):
    """Nothing is spread over observations that an attack did not look at."""
    obs = {"id": np.zeros(9, np.int32), "x": WIDE}
    with pytest.raises(Misfit, match=rf"^Saying\.perturbation: expected {said}"):
        Saying(words=words)(lambda obs: obs["x"].sum(axis=-1), obs, key)


def test_what_has_no_gradient_is_told(key):
    """Whole numbers are harm for attacks that follow none."""
    told = r"^harm: expected floats, as this attack follows their gradient, got int32"
    with pytest.raises(Misfit, match=told):
        Fgsm()(lambda obs: obs.sum(axis=-1).astype(jnp.int32), WIDE, key)
    Noise()(lambda obs: obs.sum(axis=-1).astype(jnp.int32), WIDE, key)
