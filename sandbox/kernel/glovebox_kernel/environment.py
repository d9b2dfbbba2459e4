"""Variables that a caller gives a kernel that runs already.

A kernel that is a copy of another process has its libraries loaded. Most of what they ask the
environment for, they ask when they are loaded; what matters of that is said here once more.
"""

import os
import sys
import time


def take(variables: dict[str, str]) -> None:
    """Adds variables to the environment of this process and of those it starts."""
    os.environ.update(variables)
    if "TZ" in variables:
        time.tzset()
    backend = variables.get("MPLBACKEND")
    matplotlib = sys.modules.get("matplotlib")
    if backend and matplotlib is not None:
        try:
            matplotlib.rcParams["backend"] = backend
        except ValueError:  # there is no such backend; without a template, the import would say so
            pass
