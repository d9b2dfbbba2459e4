"""The first act of a process of ours, before it imports anything else."""

import _signal
import gc
import sys


def quietly() -> None:
    """Keeps signals, collections and files of the working folder out of the start."""
    # Until there is a handler an interrupt must not end the start.
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    # Nothing made while starting is garbage.
    gc.disable()
    # Files of the working folder must not stand in for modules that the start needs.
    if not sys.flags.safe_path:
        del sys.path[0]
