"""Probability that a Sharpe ratio is more than the luck of many trials.

Sharpe ratios are those of a bar here, not of a year.

References:
    Bailey and López de Prado, `The Deflated Sharpe Ratio: Correcting for Selection
    Bias, Backtest Overfitting and Non-Normality
    <https://doi.org/10.3905/jpm.2014.40.5.094>`_, 2014.
"""

import math
from statistics import NormalDist

import numpy as np

NORMAL = NormalDist()


def hurdle(trials: int, deviation: float) -> float:
    """Returns the best Sharpe ratio that is expected of trials without any skill.

    σ ((1 − γ) Φ⁻¹(1 − 1/N) + γ Φ⁻¹(1 − 1/(N e))), γ being Euler's constant.

    Args:
        trials: N, the number of trials.
        deviation: σ of their Sharpe ratios.

    >>> hurdle(1, 0.3), round(hurdle(100, (1 / 500) ** 0.5), 4)
    (0.0, 0.1132)
    """
    if trials < 2:
        return 0.0
    ends = 1 / trials, 1 / (trials * math.e)
    first, second = (-NORMAL.inv_cdf(end) for end in ends)
    return deviation * ((1 - np.euler_gamma) * first + np.euler_gamma * second)


def probability(
    ratio: float, above: float, bars: int, skew: float = 0.0, kurtosis: float = 3.0
) -> float:
    """Returns the probability that the true Sharpe ratio is greater than another one.

    Φ((s − s₀) √(T − 1) / √(1 − γ₃ s + (γ₄ − 1) s² / 4)).

    Args:
        ratio: s, of the track.
        above: s₀, the ratio that it is compared with.
        bars: T, the bars of the track.
        skew: γ₃ of its returns.
        kurtosis: γ₄ of its returns; 3 of normal ones.

    >>> round(probability(0.1, 0.1, 250), 4)
    0.5
    """
    variance = 1 - skew * ratio + (kurtosis - 1) / 4 * ratio**2
    if not (variance > 0 and bars > 1):
        return math.nan
    return NORMAL.cdf((ratio - above) * math.sqrt(bars - 1) / math.sqrt(variance))


def deflated(returns: np.ndarray, trials: np.ndarray, elsewhere: int = 0) -> float:
    """Returns the probability that the best of many tracks has a Sharpe ratio above 0.

    Trials whose ratio is not known differ by what known ones do, and by no less than T
    bars without any skill: 1 / √(T − 1).

    Args:
        returns: Returns of the track `[T]`.
        trials: Sharpe ratios per bar of the trials, this track included, `[N]`; NaN of
            those that are not known.
        elsewhere: The number of other trials, whose ratios are not known.

    Returns:
        The probability; NaN of a track that never moves.
    """
    spread, count = returns.std(ddof=1), len(trials) + elsewhere
    known = trials[np.isfinite(trials)]
    if not spread > 1e-15:
        return math.nan
    deviation = float(known.std(ddof=1)) if known.size > 1 else 0.0
    if known.size < count:
        deviation = max(deviation, 1 / math.sqrt(len(returns) - 1))
    ratio, normed = returns.mean() / spread, (returns - returns.mean()) / returns.std()
    skew, kurtosis = (float((normed**power).mean()) for power in (3, 4))
    above = hurdle(count, deviation)
    return probability(float(ratio), above, len(returns), skew, kurtosis)
