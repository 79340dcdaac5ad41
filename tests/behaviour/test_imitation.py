"""Learning from demonstrations, by itself and through real updates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tabular
from runs import EXPERIMENT, called, rows
from scipy import special

from ppo_jax import Config, networks, optimizers
from ppo_jax.envs.probes import NestedObservation, RecallCue, Target
from ppo_jax.host.run_dir.description import describe
from ppo_jax.ppo import acting, population
from ppo_jax.schedules import Progress
from ppo_jax.terms import Demonstrations, Imitation, Sequences

CARDS = np.eye(4)


def experiment(env, demonstrations, **changes):
    fields = {
        "env": env,
        "num_envs": 8,
        "num_steps": 8,
        "terms": (Imitation(demonstrations),),
        "optimizer": optimizers.Adam(learning_rate=2e-2),
    }
    return Config(**fields | changes)


def trained(config, coefs=(1.0,)):
    """Parameters and learners from the same key, who imitate so much and no more."""
    keys = jnp.broadcast_to(jax.random.key(0), len(coefs))
    members = population.init(config, keys)
    members = population.with_numbers(
        members, {"terms.imitation.coef": np.float32(coefs)}
    )
    before = jax.tree.map(np.array, members.runs.learner.params)
    progress = Progress.of(np.arange(100), 100)
    members, said = population.advance(members, progress, jnp.int32(100))
    assert said["error/skipped_steps"].sum() == 0
    return before, jax.device_get(members.runs.learner)


@pytest.fixture(scope="module")
def begun():
    """Before an update of one step, in parts, towards those who contradict each other.

    To the second card the one answers with the last action, three times as much as the
    other one does with the first.
    """
    demonstrations = Demonstrations(CARDS[[1, 1]], [2, 0], weight=[3.0, 1.0])
    config = tabular.experiment(
        terms=(Imitation(demonstrations, coef=0.4),), num_epochs=1, num_microbatches=2
    )
    return tabular.first(config)


def test_an_update_by_hand(begun):
    """One step towards what was drawn, as its loss says; no weight is absolute."""
    before = np.asarray(begun.learner.params["actor"]["head"]["kernel"], np.float64)
    after, metrics, _ = tabular.update(begun)
    answers, weights = [2, 0], np.array([1.5, 0.5])
    one, other = -0.4 * weights * special.log_softmax(before[1])[answers]
    share = (metrics["train/imitation_loss"] - other) / (one - other)
    assert 0.2 < share < 0.8
    pulls = np.eye(3)[answers] - special.softmax(before[1])
    expected = before.copy()
    expected[1] += 0.5 * 0.4 * (weights * [share, 1 - share]) @ pulls
    kernel = after.learner.params["actor"]["head"]["kernel"]
    np.testing.assert_allclose(kernel, expected, rtol=1e-5)
    critics = (x.learner.params["critic"] for x in (begun, after))
    jax.tree.map(np.testing.assert_array_equal, *critics)


def test_members_draw_demonstrations_of_their_own(begun):
    """Of the same parameters, each key imitates another share of the two."""
    keys = jax.random.split(jax.random.key(1), 6)
    each = [tabular.update(begun.replace(key=key))[1] for key in keys]
    losses = [float(metrics["train/imitation_loss"]) for metrics in each]
    assert len(set(losses)) > 1


def test_weights_are_those_of_the_examples(begun):
    """Who contradict each other are followed by their weights, at every draw anew."""
    run = begun
    for _ in range(180):
        run, *_ = tabular.update(run)
    policy = special.softmax(run.learner.params["actor"]["head"]["kernel"][1])
    np.testing.assert_allclose(policy, [0.25, 0.0, 0.75], atol=0.08)
    each = [tabular.update(x) for x in (run, run.replace(key=begun.key))]
    losses = [metrics["train/imitation_loss"] for _, metrics, _ in each]
    assert losses[0] != losses[1]


OPPOSITE = np.linspace(-1, 1, 41)[:, None]
"""What is seen; what is to be done is −1 times that."""


@pytest.fixture(scope="module", params=[networks.TanhHead(), networks.GaussianHead()])
def imitators(request):
    """Before and after; of three members the first one does not imitate."""
    config = experiment(
        Target(),
        Demonstrations(OPPOSITE, -OPPOSITE),
        obs_clip=10.0,
        network=networks.ActorCritic(torso=networks.Mlp(hidden=()), head=request.param),
    )
    return config, *trained(config, (0.0, 1.0, 1.0))


def test_observations_and_actions_are_those_of_the_environment(imitators):
    """A policy of normalised observations and squashed actions learns a = −obs."""
    config, _, learners = imitators
    learner = jax.tree.map(lambda x: x[1], learners)
    shown = acting.observe(learner, jnp.asarray(OPPOSITE[None], jnp.float32))
    reset = jnp.ones((1, 41), bool)
    policy = config.build().apply(learner.params, (), shown, reset).policy
    done = policy.to_action(policy.mode())[0]
    np.testing.assert_allclose(done, -OPPOSITE, atol=0.1)
    assert abs(learner.obs_moments.mean).max() < 0.3


def test_members_imitate_as_much_as_they_shall(imitators):
    """A coefficient is a number; 0 is as if there were no demonstrations."""
    _, before, after = imitators
    old, new = (jax.tree.leaves(x["actor"]) for x in (before, after.params))
    for a, b in zip(old, new, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_allclose(b[1], b[2], atol=1e-6)
    assert any((a[1] != b[1]).any() for a, b in zip(old, new, strict=True))


RECALL = """
import numpy as np
from ppo_jax import Config, networks, optimizers
from ppo_jax.envs.probes import RecallCue
from ppo_jax.terms import Imitation, Sequences

cues, blanks = (x.ravel() for x in np.meshgrid([0, 1], [0, 1, 2]))
every, query, time = np.arange(6), blanks + 1, np.arange(4)[:, None]
obs = np.zeros((4, 6, 3))
obs[0] = np.eye(3)[cues]
obs[query, every] = np.eye(3)[2]
action = np.where(time == query, cues, 0)

config = Config(
    env=RecallCue(delay=2),
    num_envs=8,
    num_steps=8,
    num_minibatches=2,
    network=networks.ActorCritic(
        torso=networks.Mlp(hidden=()), memory=networks.Gru(size=8), shared=True
    ),
    terms=(Imitation(Sequences(obs, action, weight=time == query)),),
    optimizer=optimizers.Adam(learning_rate=2e-2),
    total_timesteps=64 * 50,
    phase_updates=50,
    eval_phases=1,
    eval_episodes=64,
)
"""
"""All cues and all numbers of blanks; only what the query is answered counts."""


def test_a_memory_learns_from_sequences(tmp_path):
    """Nothing but six episodes of an expert teaches to recall every cue.

    What imitates them has a number that is an option, beside arrays that no option can
    give; the run is trained and resumed.
    """
    path = tmp_path / "experiment.py"
    path.write_text(RECALL)
    options = ("--run-dir", tmp_path / "run", "--terms.imitation.coef", 0.25)
    assert called("train", path, *options).returncode == 0
    again = called("train", path, *options, "--resume", "--total-timesteps", 64 * 100)
    assert again.returncode == 0, again.stderr
    told = rows(tmp_path / "run")
    assert [row["error/skipped_steps"] for row in told] == [0, 0]
    assert told[-1]["eval/mean_reward"] == 1


def test_the_same_demonstrations_are_the_same_program():
    """Equal content: nothing compiles again; another number: another experiment."""
    first, same, other = (
        experiment(Target(), Demonstrations(np.full((2, 1), x), np.zeros((2, 1))))
        for x in (0.5, 0.5, 0.25)
    )
    assert jax.tree.structure(first) == jax.tree.structure(same)
    assert hash(jax.tree.structure(first)) == hash(jax.tree.structure(same))
    assert jax.tree.structure(first) != jax.tree.structure(other)
    assert describe(first) == describe(same) != describe(other)
    obs = np.zeros((2, 1))
    demonstrations = Demonstrations(obs, obs)
    obs[:] = 1.0
    assert demonstrations == Demonstrations(np.zeros((2, 1)), np.zeros((2, 1)))


POINT = np.zeros((3, 1))
NAN = np.full((3, 1), np.nan)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Demonstrations(POINT[:2], POINT), r"obs: expected .* \(3,\), got"),
        (lambda: Demonstrations({"x": NAN}, POINT), r"obs\['x'\]: expected finite"),
        (lambda: Demonstrations(POINT, NAN), "action: expected finite"),
        (lambda: Demonstrations(POINT, POINT, [0, 0, 0]), "not all of them 0"),
        (lambda: Demonstrations(POINT, POINT, [1, -1, 1]), "numbers ≥ 0"),
        (lambda: Demonstrations(POINT, POINT, [1]), "weight: expected"),
        (lambda: Demonstrations(POINT[:0], POINT[:0]), "not all of them 0"),
        (lambda: Sequences(POINT[:, 0], POINT[:, 0]), "2 leading axes"),
        (lambda: Imitation(Demonstrations(POINT, POINT), coef=-1.0), "coef"),
    ],
)
def test_impossible_demonstrations_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


GRU = networks.ActorCritic(memory=networks.Gru(size=4))


@pytest.mark.parametrize(
    ("env", "demonstrations", "changes", "message"),
    [
        (Target(), Demonstrations(POINT, POINT), {"network": GRU}, "Sequences, for"),
        (Target(), Sequences(POINT[None], POINT[None]), {}, "no Sequences"),
        (
            Target(size=2),
            Demonstrations(POINT, POINT),
            {},
            r"obs: .*\(2,\), got \(1,\)",
        ),
        (Target(), Demonstrations(POINT, POINT[:, 0]), {}, "action: expected"),
        (Target(), Demonstrations(POINT, POINT + 3), {}, "action: expected"),
        (RecallCue(), Demonstrations(np.zeros((3, 3)), [0, 1, 2]), {}, "action"),
        (RecallCue(), Demonstrations(np.zeros((3, 3)), [0.0, 1, 1]), {}, "action"),
        (NestedObservation(), Demonstrations(POINT, [0, 1, 1]), {}, "obs: expected"),
    ],
)
def test_demonstrations_of_something_else_are_errors(
    env, demonstrations, changes, message
):
    with pytest.raises(ValueError, match=message):
        experiment(env, demonstrations, **changes)


MORE = """
import dataclasses
import numpy as np
from ppo_jax.terms import Demonstrations, Imitation

imitation = Imitation(Demonstrations(np.zeros((2, {size})), [0, 1]))
config = dataclasses.replace(config, terms=(imitation,))
"""


@pytest.mark.parametrize(
    ("size", "options", "status", "message"),
    [
        (3, (), 2, "Demonstrations.obs: expected observations of shapes (1,)"),
        (
            1,
            ("--terms.imitation.demonstrations", "x"),
            2,
            "given in the experiment's file",
        ),
    ],
)
def test_what_a_user_is_told(tmp_path, size, options, status, message):
    path = tmp_path / "experiment.py"
    path.write_text(EXPERIMENT.format(memory="") + MORE.format(size=size))
    done = called("train", path, "--run-dir", tmp_path / "run", *options)
    assert done.returncode == status
    said = " ".join((done.stdout + done.stderr).replace("│", " ").split())
    assert message in said and "Traceback" not in said
