"""Commands in processes of their own, which get signals or run out of disk."""

import zygote
from runs import ALIKE

SIGNALLED = """
import glob, os, signal, sys, threading, time
from ppo_jax.__main__ import main

def send(pattern, *numbers):
    while not glob.glob(pattern):
        time.sleep(0.005)
    for number in numbers:
        print(f"gets signal {number}", flush=True)
        os.kill(os.getpid(), int(number))
        time.sleep(0.5)
    signal.alarm(10)

count = int(sys.argv[1])
sent, words = sys.argv[2 : count + 3], sys.argv[count + 3 :]
threading.Thread(target=send, args=sent, daemon=True).start()
sys.exit(main(words))
"""
SMALL_FILES = """
import resource, sys
from ppo_jax.__main__ import main

resource.setrlimit(resource.RLIMIT_FSIZE, (6144, 6144))
sys.exit(main(sys.argv[1:]))
"""


def signalled(numbers, pattern, *words):
    """Runs a command that gets signals once there is a file of that pattern.

    Signals follow after half a second; it has ten seconds to end after the last one.
    """
    given = map(str, (len(numbers), pattern, *map(int, numbers), *words))
    return zygote.run(["-c", SIGNALLED, *given], ALIKE)


def short_of_disk(*words):
    """Runs a command that cannot write more than 6 KiB to a file."""
    return zygote.run(["-c", SMALL_FILES, *map(str, words)], ALIKE)
