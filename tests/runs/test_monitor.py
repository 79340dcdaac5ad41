"""The monitor as a user runs it."""

import re
import signal
import urllib.request

from runs import begin, command
from shelf import row, run


def test_it_answers_until_it_is_interrupted(tmp_path):
    """Its port is then taken for others, and free after it."""
    run(tmp_path / "mine", [row(10, 2.5)])
    process = begin("monitor", tmp_path, "--port", 0)
    try:
        line = process.stdout.readline()
        found = re.match(r"(http://127\.0\.0\.1:(\d+)/) ", line)
        with urllib.request.urlopen(found[1]) as answer:
            assert answer.status == 200 and b"mine" in answer.read()
        done = command("monitor", tmp_path, "--port", found[2])
        assert (done.returncode, done.stdout) == (2, "")
        said = f"error: --port: {found[2]} is taken; give another one, or 0 for any th"
        assert done.stderr.startswith(said)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stdout.read() == ""
    finally:
        process.kill()
        process.stdout.close()
