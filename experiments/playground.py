"""Tasks of the DeepMind control suite in MuJoCo Playground, by one setting for all.

    python -m ppo_jax.train experiments/playground.py --env.env.id ReacherEasy

It needs `pip install 'ppo_jax[playground]'`. All episodes last 1000 steps, so one start
per environment and rollout is enough. Discount, entropy bonus and normalised
observations are those of Playground's own setting, which takes a million steps for an
update; here it is 4096. What is solved hardly varies in its returns: `min_std` bounds
how far their scale magnifies that.

Of eight seeds, expect 1000 of 1000 in `CartpoleBalance` after 2 000 000 steps, and
after 500 000 490 in `ReacherEasy`, from 250 to 760, and 350 in `CheetahRun`
(docs/results.md). The first two take two or three minutes of training for all seeds, on
two cores, and `CheetahRun` an hour.
"""

from ppo_jax import Config, ReturnNormalization, envs, optimizers, terms

config = Config(
    env=envs.ResetPool("playground/CartpoleBalance", size=1),
    total_timesteps=2_000_000,
    num_envs=64,
    num_steps=64,
    num_epochs=8,
    num_minibatches=8,
    gamma=0.995,
    gae_lambda=0.95,
    obs_clip=10.0,
    return_scale=ReturnNormalization(min_std=10.0),
    terms=(terms.Surrogate(), terms.Value(), terms.Entropy(coef=0.01)),
    optimizer=optimizers.Adam(learning_rate=5e-4),
    eval_phases=20,
    eval_episodes=16,
)
