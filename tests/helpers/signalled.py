"""Commands in a process of their own, which get signals or run out of disk."""

import json
import re
import subprocess
from typing import NamedTuple

import zygote
from runs import ALIKE

END = r"\n\[status (\d+)\]\n"
SIGNALLED = """
import glob, json, os, resource, signal, sys, threading, time
from ppo_jax.__main__ import main

def send(numbers, pattern):
    while numbers and not glob.glob(pattern):
        time.sleep(0.005)
    for number in numbers:
        print(f"gets signal {number}", flush=True)
        os.kill(os.getpid(), number)
        time.sleep(0.5)
    if numbers:
        signal.alarm(10)

_, unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
handlers = {x: signal.getsignal(x) for x in (signal.SIGINT, signal.SIGTERM)}
for words, numbers, pattern, most in json.loads(sys.argv[1]):
    signal.alarm(120)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    sender = threading.Thread(target=send, args=(numbers, pattern), daemon=True)
    sender.start()
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, unlimited))
    status = main(words)
    for number in handlers:
        signal.signal(number, lambda *_: None)  # It came too late.
    resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
    sender.join()
    for stream in (sys.stdout, sys.stderr):
        print(f"\\n[status {status}]", file=stream, flush=True)
sys.exit(status)
"""


class Line(NamedTuple):
    """A command, and what happens to it."""

    words: tuple
    signals: tuple = ()
    """Signals that it gets, half a second apart; then it has ten seconds to end."""
    after: str = ""
    """Pattern of the file that it gets them after."""
    most: int = -1
    """Bytes that it can write to a file; -1: as many as it likes."""


def signalled(*lines):
    """Returns the ends of commands in one process, which the last of them may end."""
    given = [line._replace(words=[*map(str, line.words)]) for line in lines]
    done = zygote.run(["-c", SIGNALLED, json.dumps(given, default=str)], ALIKE)
    statuses = [*map(int, re.findall(END, done.stdout)), done.returncode]
    said = [re.split(END, text)[::2] for text in (done.stdout, done.stderr)]
    ends = zip(given, statuses, *said, strict=False)
    return [subprocess.CompletedProcess(line.words, *end) for line, *end in ends]
