"""Paper trading: an agent decides at every close as it comes, and nothing is bought.

All state between two bars is one file, which is replaced in one step. A process that is
killed before that step makes the same decisions again; after it, the bars are done.
"""

import dataclasses
import hashlib
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ppo_jax import component, policy
from ppo_jax.envs.env import exact
from ppo_jax.envs.trading import RUIN, Prices, Trading
from ppo_jax.envs.trading.account import opened
from ppo_jax.envs.trading.bars import digest
from ppo_jax.envs.trading.causality import until
from ppo_jax.errors import UserError, own_lines
from ppo_jax.host.run_dir import files
from ppo_jax.policy import Policy
from ppo_jax.types import Key, PyTree

KEPT = "paper.json"
KEPT_EVERY = 5.0
"""Seconds after which the book is kept while many bars are caught up with."""
Decision = dict[str, Any]
"""Record of a bar: its time, the account, the wanted positions, and `late`, which is
whether later bars were there already."""


class Book(NamedTuple):
    """State between two bars."""

    agent: str
    """Digest of the agent that decides."""
    seen: str
    """Digest of all bars so far."""
    bar: int
    """Index of the last bar."""
    last: PyTree
    """Account, state of the policy, and action after the last decision."""
    decisions: list[Decision]


def follow(agent: Policy, env: Trading, prices: Prices, home: Path) -> Book:
    """Decides at every bar that is new, and keeps the decisions.

    In a new folder, the first decision is at the last bar of the prices. The last one
    is that of a bankrupt account, which wants nothing.

    Args:
        agent: The agent, which takes its most likely actions.
        env: The market that it was trained in, whose costs and interest are paid.
        prices: All prices so far.
        home: Folder in which the book is kept.

    Raises:
        UserError: If the agent or the bars of earlier decisions have changed, or there
            are too few bars.
    """
    now, count = _at(env, prices), len(prices.bars.times)
    book = _read(home, agent, now)
    if book is None:
        book = _begun(agent, now, count - 1)
        _keep(home, book)
    _require_same_past(book, prices, home)
    kept, since = book, time.monotonic()
    for bar in range(book.bar + 1, count):
        if is_bankrupt(book.decisions[-1]):
            break
        book = _next(agent, now, book, bar)
        if time.monotonic() - since > KEPT_EVERY:
            _keep(home, book)
            kept, since = book, time.monotonic()
    if book is not kept:
        _keep(home, book)
    return book


def is_bankrupt(decision: Decision) -> bool:
    """Returns whether nothing was left to decide on; no decision comes after it."""
    equity = decision["equity"]
    return equity is not None and equity <= RUIN


def _at(env: Trading, prices: Prices) -> Trading:
    """Returns the same market with present prices, and without an end.

    Raises:
        UserError: If features cannot be made of the prices.
    """
    try:
        return dataclasses.replace(
            env, prices=prices, window=None, first=None, last=None
        )
    except ValueError as error:
        raise UserError(f"{error}{own_lines(error)}") from error


def _begun(agent: Policy, env: Trading, bar: int) -> Book:
    """Makes the first decision, with nothing but cash, and returns its book."""
    first = dataclasses.replace(env, first=float(env.features.lookback))
    obs, account = component.replace_at(first, "first", float(bar)).reset(_nothing())
    return _decided(agent, env, (account, agent.init(1)), obs, bar, [])


def _next(agent: Policy, env: Trading, book: Book, bar: int) -> Book:
    """Carries out the last decision, makes the next one, and returns its book."""
    account, remembered, action = book.last
    step, account = exact(env.transition)(_nothing(), account, action)
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
    decision = {
        "time": str(bars.times[bar])[:19],
        "equity": float(account.equity),
        "positions": np.asarray(account.positions).tolist(),
        "turnover": float(account.turnover),
        "wanted": np.asarray(env.target(action[0])).tolist(),
        "late": bar + 1 < len(bars.times),
    }
    if is_bankrupt(decision):
        decision["wanted"] = [0.0] * len(bars.symbols)
    seen = digest(until(bars, bar))
    last = account, remembered, action[0]
    return Book(_digest(agent), seen, bar, last, [*decisions, decision])


def _require_same_past(book: Book, prices: Prices, home: Path) -> None:
    bars, day = prices.bars, book.decisions[-1]["time"]
    known = len(bars.times) > book.bar and digest(until(bars, book.bar)) == book.seen
    if not known:
        raise UserError(
            f"bars up to {day} are not those that were decided at; expected the same "
            f"file with new bars at its end, or another folder than {home}"
        )


def _read(home: Path, agent: Policy, env: Trading) -> Book | None:
    """Reads the book of a folder; None: there is none.

    Raises:
        UserError: If the book is another agent's, or damaged.
    """
    path = home / KEPT
    if not path.exists():
        return None
    try:
        book = _whole(json.loads(path.read_text()))
        if book.agent == _digest(agent):
            return book._replace(last=_unpacked(book.last, agent, env))
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from error
    raise UserError(
        f"{path}: another agent decided there; go on with that one, or give another "
        "folder"
    )


def _whole(stored: Any) -> Book:
    """Returns the book that is stored; raises an error if it is none."""
    book = Book(**stored)
    match book.bar, book.decisions:
        case int(), [*_, {"time": str(), "equity": float() | None}]:
            return book
    raise ValueError("expected a bar, and the decisions up to it")


def _unpacked(leaves: list[Any], agent: Policy, env: Trading) -> PyTree:
    """Returns what `_keep` made a list of; raises a `ValueError` for other shapes."""
    template, structure = jax.tree.flatten(_template(agent, env))
    arrays = [
        jnp.asarray(np.asarray(leaf, known.dtype).reshape(known.shape))
        for known, leaf in zip(template, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, arrays)


def _keep(home: Path, book: Book) -> None:
    leaves = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(book.last)]
    files.write_json(home / KEPT, book._replace(last=leaves)._asdict())


def _template(agent: Policy, env: Trading) -> PyTree:
    """Returns a tree like `Book.last`, with its shapes and types."""
    account = opened(jnp.int32(0), jnp.int32(0), len(env.prices.bars.symbols))
    remembered = agent.init(1)
    obs = jax.tree.map(lambda x: jnp.zeros((1, *x.shape), x.dtype), agent.obs_spec)
    mask = jax.tree.map(lambda x: x[None], env.action_mask(account))
    action, remembered = jax.eval_shape(agent.act, remembered, obs, mask=mask)
    return account, remembered, jax.ShapeDtypeStruct(action.shape[1:], action.dtype)


def _digest(agent: Policy) -> str:
    """Returns the SHA-256 of all numbers of an agent."""
    seen = hashlib.sha256()
    for leaf in jax.tree.leaves(agent):
        seen.update(np.asarray(leaf).tobytes())
    return seen.hexdigest()


_act = jax.jit(Policy.act)
"""A step of a policy, as one program for any number of bars."""


def _nothing() -> Key:
    """Returns a key for a market without a window, which draws nothing."""
    return jax.random.key(0)
