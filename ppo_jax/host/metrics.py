"""What the host says: evaluations, time and populations."""

import functools

from ppo_jax.metrics.rows import host

EVALUATED = "an evaluation in this phase"
NOBODY = "it is so for all members"
SEARCHED = "`pbt`, in a generation"
MANY = "more than one member"
evaluated = functools.partial(host, needs=EVALUATED)
searched = functools.partial(host, needs=SEARCHED)

HOSTED = (
    evaluated("eval/mean_reward", "reward", "Mean return."),
    evaluated("eval/std_reward", "reward", "Deviation of returns."),
    evaluated("eval/median_reward", "reward", "Their median."),
    evaluated("eval/q25_reward", "reward", "Lower quartile."),
    evaluated("eval/q75_reward", "reward", "Upper quartile."),
    evaluated("eval/cvar_5_reward", "reward", "Mean of the worst 5 %."),
    evaluated("eval/episodes", "episodes", "How many."),
    evaluated("eval/unfinished_episodes", "episodes", "Given up at their limit."),
    host("time/fps", "steps / s", "Environment steps per second, once compiled."),
    host("time/compiling", "s", "Until the programs of the phase were compiled."),
    host("time/iterations", "updates", "Updates done."),
    host("time/total_timesteps", "steps", "Environment steps done."),
    host("time/time_elapsed", "s", "Since the run began."),
)
EVALUATIONS = tuple(row.name for row in HOSTED if row.name.endswith("_reward"))
"""What an evaluation says of the returns of its episodes."""
POPULATION = (
    host("q25/*", "", "Lower quartile over members.", needs=MANY, null=NOBODY),
    host("q75/*", "", "Upper quartile over members.", needs=MANY, null=NOBODY),
    host(
        *("best/*", "", "That of the fittest member."),
        needs=f"{MANY}, after an evaluation",
        null="it is so for that member",
    ),
    host(
        *("each/*", "", "That of every member, by its number."),
        needs=f"{MANY}, {EVALUATED}",
        null="its parameters are not finite",
    ),
    host(
        *("pbt/fittest", "", "The fittest member at the last evaluation."),
        needs=f"{MANY}, after an evaluation",
    ),
    searched("pbt/population_size", "members", "How many."),
    searched("pbt/ready_members", "members", "Who may take part."),
    searched("pbt/mean_performance", "", "Mean finite fitness; 0: there is none."),
    searched("pbt/std_performance", "", "Its deviation."),
    searched("pbt/min_performance", "", "The least."),
    searched("pbt/max_performance", "", "The greatest."),
    searched("pbt/exploitation_count", "copies", "Of members, so far."),
    searched("pbt/exploration_count", "moves", "Of members' numbers, so far."),
    searched("pbt/failed_ready_checks", "rounds", "In a row, with too few ready."),
    searched("pbt/fallback_used", "", "1 if it went ahead with few ready members."),
    searched("pbt/nonfinite_members", "members", "Broken ones, before."),
    searched("pbt/recovered_members", "members", "Of these, healed by a copy."),
    searched("pbt/carries_cleared", "members", "Whose memory was emptied."),
    searched(
        *("pbt/performance/*", "", "Fitness of each member."),
        null="the member is broken",
    ),
    searched("pbt/parent/*", "", "Whom it continues; itself, if it did not copy."),
    searched("pbt/*", "", "Searched numbers of each member from then on."),
)
