"""The process that kernels are copied from: ``python3 -P -m glovebox_kernel.template``.

It loads what a kernel needs and what people ask for, makes the kernel up to the point where it
would take over a socket, and then leaves it to a library, which copies the process into one
sandbox after the other. It never runs code of anybody, and never reads anything from a copy.

`process.py` has the order of things, `generators.py` the list of what must differ between copies.
"""
