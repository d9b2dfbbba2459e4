"""The matplotlib backend of a sandbox, chosen by ``MPLBACKEND=module://glovebox_backend``.

In a program, ``plt.show()`` saves every open figure as ``figure-1.png``, ``figure-2.png`` and so
on in the working folder, never over an existing file, and closes it. In the kernel it is the
inline backend: figures are shown with the cell. Nothing is saved unless the code asks for it.
"""

import io
import sys
from itertools import count
from typing import Any

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_numbers = count(1)


def _save(figure: Figure) -> None:
    """Saves one figure under the next free name of the working folder. Raises OSError."""
    image = io.BytesIO()
    figure.savefig(image, format="png")
    for number in _numbers:
        try:
            file = open(f"figure-{number}.png", "xb")
        except FileExistsError:
            continue
        with file:
            file.write(image.getbuffer())
        return


class FigureManager(FigureManagerBase):
    """Stands where a window would be."""

    def show(self) -> None:
        """What ``figure.show()`` does: saves this figure and closes it."""
        _save(self.canvas.figure)
        Gcf.destroy(self)

    @classmethod
    def pyplot_show(cls, **_options: Any) -> None:
        """What ``plt.show()`` does: saves and closes all open figures.

        ``plt.pause()`` calls it too, once for each step of an animation: then nothing is saved.
        """
        if sys._getframe(2).f_code.co_name == "pause":
            return
        for manager in Gcf.get_all_fig_managers():
            manager.show()


class FigureCanvas(FigureCanvasAgg):
    """Agg's canvas with the manager above."""

    manager_class = FigureManager


def _in_kernel() -> bool:
    """Whether this process is a kernel of ours."""
    reporter = sys.modules.get("glovebox_kernel.reporter")
    return reporter is not None and reporter.in_kernel()


if _in_kernel():
    import matplotlib
    from IPython.core.getipython import get_ipython
    from matplotlib_inline import backend_inline
    from matplotlib_inline.backend_inline import (  # noqa: F401
        new_figure_manager,
        new_figure_manager_given_figure,
        show,
    )

    FigureCanvas = backend_inline.FigureCanvas  # type: ignore[misc]
    matplotlib.interactive(True)
    backend_inline.configure_inline_support(
        get_ipython(), "module://matplotlib_inline.backend_inline"
    )
