"""A template from its start to its end, and the beginning of a kernel that is copied from it."""

import gc
import json
import os
from ctypes import PYFUNCTYPE, PyDLL, c_int
from typing import NoReturn

from ..start import STATUS_BROKEN, Kernel
from . import generators, memory, threads, traces, warming

LINE = 3
"""The descriptor of the socket to the launcher."""

LIBRARY = "/opt/glovebox/bin/libglovebox_template.so"
"""What copies the process. Told to serve, it returns when the launcher closes the line."""

_Child = PYFUNCTYPE(c_int, c_int, c_int, c_int, c_int)


def main() -> NoReturn:
    """Runs the template of this process. Does not return."""
    try:
        library = PyDLL(LIBRARY)
        template = Template()
        child = _Child(template.child)
        template.settle({0, 1, 2, LINE})
    except BaseException as error:
        _tell(f"{type(error).__name__}: {error}")
        os._exit(1)
    os._exit(library.glovebox_template_serve(LINE, child))


def _tell(cause: str) -> None:
    """Tells the launcher why there will be no template. It may be gone itself."""
    try:
        os.write(LINE, json.dumps({"is": "failed", "cause": cause[:2000]}).encode())
    except OSError:
        pass


class Template:
    """A kernel that is ready but for its socket, with everything loaded."""

    def __init__(self) -> None:
        room = memory.reserve()
        traces.give_fonts()
        self._kernel = Kernel()
        warming.warm()
        self._kernel.rehearse(warming.CELLS * warming.TIMES)
        self._blas = threads.Blas()
        del room

    def settle(self, descriptors: set[int]) -> None:
        """Makes the process fit to be copied: nothing open but `descriptors`, memory at rest.

        Raises NotReadyError.
        """
        traces.forget()
        generators.prepare()
        gc.collect()
        traces.check(descriptors)
        gc.freeze()
        memory.settle()

    def child(self, wire: int, thread_count: int, reseed: int, in_advance: int) -> int:
        """Runs the kernel of a copy. Does not return.

        A copy that cannot begin has nobody to tell but by its exit status.
        """
        try:
            traces.own_up()
            if in_advance:
                self._take_pages()
            # After all that may have drawn from them.
            if reseed:
                generators.reseed()
            self._kernel.attach(wire)
            # Last, as it may start threads: whoever has some waits for all processors when its
            # table of descriptors grows.
            self._blas.use(thread_count)
            self._kernel.serve()
        finally:
            os._exit(STATUS_BROKEN)

    def _take_pages(self) -> None:
        """Takes copies of the pages that first cells write to, while nobody waits for them.

        To count who uses an object is to write to it, so these are more than one would think. An
        error is not among the cells: its pages are half as many again.
        """
        self._kernel.rehearse(warming.FIRST_CELLS)
        gc.collect()
