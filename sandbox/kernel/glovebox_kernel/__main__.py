"""Starts the kernel. The order matters: the socket first, then what takes time."""

import _signal
import gc

_signal.signal(_signal.SIGINT, _signal.SIG_IGN)
gc.disable()

from .start import main  # noqa: E402

main()
