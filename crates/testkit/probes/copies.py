"""What kernels that are copies of one process could have in common, and what they took over.

Run inside a kernel, as `copies.main(["NAME"])`: a program would only tell of itself.
"""

import ctypes
import gc
import hashlib
import mmap
import multiprocessing
import os
import random
import secrets
import sys
import tempfile
import uuid

from hostile_attack import say
from probe_kernel import read
from probe_raw import LIBC, attempt
from probe_report import refuse_outside

TELLS = {}
SHARED = ("r--s", "rw-s", "r-xs", "rwxs", "---s", "-w-s")


def tell(function):
    TELLS[function.__name__.replace("_", "-")] = function
    return function


def mapped(rights):
    """Beginning, end and name of every mapping with these rights."""
    for line in read("/proc/self/maps").splitlines():
        place, seen, _, _, _, *name = line.split(maxsplit=5)
        if seen == rights:
            first, last = (int(word, 16) for word in place.split("-"))
            yield first, last, name[0] if name else ""


def base_of(word):
    for line in read("/proc/self/maps").splitlines():
        if word in line:
            return line.split("-")[0]
    raise LookupError(f"nothing is mapped of {word}")


@tell
def identity():
    """What each start of a program chooses anew, and a copy of one has from it."""
    say("library", base_of("/libc.so"))
    say("hashes", f"{hash('a word'):x}")
    LIBC.getauxval.restype = ctypes.c_ulong
    at_random = 25
    say("guards", ctypes.string_at(LIBC.getauxval(at_random), 16).hex())


@tell
def generators():
    """One value of each generator that code can reach."""
    import numpy

    values = {
        "random": random.random(),
        "another Random": random.Random().random(),
        "SystemRandom": random.SystemRandom().random(),
        "numpy, legacy": numpy.random.random(),
        "numpy, another legacy": numpy.random.RandomState().random(),
        "numpy, new": numpy.random.default_rng().random(),
        "numpy, seeds": numpy.random.SeedSequence().entropy,
        "os.urandom": os.urandom(16).hex(),
        "getrandom": os.getrandom(16).hex(),
        "secrets": secrets.token_hex(16),
        "uuid1": uuid.uuid1().hex,
        "uuid1, clock sequence and node": uuid.uuid1().hex[16:],
        "uuid4": uuid.uuid4().hex,
        "tempfile": os.path.basename(tempfile.mktemp()),
        "key of multiprocessing": bytes(multiprocessing.current_process().authkey).hex(),
    }
    for name, value in sorted(values.items()):
        say(name, str(value))


def state_of(thing):
    """The state of a generator, or None for what is none."""
    numpy = sys.modules["numpy"].random
    if isinstance(thing, random.SystemRandom):
        return None
    if isinstance(thing, random.Random):
        return thing.getstate()
    if isinstance(thing, numpy.RandomState):
        return str(thing.get_state())
    if isinstance(thing, numpy.Generator):
        return str(thing.bit_generator.state)
    if isinstance(thing, numpy.BitGenerator):
        return str(thing.state)
    return None


@tell
def kept_generators():
    """A digest of the state of every generator that lies anywhere in memory."""
    import numpy  # noqa: F401 - state_of looks for it

    # What was there before the copy is kept apart from collections, and so from this list.
    gc.unfreeze()
    found = {}
    for thing in gc.get_objects():
        for candidate in (thing, *gc.get_referents(thing)):
            if id(candidate) not in found:
                try:
                    state = state_of(candidate)
                except Exception:  # classes may pretend to be anything
                    continue
                if state is not None:
                    found[id(candidate)] = type(candidate).__name__, state
    for name, state in found.values():
        say(name, hashlib.sha256(repr(state).encode()).hexdigest())


@tell
def dirty():
    """Makes every page that was taken over its own, and says how many bytes that were."""
    populate_write = 23
    taken = 0
    for first, last, name in list(mapped("rw-p")):
        if name.startswith("[v") or name == "[stack]":
            continue
        size = last - first
        if LIBC.madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), populate_write) == 0:
            taken += size
    say("dirtied", taken)


@tell
def own_file():
    """Whether the file of this process's program can be opened: a copy has it from elsewhere."""
    say("own file", attempt(lambda: os.close(os.open("/proc/self/exe", os.O_RDONLY))))
    say("by its name", attempt(lambda: os.close(os.open(sys.executable, os.O_RDONLY))))


@tell
def shared():
    """The mappings through which two processes could see each other."""
    say("shared", sorted({name for rights in SHARED for _, _, name in mapped(rights)}))
    own = mmap.mmap(-1, 4096)
    say("control", len([1 for rights in SHARED for _ in mapped(rights)]))
    own.close()


@tell
def plant(text):
    """Leaves a word wherever a kernel can leave one."""
    word = bytes.fromhex(text)
    block = word * (1024 * 1024 // len(word))
    main = sys.modules["__main__"]
    main.planted = [bytes(block) for _ in range(16)]
    main.planted_object = type("Planted", (), {"word": word})()
    os.environ["PLANTED"] = word.decode()
    module = type(sys)("planted")
    module.word = word
    sys.modules["planted"] = module
    for folder in ("/workspace", "/tmp", "/dev/shm"):
        with open(os.path.join(folder, "planted"), "wb") as file:
            file.write(block)
    say("planted", len(main.planted))


def main(words):
    refuse_outside()
    name, *arguments = words
    TELLS[name](*arguments)
