"""Commands in processes of their own, to which something happens."""

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
    """What a command ends with that gets signals once there is such a file.

    It gets the next one half a second later, and has ten to end after the last.
    """
    given = map(str, (len(numbers), pattern, *map(int, numbers), *words))
    return zygote.run(["-c", SIGNALLED, *given], ALIKE)


def short_of_disk(*words):
    """What a command ends with that cannot write more than 6 KiB to a file."""
    return zygote.run(["-c", SMALL_FILES, *map(str, words)], ALIKE)
