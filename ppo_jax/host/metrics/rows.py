"""Rows of metrics that the host measures: evaluations, time and populations."""

from functools import partial

from ppo_jax.metrics.reductions import HOST
from ppo_jax.metrics.rows import rows

EVALUATED = "an evaluation in this phase"
MANY = "more than one member"
RANKED = f"{MANY}, after an evaluation"
host = partial(rows, reduction=HOST)
evaluated = partial(host, needs=EVALUATED, null="a return is not finite")
spread = partial(host, needs=MANY, null="it is so for all members")
searched = partial(host, needs="`pbt`, in a generation")

HOSTED = (
    *evaluated("""
        eval/mean_reward [reward]: Mean return.
        eval/std_reward [reward]: Deviation of returns.
        eval/median_reward [reward]: Their median.
        eval/q25_reward [reward]: Lower quartile.
        eval/q75_reward [reward]: Upper quartile.
        eval/cvar_5_reward [reward]: Mean of the worst 5 %.
    """),
    *host(
        """
        eval/episodes [episodes]: How many.
        eval/unfinished_episodes [episodes]: Given up at their limit.
        """,
        needs=EVALUATED,
    ),
    *host("""
        time/fps [steps / s]: Environment steps per second, once compiled.
        time/compiling [s]: Until the programs of the phase were compiled.
        time/iterations [updates]: Updates done.
        time/total_timesteps [steps]: Environment steps done.
        time/time_elapsed [s]: Since the run began.
    """),
)
EVALUATIONS = tuple(row.name for row in HOSTED if row.name.endswith("_reward"))
"""Names of an evaluation's statistics of the returns of its episodes."""
POPULATION = (
    *spread("""
        q25/*: Lower quartile over members.
        q75/*: Upper quartile over members.
    """),
    *host(
        "best/*: That of the fittest member.",
        needs=RANKED,
        null="it is so for that member",
    ),
    *host(
        "each/*: That of every member, by its number.",
        needs=f"{MANY}, {EVALUATED}",
        null="a return of its own is not finite",
    ),
    *host("pbt/fittest: The fittest member at the last evaluation.", needs=RANKED),
    *searched("""
        pbt/population_size [members]: How many.
        pbt/ready_members [members]: Who may take part.
        pbt/mean_performance: Mean finite fitness; 0: there is none.
        pbt/std_performance: Its deviation.
        pbt/min_performance: The least.
        pbt/max_performance: The greatest.
        pbt/exploitation_count [copies]: Of members, so far.
        pbt/exploration_count [moves]: Of members' numbers, so far.
        pbt/failed_ready_checks [rounds]: In a row, with too few ready.
        pbt/fallback_used: 1 if it went ahead with few ready members.
        pbt/nonfinite_members [members]: Without a finite fitness, before.
        pbt/recovered_members [members]: Of these, healed by a copy.
        pbt/carries_cleared [members]: Whose memory was emptied.
    """),
    *searched(
        "pbt/performance/*: Fitness of each member.",
        null="the member is broken, or it is not known yet",
    ),
    *searched("""
        pbt/parent/*: Whom it continues; itself, if it did not copy.
        pbt/*: Searched numbers of each member from then on.
    """),
)
