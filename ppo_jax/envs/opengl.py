"""OpenGL, which MuJoCo draws with, and messages for systems without it."""

import os
import traceback
from pathlib import Path

NEEDED = (
    "MuJoCo draws with OpenGL; without a display set MUJOCO_GL=egl, or MUJOCO_GL="
    "osmesa once libosmesa6 is installed"
)
MEANS = "gl_context.py"
"""The file of MuJoCo that imports what `MUJOCO_GL` names, drawing or not."""


def unmet(error: BaseException) -> str:
    """Returns advice if MuJoCo's import failed for want of OpenGL, otherwise "".

    >>> unmet(ImportError("no such thing"))
    ''
    """
    passed = traceback.extract_tb(error.__traceback__)
    if not any(Path(frame.filename).name == MEANS for frame in passed):
        return ""
    asked = os.environ.get("MUJOCO_GL", "")
    return (
        f"; MUJOCO_GL={asked} asks for what is not there: egl needs libegl1, osmesa "
        "needs libosmesa6; only pictures need one of them, all else works without "
        "MUJOCO_GL"
    )
