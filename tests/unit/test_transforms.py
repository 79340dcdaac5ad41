"""One contract for every transformation: adding one is adding a line."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ppo_jax.host.run_dir.checkpoint import Checkpointer
from ppo_jax.transforms import kl_adaptive, noise, upgd, vgs

KEY = jax.random.key(3)
STATIC = ("inner", "statistic", "aggregate", "noise_scale", "normalize")
STATIC += ("combine", "sampler")


def gated(inner, **settings):
    return functools.partial(upgd.gate_by_utility, inner=inner, **settings)


FACTORIES = {
    "vgs": functools.partial(vgs.scale_by_variance, warmup_steps=2),
    "vgs_elementwise": functools.partial(
        vgs.scale_by_variance,
        warmup_steps=2,
        statistic=vgs.elementwise,
        aggregate=vgs.pooled,
    ),
    "upgd": gated(optax.identity()),
    "adaptive_upgd": gated(optax.scale_by_adam(), noise_scale=noise.relative),
    "upgd_paper": gated(
        optax.identity(), normalize=upgd.global_max, combine=upgd.non_protecting
    ),
    "kl_adaptive": functools.partial(kl_adaptive.scale_by_kl, target=0.01),
}
BETAS = (0.5, 0.9, 0.99)
TUNED = {
    vgs.scale_by_variance: {"alpha": (0.0, 0.1, 0.4), "beta": BETAS},
    upgd.gate_by_utility: {"sigma": (0.0, 0.1, 0.4), "beta": BETAS},
    kl_adaptive.scale_by_kl: {"floor": (0.05, 0.1, 0.4), "step": (1.1, 1.5, 2.0)},
}
"""Two numbers of what makes transformations, which members differ in."""
KL = 0.7  # Further than the target: factors become less, down to a floor.
CLOSE = {"rtol": 2e-5, "atol": 1e-7}
PARAMS = {"a": jnp.linspace(-1, 1, 6).reshape(2, 3), "b": {"c": jnp.array(0.5)}}
jitted_metrics = jax.jit(upgd.upgd_metrics)


@pytest.fixture(params=FACTORIES, ids=str)
def name(request):
    return request.param


@pytest.fixture
def factory(name):
    return FACTORIES[name]


@functools.cache
def made(name):
    return FACTORIES[name]()


@pytest.fixture
def tx(name):
    """One for all tests, which so have its compiled updates in common."""
    return made(name)


def tuned(name):
    """Two numbers of a transformation, with three values each."""
    return TUNED[FACTORIES[name].func]


@jax.jit
def gradient(params, t):
    """A gradient that changes over time, in the dtype of the parameters."""
    return jax.tree.map(lambda w: (w * 0.3 + jnp.sin(w + t)).astype(w.dtype), params)


def drive(tx, params=PARAMS, steps=6, state=None, start=0, wrap=lambda f: f, **extra):
    state = tx.init(params) if state is None else state
    update = wrap(tx.update)
    for t in range(start, start + steps):
        extra |= {"key": KEY, "kl": KL}
        updates, state = update(gradient(params, t), state, params, **extra)
    return updates, state


def scanned(tx):
    """As `drive`, in one loop of a program."""

    def step(state, t):
        updates, state = tx.update(gradient(PARAMS, t), state, PARAMS, key=KEY, kl=KL)
        return state, updates

    state, updates = jax.lax.scan(step, tx.init(PARAMS), jnp.arange(6.0))
    return jax.tree.map(lambda x: x[-1], updates), state


def types(tree):
    return jax.tree.map(
        lambda x: (jnp.shape(x), x.dtype, jax.typeof(x).weak_type), tree
    )


def test_jit_and_scan(tx):
    eager = drive(tx)
    chex.assert_trees_all_close(drive(tx, wrap=jax.jit), eager, **CLOSE)
    updates, state = jax.jit(scanned, static_argnums=0)(tx)
    chex.assert_trees_all_close((updates, state), eager, **CLOSE)
    assert types(state) == types(tx.init(PARAMS))


def test_populations_with_their_own_numbers(name, factory):
    """Members of one program equal transformations of their own."""

    def member(numbers):
        return scanned(factory(**numbers))

    members = {name: np.float32(values) for name, values in tuned(name).items()}
    together = jax.device_get(jax.jit(jax.vmap(member))(members))
    for i in range(3):
        alone = drive(factory(**{name: float(x[i]) for name, x in members.items()}))
        chex.assert_trees_all_close(
            jax.tree.map(lambda x, i=i: x[i], together), alone, rtol=1e-4, atol=1e-6
        )


def test_bfloat16_parameters_have_float32_statistics(tx):
    params = optax.tree.cast(PARAMS, jnp.bfloat16)
    updates, state = drive(tx, params)
    chex.assert_type(jax.tree.leaves(updates), jnp.bfloat16)
    statistics = [x for x in jax.tree.leaves(state) if x.dtype != jnp.int32]
    assert statistics
    chex.assert_type(statistics, jnp.float32)
    assert types(state) == types(tx.init(params))
    exact, _ = drive(tx, optax.tree.cast(params, jnp.float32))
    chex.assert_trees_all_close(
        optax.tree.cast(updates, jnp.float32), exact, rtol=0.05, atol=0.01
    )


@pytest.mark.parametrize("params", [{}, (), jnp.array(0.5)], ids=["{}", "()", "scalar"])
def test_an_empty_tree_and_a_scalar_leaf(tx, params):
    """Modules 2.8.14."""
    updates, state = drive(tx, params)
    chex.assert_trees_all_equal_structs(updates, params)
    chex.assert_tree_all_finite((updates, state))


def test_extra_args_pass(tx):
    assert isinstance(tx, optax.GradientTransformationExtraArgs)
    chain = optax.chain(tx, optax.scale(1.0))
    updates, (state, _) = drive(chain, value=1.0, anything="else")
    chex.assert_trees_all_equal((updates, state), drive(tx))


def test_inject_hyperparams(name, factory, tx):
    """A number that was changed in the state is in force at the next step."""
    kind, first = FACTORIES[name].func, next(iter(tuned(name)))
    static = [s for s in STATIC if s in kind.__code__.co_varnames]
    injected = optax.inject_hyperparams(kind, static_args=static)(**factory.keywords)
    updates, state = drive(injected)
    chex.assert_trees_all_close((updates, state.inner_state), drive(tx), **CLOSE)
    state.hyperparams[first] = jnp.float32(0.7)
    updates, state = drive(injected, state=state, steps=2)
    _, expected = drive(tx)
    expected, _ = drive(factory(**{first: 0.7}), state=expected, steps=2)
    chex.assert_trees_all_close(updates, expected, rtol=1e-4, atol=1e-6)


def test_donated_buffers(tx):
    def donate(f):
        return jax.jit(f, donate_argnums=1)

    state = jax.jit(tx.init)(PARAMS)
    chex.assert_trees_all_close(drive(tx, state=state, wrap=donate), drive(tx), **CLOSE)
    assert jax.tree.leaves(state)[0].is_deleted()


@pytest.mark.parametrize("count", [10**7, 2**31 - 2, 2**31 - 1])
def test_late_steps(tx, count):
    """R-A8, U7, modules 2.8.13: counts saturate and corrections are 1."""
    _, state = drive(tx)
    late = jax.tree.map(
        lambda x: np.full_like(x, count) if x.dtype == jnp.int32 else x, state
    )
    updates, after = drive(tx, state=late, steps=3, wrap=jax.jit)
    if "count" in after._fields:
        assert int(after.count) == min(count + 3, 2**31 - 1)
    chex.assert_tree_all_finite((updates, after))
    if isinstance(state, upgd.GateByUtilityState):
        metrics = jitted_metrics(after, 0.999)
        largest = max(map(np.max, jax.tree.leaves(after.utility)))
        chex.assert_trees_all_close(metrics["upgd/utility_max"], largest, rtol=1e-6)


def test_a_restored_state_goes_on_bit_exactly(tx, tmp_path):
    """R-A7, U6, V7, modules 1.7.11, 2.8.15: noise goes on too."""
    _, state = drive(tx, steps=3, wrap=jax.jit)
    checkpoints = Checkpointer(tmp_path)
    checkpoints.save(3, state, 0.0, {"update": 3})
    checkpoints.close()
    _, restored, _ = Checkpointer(tmp_path).restore(jax.tree.map(jnp.zeros_like, state))
    chex.assert_trees_all_equal(restored, state)
    restored = jax.device_get(restored)
    rest = drive(tx, state=restored, start=3, steps=3, wrap=jax.jit)
    chex.assert_trees_all_equal(
        rest, drive(tx, state=state, start=3, steps=3, wrap=jax.jit)
    )


def test_states_are_short_where_floats_are_long_by_default(tx):
    """With `jax_enable_x64`: a scan wants a state of the same types after a step."""
    with jax.enable_x64(True):
        params = optax.tree.cast(PARAMS, jnp.float32)
        state = tx.init(params)
        step = functools.partial(tx.update, key=KEY, kl=jnp.float64(KL))
        _, after = jax.eval_shape(step, params, state, params)
        chex.assert_trees_all_equal_shapes_and_dtypes(state, after)
        types = {x.dtype for x in jax.tree.leaves(after)}
    assert types <= {jnp.dtype("float32"), jnp.dtype("int32")}
