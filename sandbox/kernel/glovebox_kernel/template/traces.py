"""What a template must not pass on: things that are true of it, and not of its copies."""

import itertools
import os
import sys
import threading
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from . import generators

FONT_CACHES = "/opt/glovebox/share/matplotlib"
"""Font caches that came with the root tree. In a sandbox the agent puts links to them."""


class NotReadyError(Exception):
    """The process holds something that copies of it must not share."""


def give_fonts() -> None:
    """Lets matplotlib find its font caches as in a sandbox. To build one takes seconds."""
    folder = os.environ.get("MPLCONFIGDIR")
    if not folder or not os.path.isdir(FONT_CACHES):
        return
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(FONT_CACHES):
        try:
            os.symlink(os.path.join(FONT_CACHES, name), os.path.join(folder, name))
        except FileExistsError:
            pass


def forget() -> None:
    """Clears what the libraries keep of this process, its files and what was done in it."""
    modules: dict[str, Any] = sys.modules
    if (fonts := modules.get("matplotlib.font_manager")) is not None:
        fonts._get_font.cache_clear()  # each holds an open file
    if (platform := modules.get("platform")) is not None:
        platform._uname_cache = None  # the name of the host, among others
        platform._platform_cache.clear()
    if (tempfile := modules.get("tempfile")) is not None:
        tempfile.tempdir = tempfile._name_sequence = None
    threading._counter = itertools.count(1).__next__  # type: ignore[attr-defined]
    # Another folder lies there in a sandbox, and may have been changed at the same moment.
    sys.path_importer_cache.pop(os.getcwd(), None)
    # A warning that was passed over while warming up is still to be shown once.
    for module in list(modules.values()):
        if isinstance(module, ModuleType):
            vars(module).pop("__warningregistry__", None)
    # As the interpreter of a fresh kernel was started.
    sys.orig_argv = [word.removesuffix(".template") for word in sys.orig_argv]


def own_up() -> None:
    """Corrects what Python still believes of the process it was copied from."""
    threading.main_thread()._set_native_id()  # type: ignore[attr-defined]
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.ORIGINAL_DIR = os.getcwd()


def check(descriptors: Iterable[int]) -> None:
    """Sees that copies will share nothing that they must not. Raises NotReadyError.

    `descriptors` are those that may be open.
    """
    unknown = generators.unknown()
    if unknown:
        raise NotReadyError(f"nothing would reseed {', '.join(unknown)}")
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise NotReadyError(f"{threads} threads run")
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:  # of the listing itself
            continue
        if int(number) not in descriptors:
            raise NotReadyError(f"descriptor {number} is open: {target}")
