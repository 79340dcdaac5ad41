"""Paper trading: an agent decides at every close as it comes, and nothing is bought.

All that is known between two bars is one file, which is replaced in one step: whoever
is killed before that decides the same anew, and after it the bar is done with.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import component, policy
from ppo_jax.envs.trading import PriceError, PriceFile, Prices, Trading
from ppo_jax.envs.trading.account import opened
from ppo_jax.envs.trading.bars import digest
from ppo_jax.envs.trading.causality import until
from ppo_jax.envs.trading.files import Cells
from ppo_jax.errors import UserError, own_lines
from ppo_jax.host.run_dir import files
from ppo_jax.policy import Policy
from ppo_jax.types import Key, PyTree

KEPT = "paper.json"
Decision = dict[str, Any]
"""A bar: when it was, what was held, what is asked for, and whether others followed."""


class Book(NamedTuple):
    """What is known between two bars."""

    agent: str
    """Digest of who decides."""
    seen: str
    """Digest of all bars so far."""
    bar: int
    """The last of them."""
    last: PyTree
    """Account, what the policy remembers, and the action that was decided then."""
    decisions: list[Decision]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class GrowingFile(PriceFile):
    """Prices of a file that is written while it is read.

    Raises:
        PriceError: At construction, as `PriceFile`, and for a last line without its
            end: the rest of its last number may be on its way.
    """

    def read(self) -> Cells:
        found = super().read()
        if not found.ended:
            said = "the last line has no end, and may be half of one; expected its end"
            raise PriceError(f"{self.path}, line {found.place[-1]}: {said}")
        return found


def prices_like(env: Trading, path: Path) -> Prices:
    """Prices from a file that grows, repaired as those of an environment were.

    Raises:
        UserError: If they cannot be used, or are of other assets.
    """
    prices = GrowingFile(str(path), getattr(env.prices, "repairs", ()))
    expected, got = env.prices.bars.symbols, prices.bars.symbols
    if (len(expected) > 1 and got != expected) or len(got) != len(expected):
        said = f"expected the assets {', '.join(expected)}, got {', '.join(got)}"
        raise UserError(f"{path}: {said}, in this order")
    return prices


def follow(agent: Policy, env: Trading, prices: Prices, home: Path) -> Book:
    """Decides at every bar that is new, and keeps each decision as it is made.

    The first decision of all is at the last bar there is.

    Args:
        agent: Who decides, by its most likely actions.
        env: The market it was trained in, whose costs and interest are paid.
        prices: All prices so far.
        home: Where what is known is kept.

    Raises:
        UserError: If bars that were decided at have changed, or the agent has, or there
            are too few of them.
    """
    now, count = _at(env, prices), len(prices.bars.times)
    book = _read(home, agent, now)
    if book is None:
        book = _begun(agent, now, count - 1)
        _keep(home, book)
    _require_same_past(book, prices, home)
    for bar in range(book.bar + 1, count):
        book = _next(agent, now, book, bar)
        _keep(home, book)
    return book


def _at(env: Trading, prices: Prices) -> Trading:
    """The same market with prices of now, and no end.

    Raises:
        UserError: If features cannot be made of them.
    """
    try:
        return dataclasses.replace(
            env, prices=prices, window=None, first=None, last=None
        )
    except ValueError as error:
        raise UserError(f"{error}{own_lines(error)}") from error


def _begun(agent: Policy, env: Trading, bar: int) -> Book:
    """The first decision, with nothing but cash."""
    first = dataclasses.replace(env, first=float(env.features.lookback))
    obs, account = component.replace_at(first, "first", float(bar)).reset(_nothing())
    return _decided(agent, env, (account, agent.init(1)), obs, bar, [])


def _next(agent: Policy, env: Trading, book: Book, bar: int) -> Book:
    """What the last decision led to, and the next one."""
    account, remembered, action = book.last
    step, account = env.transition(_nothing(), account, action)
    return _decided(agent, env, (account, remembered), step.obs, bar, book.decisions)


def _decided(
    agent: Policy,
    env: Trading,
    before: tuple[Any, policy.State],
    obs: PyTree,
    bar: int,
    decisions: list[Decision],
) -> Book:
    account, remembered = before
    seen, mask = jax.tree.map(lambda x: x[None], (obs, env.action_mask(account)))
    action, remembered = _act(agent, remembered, seen, mask=mask)
    bars = env.prices.bars
    said = {
        "time": str(bars.times[bar])[:19],
        "equity": float(account.equity),
        "positions": np.asarray(account.positions).tolist(),
        "turnover": float(account.turnover),
        "wanted": np.asarray(env.target(action[0])).tolist(),
        "late": bar + 1 < len(bars.times),
    }
    seen = digest(until(bars, bar))
    last = account, remembered, action[0]
    return Book(_digest(agent), seen, bar, last, [*decisions, said])


def _require_same_past(book: Book, prices: Prices, home: Path) -> None:
    bars, day = prices.bars, book.decisions[-1]["time"]
    known = len(bars.times) > book.bar and digest(until(bars, book.bar)) == book.seen
    if not known:
        raise UserError(
            f"bars up to {day} are not those that were decided at; expected the same "
            f"file with new bars at its end, or another folder than {home}"
        )


def _read(home: Path, agent: Policy, env: Trading) -> Book | None:
    """What is kept, if anything.

    Raises:
        UserError: If it is another agent's, or damaged.
    """
    path = home / KEPT
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_text())
        book = Book(**stored)
        template = _template(agent, env)
        shapes = zip(jax.tree.leaves(template), book.last, strict=True)
        leaves = [jnp.asarray(np.asarray(x, leaf.dtype)) for leaf, x in shapes]
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    if book.agent != _digest(agent):
        raise UserError(
            f"{path}: another agent decided there; go on with that one, or give "
            "another folder"
        )
    return book._replace(last=jax.tree.unflatten(jax.tree.structure(template), leaves))


def _keep(home: Path, book: Book) -> None:
    leaves = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(book.last)]
    files.write_json(home / KEPT, book._replace(last=leaves)._asdict())


def _template(agent: Policy, env: Trading) -> PyTree:
    """What is kept of the last bar, with its types."""
    account = opened(jnp.int32(0), jnp.int32(0), len(env.prices.bars.symbols))
    remembered = agent.init(1)
    obs = jax.tree.map(lambda x: jnp.zeros((1, *x.shape), x.dtype), agent.obs_spec)
    action, remembered = jax.eval_shape(agent.act, remembered, obs)
    return account, remembered, jax.ShapeDtypeStruct(action.shape[1:], action.dtype)


def _digest(agent: Policy) -> str:
    """SHA-256 of all numbers of an agent."""
    seen = hashlib.sha256()
    for leaf in jax.tree.leaves(agent):
        seen.update(np.asarray(leaf).tobytes())
    return seen.hexdigest()


_act = jax.jit(Policy.act)
"""The same program whatever the number of bars."""


def _nothing() -> Key:
    """The key of a market without a window, which draws nothing."""
    return jax.random.key(0)
