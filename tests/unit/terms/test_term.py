"""What a term may say, and what is said of one that says something else."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from minibatches import SHAPE, context, forward, minibatch, targets

from ppo_jax import Config
from ppo_jax.component import as_arrays, component, program
from ppo_jax.errors import Misfit
from ppo_jax.host.loop import training
from ppo_jax.ppo import learner
from ppo_jax.schedules import Progress
from ppo_jax.terms import Surrogate, Value
from ppo_jax.terms.term import Attacked, Term, evaluated, prepared_by, remembered_by

LOSS, ROLLOUT = jnp.ones(SHAPE), targets(np.zeros((4, 2)))


@component
class Saying(Term):
    """A term that says what it is told to say."""

    words: object = None

    def __call__(self, out, batch, context):
        return self.words

    def prepare(self, memory, rollout):
        return self.words

    def update(self, memory, metrics):
        return self.words


def test_a_term_that_says_nothing_else_does_nothing_else():
    term, memory = Term(), jnp.ones(3)
    assert term.init() == () and term.prepare(memory, ROLLOUT) == ((), {})
    assert term.update(memory, {}) is memory
    assert not term.clips and not term.reads_old_policy and term.says == ()
    assert term.check(None) is None
    with pytest.raises(NotImplementedError, match=r"Term\.__call__: missing"):
        evaluated(term, forward(), minibatch(), context())


def test_what_fits_is_passed_on():
    words = (LOSS, {"a": 2 * LOSS})
    term = Saying(words)
    got = evaluated(term, forward(), minibatch(), context())
    chex.assert_trees_all_equal(got, words)
    examples = {"x": jnp.zeros((4, 2, 5)), "y": jnp.zeros((4, 2), int)}
    words = (examples, {"a": jnp.ones(())})
    chex.assert_trees_all_equal(prepared_by(Saying(words), (), ROLLOUT), words)
    memory = (jnp.ones(()), {"a": jnp.zeros(2, int)})
    chex.assert_trees_all_equal(remembered_by(Saying(memory), memory, {}), memory)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (None, "Saying: expected (loss, dict of metrics), got None"),
        (LOSS, "Saying: expected (loss, dict of metrics), got float32[3, 2]"),
        ((LOSS, {}, {}), "expected (loss, dict of metrics), got a tuple of 3"),
        ((LOSS, LOSS), "expected (loss, dict of metrics), got a tuple of 2"),
        ((LOSS.sum(), {}), "Saying: loss: expected the shape (3, 2), a number per"),
        ((LOSS[:, :1], {}), "Saying: loss: expected the shape (3, 2)"),
        ((LOSS, {"a/b": jnp.ones(3)}), "Saying: a/b: expected the shape (3, 2)"),
        ((LOSS, {"a": 1.0}), "Saying: a: expected the shape (3, 2), a number per ex"),
        ((LOSS, {"step": LOSS}), "Saying: expected metrics with names such as"),
        ((LOSS, {"eval/mean_reward": LOSS}), "warn/, got 'eval/mean_reward'"),
        ((LOSS, {1: LOSS, "a": LOSS}), "warn/, got 1"),
    ],
)
def test_a_loss_and_metrics_are_numbers_per_example(words, said):
    with pytest.raises(Misfit, match=re.escape(said)):
        evaluated(Saying(words), forward(), minibatch(), context())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (None, "Saying.prepare: expected (examples, dict of metrics), got None"),
        ((jnp.ones(4), {}), "arrays whose shape begins with (4, 2), a row per step"),
        (
            (jnp.ones((2, 4)), {}),
            "begins with (4, 2), a row per step, got float32[2,",
        ),
        (((), {"a": jnp.ones((4, 2))}), "Saying.prepare: a: expected the shape ()"),
        (((), {"step": jnp.ones(())}), "Saying.prepare: expected metrics with names"),
        (((), {None: jnp.ones(())}), "warn/, got None"),
    ],
)
def test_what_is_prepared_are_rows_per_step_and_single_numbers(words, said):
    with pytest.raises(Misfit, match=re.escape(said)):
        prepared_by(Saying(words), (), ROLLOUT)


@pytest.mark.parametrize(
    "after", [jnp.ones(3), {"a": jnp.ones(2)}, (), None, jnp.ones(2, complex)]
)
def test_a_memory_keeps_its_shape_and_type(after):
    said = r"Saying\.update: expected float32\[2\] as before, got"
    with pytest.raises(Misfit, match=said):
        remembered_by(Saying(after), jnp.ones(2), {})


@component
class Counting(Term):
    """A term whose memory begins as a plain number."""

    def __call__(self, out, batch, context):
        return jnp.zeros_like(batch.advantage), {}

    def init(self):
        return 0.0

    def update(self, memory, metrics):
        return memory + metrics["train/loss"]


def test_a_memory_may_begin_as_a_plain_number():
    config = Config("CartPole-v1", terms=(Surrogate(), Value(), Counting()))
    run = jax.eval_shape(learner.init, as_arrays(program(config)), jax.random.key(0))
    after, _ = jax.eval_shape(learner.iteration, run, Progress.at(0.0))
    assert after.learner.memories[2] == jax.ShapeDtypeStruct((), jnp.float32)
    chex.assert_trees_all_equal_shapes_and_dtypes(after, run)
    one = jax.eval_shape(training.start, config)
    assert one.runs.learner.memories[2].shape == (1,)


def test_a_memory_that_counts_does_not_become_a_fraction():
    said = r"Saying\.update: expected int32\[\] as before, got float32\[\]"
    with pytest.raises(Misfit, match=said):
        remembered_by(Saying(jnp.ones(())), jnp.zeros((), jnp.int32), {})
    whole = remembered_by(Saying(1), jnp.zeros(()), {})
    assert whole == 1


def test_what_belongs_to_attacked_rows_alone_keeps_its_mean():
    """Weights 1, 3 and 4, of which the last two were attacked: their mean is 5."""
    mask, weight = jnp.array([[False, True, True]]), jnp.array([[1.0, 3.0, 4.0]])
    x = jnp.array([[jnp.nan, 9.0, 2.0]])
    alone = Attacked(None, None, mask, jnp.float32(7 / 8), {}).alone(x)
    chex.assert_trees_all_close(alone, np.array([[0, 9, 2]]) * 8 / 7, rtol=1e-6)
    assert float((weight * alone).sum() / weight.sum()) == pytest.approx(5.0)
