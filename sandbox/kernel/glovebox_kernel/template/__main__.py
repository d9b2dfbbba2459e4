"""Starts a template: ``python3 -P -m glovebox_kernel.template``, with descriptor 3 as its line."""

from ..begin import quietly

quietly()

from .process import main  # noqa: E402

main()
