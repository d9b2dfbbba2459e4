"""Starts the kernel: ``python3 -P -m glovebox_kernel``, with the socket as descriptor 0."""

import _signal
import gc
import sys

# Until there is a handler an interrupt must not end the start.
_signal.signal(_signal.SIGINT, _signal.SIG_IGN)
# Nothing made while starting is garbage.
gc.disable()
# Files of the working folder must not stand in for modules that the start needs.
if not sys.flags.safe_path:
    del sys.path[0]

from .start import main  # noqa: E402

main()
