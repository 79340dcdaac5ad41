"""Records a session: runs the commands of a document, and writes down what they say.

    python docs/record.py docs/first_day.md

A block of Python that begins with `# NAME.py` is written to that file; of a block
`console` every line after `$ ` is run, in an empty folder that has the experiments and
the documents, and what it prints stands below it. Programs are compiled anew. A status
other than 0 is shown as `[status 2]`.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"```(python|console)\n(.*?)```\n", re.DOTALL)
SECONDS = 300
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT),
    "COLUMNS": "88",
    "JAX_ENABLE_COMPILATION_CACHE": "0",
}


def recorded(text: str, folder: Path) -> str:
    """The document, with what its commands say today.

    Args:
        text: The document.
        folder: Where the commands run.
    """
    for name in ("experiments", "docs"):
        (folder / name).symlink_to(ROOT / name)

    def record(block: re.Match) -> str:
        kind, lines = block.groups()
        if kind == "python":
            name = re.match(r"# (\w+\.py)\n", lines)
            if name:
                (folder / name[1]).write_text(lines)
            return block[0]
        commands = re.findall(r"^\$ (.*)", lines, re.MULTILINE)
        return f"```console\n{''.join(run(each, folder) for each in commands)}```\n"

    return BLOCK.sub(record, text)


def run(command: str, folder: Path) -> str:
    """A command as it was typed, and what it says."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    said = re.sub(r"\s+$", "\n", done.stdout) if done.stdout.strip() else ""
    status = f"[status {done.returncode}]\n" if done.returncode else ""
    return f"$ {command}\n{said}{status}"


def main(path: Path) -> None:
    """Records a document anew."""
    with tempfile.TemporaryDirectory() as folder:
        path.write_text(recorded(path.read_text(), Path(folder)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
