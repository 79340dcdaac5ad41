"""What other libraries call the fields that experiments have here."""

FIELDS = {
    "env": "env_id env_name environment",
    "num_envs": "n_envs",
    "num_steps": "n_steps unroll_length rollout_length",
    "num_epochs": "n_epochs update_epochs num_updates_per_batch num_sgd_iter",
    "num_minibatches": "batch_size minibatch_size sgd_minibatch_size",
    "gamma": "discount discounting",
    "gae_lambda": "lambda_",
    "standardization": "normalize_advantage norm_adv",
    "obs_clip": "normalize_env normalize_observations norm_obs clip_obs",
    "return_scale": "normalize_rewards norm_reward",
    "network": "policy policy_kwargs agent_kwargs network_factory",
    "actor_obs": "policy_obs_key",
    "critic_obs": "value_obs_key",
    "torso.hidden": "net_arch hidden_layer_sizes policy_hidden_layer_sizes",
    "memory": "lstm_hidden_size",
    "surrogate.clip_eps": "clip_range clip_coef clip_param clipping_epsilon",
    "value.coef": "vf_coef vf_loss_coeff vf_loss_coefficient",
    "value.clip_eps": "clip_range_vf clip_vloss vf_clip_param",
    "entropy.coef": "ent_coef entropy_coeff entropy_cost",
    "early_stop": "target_kl kl_target",
    "learning_rate": "lr",
    "kl_adaptive": "desired_kl kl_threshold",
    "max_grad_norm": "grad_clip",
    "schedule": "anneal_lr lr_schedule learning_rate_schedule",
    "total_timesteps": "num_timesteps",
    "eval_phases": "eval_freq num_evals",
    "eval_episodes": "n_eval_episodes num_eval_envs",
}
"""Names elsewhere, by the end of the path here."""
_HERE = {name: here for here, names in FIELDS.items() for name in names.split()}


def translated(name: str) -> str:
    """Returns what a field is called here, or its name as it is.

    >>> translated("LR"), translated("gamma")
    ('learning_rate', 'gamma')
    """
    return _HERE.get(name.casefold(), name)
