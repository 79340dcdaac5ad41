"""Controllers: small state machines that steer training from one update to the next.

A controller is a component that holds numbers; its memory is a state of arrays.
`init()` makes a state, `update(state, …)` moves it by the measurements of an update,
and a further method reads it. A measurement that is not finite leaves a state as it
was.
"""

from ppo_jax.controllers.divergence import K1, K3, ClosedForm, Divergence
from ppo_jax.controllers.early_stop import EarlyStop, EpochBudget, KlStop, KlStopState
from ppo_jax.controllers.entropy import EntropySchedule, EntropyState, Plateau, slope
from ppo_jax.controllers.pid import KlPid, KlPidState
from ppo_jax.controllers.smoothing import Ema, MovingAverage, Smoothing
from ppo_jax.controllers.value import ClipGate, Known, PoorValueScale
