"""Every source of random or unique values, and how a copy of a process makes it its own.

Two copies of one process would otherwise go on with the same numbers. A source that is not in
here is added to `GENERATORS`, with a line in the tests that draws from it. Sources that ask the
system each time need nothing: `os.urandom`, `secrets`, `uuid.uuid4`, `numpy.random.default_rng`.

Some things stay equal in all copies, because they are part of memory that copies share: the seed
of `hash`, the addresses of objects and libraries, and the salts that the C library, expat and
libxml2 took when they were loaded. Where that is not wanted, a kernel is started fresh.
"""

import gc
import random
import sys
import tempfile
from collections.abc import Callable
from ctypes import memmove
from os import urandom
from typing import Any, NamedTuple


class Generator(NamedTuple):
    """One source. Both functions get the module it lives in, and run where that is loaded."""

    module: str
    reseed: Callable[[Any], None]
    """Runs in each copy."""
    prepare: Callable[[Any], None] | None = None
    """Runs once, before there are copies. From then on nothing may be drawn."""


def _reseed_random(module: Any) -> None:
    # The interpreter does the same after each fork that it knows of.
    module.seed(int.from_bytes(urandom(32), "little"))


class _Numpys:
    """The generator behind `numpy.random.rand` and its like, by the place of its state.

    To seed it by its own function would take 0.7 ms, and 0.4 MiB of pages that are shared till
    then. The seed sequence, from which copies would derive the same generators, is gone.
    """

    state = 0
    size = 624 * 4

    @classmethod
    def prepare(cls, mtrand: Any) -> None:
        mtrand.seed(0)
        cls.state = mtrand._rand._bit_generator.ctypes.state_address

    @classmethod
    def reseed(cls, _mtrand: Any) -> None:
        memmove(cls.state, urandom(cls.size), cls.size)


def _reseed_names(module: Any) -> None:
    # It looks at the process id, which may be the same in another sandbox.
    module._name_sequence = None


def _reseed_key(process: Any) -> None:
    process.current_process().authkey = urandom(32)


def _reseed_semaphores(synchronize: Any) -> None:
    synchronize.SemLock._rand = tempfile._RandomNameSequence()  # type: ignore[attr-defined]


def _reseed_unique_ids(uuid: Any) -> None:
    uuid._node = uuid._last_timestamp = None


def _reseed_openssl(ssl: Any) -> None:
    # OpenSSL looks at the process id as well. The first time costs 1.5 ms, so `prepare` has it.
    ssl.RAND_add(urandom(64), 64.0)


GENERATORS = (
    Generator("random", _reseed_random),
    Generator("numpy.random.mtrand", _Numpys.reseed, _Numpys.prepare),
    Generator("tempfile", _reseed_names),
    Generator("multiprocessing.process", _reseed_key),
    Generator("multiprocessing.synchronize", _reseed_semaphores),
    Generator("uuid", _reseed_unique_ids),
    Generator("_ssl", _reseed_openssl, _reseed_openssl),
)
"""All that the interpreter and the libraries have."""

UNWELCOME = ("sqlite3", "cryptography")
"""Libraries with a generator that cannot be seeded from outside. They must not be loaded."""


def prepare() -> None:
    """Makes everything ready to be copied."""
    for generator in GENERATORS:
        if generator.prepare is not None and (module := sys.modules.get(generator.module)):
            generator.prepare(module)


def reseed() -> None:
    """Makes every generator of this process different from those of all other copies."""
    for generator in GENERATORS:
        module = sys.modules.get(generator.module)
        if module is not None:
            generator.reseed(module)


def unknown() -> list[str]:
    """Generators that are there and that nothing here would reseed."""
    found = [f"the library {name}" for name in UNWELCOME if name in sys.modules]
    names: Any = tempfile
    kinds = {random.Random, names._RandomNameSequence}
    known = [random._inst, names._name_sequence]
    if (numpy := sys.modules.get("numpy.random")) is not None:
        kinds |= {numpy.RandomState, numpy.Generator, numpy.BitGenerator}
        known += [numpy.mtrand._rand, numpy.mtrand._rand._bit_generator]
    if (synchronize := sys.modules.get("multiprocessing.synchronize")) is not None:
        known.append(synchronize.SemLock._rand)
    # By type alone: to ask an object for its class may be to wake it.
    of_interest: dict[type, bool] = {random.SystemRandom: False}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in of_interest:
            of_interest[kind] = not kinds.isdisjoint(kind.__mro__)
        if of_interest[kind] and not any(thing is one for one in known):
            found.append(f"a {kind.__module__}.{kind.__qualname__}")
    return found
