"""Controllers in plain float64, from their rules."""

import numpy as np


def pid_oracle(pid, kls):
    """Returns coefficient and integral after every divergence, in plain float64.

    The integral leaks only while the coefficient is at a bound and the error pushes it
    further out; an error that pushes back inside integrates as always.
    """
    beta, total, last, said = pid.initial, 0.0, 0.0, []
    bound = (pid.maximum - pid.minimum) / pid.ki if pid.ki else 0.0
    for kl in np.asarray(kls, np.float64):
        error = kl - pid.target
        total = min(max(total + error, -bound), bound)
        wanted = beta + pid.kp * error + pid.ki * total + pid.kd * (error - last)
        beta = min(max(wanted, pid.minimum), pid.maximum)
        pushes_up = beta == pid.maximum and error > 0
        pushes_down = beta == pid.minimum and error < 0
        if pushes_up or pushes_down:
            total *= pid.leak
        last = error
        said.append((beta, total))
    return np.array(said)
