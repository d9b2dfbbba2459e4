"""Starts the kernel: ``python3 -P -m glovebox_kernel``, with the socket as descriptor 0."""

from .begin import quietly

quietly()

from .start import main  # noqa: E402

main()
