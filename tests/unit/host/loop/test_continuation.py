"""What a run takes over from an agent, what begins anew, and what does not fit."""

import dataclasses
import functools

import chex
import jax
import numpy as np
import pytest
from brief import experiment

from ppo_jax import PBT, Uniform, networks, optimizers
from ppo_jax.critics import Categorical, Quantile
from ppo_jax.envs.probes import IdenticalRewards, Target
from ppo_jax.errors import UserError
from ppo_jax.host.loop import training
from ppo_jax.host.loop.continuation import Continuation
from ppo_jax.normalization.return_scale import ReturnNormalization

CONFIG = experiment(IdenticalRewards(), obs_clip=10.0, seed=1)


@functools.cache
def other():
    """An agent with numbers of its own everywhere, as after some training."""
    learner = jax.device_get(training.start(CONFIG).runs.learner)
    return jax.tree.map(lambda x: x[0] + 1, learner)


def begun(config, optimizer=False):
    continuation = Continuation(config, other(), optimizer)
    members = continuation(config)
    fresh = training.start(config)
    chex.assert_trees_all_equal(members.runs.actor, fresh.runs.actor)
    chex.assert_trees_all_equal(members.runs.learner.config, fresh.runs.learner.config)
    return continuation.anew, members.runs.learner, fresh.runs.learner


def same(found, expected):
    chex.assert_trees_all_equal(jax.tree.map(lambda x: x[0], found), expected)


def test_parameters_and_statistics_are_taken_over():
    """The optimiser only if asked for; numbers are those of the experiment."""
    config = dataclasses.replace(CONFIG, gamma=0.5, seed=2)
    for optimizer in (False, True):
        anew, learner, fresh = begun(config, optimizer)
        assert not anew
        same(learner.params, other().params)
        same(learner.obs_moments, other().obs_moments)
        same(learner.return_scale, other().return_scale)
        if optimizer:
            same(learner.opt_state, other().opt_state)
        else:
            chex.assert_trees_all_equal(learner.opt_state, fresh.opt_state)


def bodies(params):
    """All but the last layers."""
    heads = params["critic"]["heads"]
    body = {k: x for k, x in heads.items() if k != "head"}
    return params["actor"]["trunk"], body


@pytest.mark.parametrize(
    ("changes", "name", "kept"),
    [
        ({"env": Target()}, "head of the policy", lambda x: x["critic"]),
        ({"critic": Quantile(4)}, "heads of the critics", lambda x: x["actor"]),
    ],
)
def test_a_head_that_does_not_fit_begins_anew(changes, name, kept):
    """All else is taken over, the other head too; in the optimiser as well."""
    anew, learner, fresh = begun(dataclasses.replace(CONFIG, **changes), True)
    assert anew == [name]
    same(bodies(learner.params), bodies(other().params))
    same(kept(learner.params), kept(other().params))
    drawn, found = (
        (x.params["actor"]["head"], x.params["critic"]["heads"]["head"])
        for x in (fresh, learner)
    )
    assert sum(map(equal, drawn, found)) == 1


def equal(*trees):
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, *jax.device_get(trees))))


def test_members_all_begin_with_the_same():
    space = {"optimizer.learning_rate": Uniform(1e-4, 1e-2)}
    config = dataclasses.replace(CONFIG, pbt=PBT(space, size=4))
    _, learner, fresh = begun(config)
    assert len(set(fresh.config.optimizer.learning_rate.tolist())) == 4
    for member in range(4):
        found = jax.tree.map(lambda x, i=member: x[i], learner.params)
        chex.assert_trees_all_equal(found, other().params)


def test_statistics_that_only_one_of_them_has_begin_anew():
    anew, learner, _ = begun(dataclasses.replace(CONFIG, obs_clip=None))
    assert anew == ["statistics of observations"] and learner.obs_moments == ()


def test_the_scale_goes_with_the_heads_that_it_was_for():
    """Critics that begin anew, of returns as they are, see them as they are."""
    scaled = dataclasses.replace(CONFIG, return_scale=ReturnNormalization())
    agent = jax.device_get(training.start(scaled).runs.learner)
    agent = jax.tree.map(lambda x: x[0] + 1, agent)
    fixed = dataclasses.replace(CONFIG, critic=Categorical(5, 0.0, 500.0))
    continuation = Continuation(fixed, agent)
    assert continuation.anew == ["heads of the critics", "scale of returns"]
    begun, fresh = (x(fixed).runs.learner for x in (continuation, training.start))
    chex.assert_trees_all_equal(begun.return_scale, fresh.return_scale)
    moving = dataclasses.replace(scaled, critic=Quantile(4))
    continuation = Continuation(moving, agent)
    assert continuation.anew == ["heads of the critics"]
    same(continuation(moving).runs.learner.return_scale, agent.return_scale)


@pytest.mark.parametrize(
    ("changes", "optimizer", "said"),
    [
        (
            {"network": networks.ActorCritic(torso=networks.Mlp(hidden=(16,)))},
            False,
            "params.actor.trunk.torso._Layers_0.Dense_0.kernel: float32[1, 8] there, "
            "float32[1, 16] here",
        ),
        (
            {"network": networks.ActorCritic(torso=networks.Mlp(hidden=(8, 8)))},
            False,
            "absent there, float32[8, 8] here",
        ),
        ({"num_critics": 2}, False, "params.critic.heads."),
        ({"optimizer": optimizers.UPGD()}, True, "opt_state."),
    ],
)
def test_other_shapes_are_named(changes, optimizer, said):
    with pytest.raises(
        UserError, match="expected an agent with the shapes of"
    ) as caught:
        Continuation(dataclasses.replace(CONFIG, **changes), other(), optimizer)
    assert said in str(caught.value)
