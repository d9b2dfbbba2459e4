"""Arranges memory so that copies of this process share as much of it as they can, for long.

A copy shares every page with its original until one of the two writes to it. To hand out a piece
of memory is to write to the page it lies on, and to the pages that say what is free. So the free
pieces between others are used up before, and a copy takes what it needs from pages of its own.
And pages are gathered into large ones, of which a copy takes over 512 at once. None of this
changes what the process does, and where the system has no means for it, it is left out.
"""

import os
import re
import sys
from ctypes import CDLL, Structure, c_int, c_size_t, c_ssize_t, c_void_p, pythonapi
from struct import iter_unpack

ROOM_MIB = 64
"""About what Python's own allocator takes for all that is loaded."""

_ARENA_BITS = 20
_BLOCK = 512  # the largest that Python's own allocator hands out
_BLOCKS_IN_ARENA = (1 << _ARENA_BITS) // _BLOCK

_PIECES = (64 * 1024, 24)  # the largest of malloc that never gets a mapping of its own; the least
_POOLS = re.compile(r"^ *\d+ +(\d+) +\d+ +\d+ +(\d+) *$", re.MULTILINE)

_PAGE = os.sysconf("SC_PAGE_SIZE")
_LARGE_PAGE = 2 * 1024 * 1024
_COLLAPSE = 25  # MADV_COLLAPSE
_PRESENT = 1 << 63
_WORTH_IT = 0.75  # so much of a large page must be in use: the rest of it is made of zeros


def reserve() -> list[bytes]:
    """Makes Python take memory in one piece, not bit by bit between libraries.

    It gives back an arena that is empty, so a block in each keeps it, until what this returns is
    dropped.
    """
    size = _BLOCK - sys.getsizeof(b"")
    blocks = [b""] * (ROOM_MIB * _BLOCKS_IN_ARENA)
    for index in range(len(blocks)):  # one list from the start: a growing one would move between
        blocks[index] = bytes(size)
    return list({id(block) >> _ARENA_BITS: block for block in blocks}.values())


def settle() -> None:
    """Does all of it. To be called last: what is freed after it lies between others again."""
    library = CDLL(None, use_errno=True)
    _use_up_heap(library)
    _use_up_pools(library)
    _gather_pages(library)


class _Heap(Structure):
    """What mallinfo2 gives: ten numbers, of which the last is what the end of the heap holds."""

    _fields_ = [("other", c_size_t * 9), ("keepcost", c_size_t)]


def _use_up_heap(library: CDLL) -> None:
    """Takes all free pieces of malloc's but the last, from which it cuts when it has no other."""
    try:
        statistics = library.mallinfo2
    except AttributeError:  # before glibc 2.33
        return
    statistics.restype = _Heap
    allocate, release, end = library.malloc, library.free, library.sbrk
    allocate.restype, allocate.argtypes = c_void_p, [c_size_t]
    release.restype, release.argtypes = None, [c_void_p]
    end.restype, end.argtypes = c_void_p, [c_ssize_t]
    last = end(0) - statistics().keepcost
    size, least = _PIECES
    while size >= least:
        while (piece := allocate(size)) is not None and piece < last:
            pass
        release(piece)
        size -= max(16, size // 16 & ~15)


def _use_up_pools(library: CDLL) -> None:
    """Takes all free blocks of Python's own allocator from the pools that are in use."""
    allocate = pythonapi.PyObject_Malloc
    allocate.restype, allocate.argtypes = c_void_p, [c_size_t]
    for size, free in _POOLS.findall(_statistics_of_pools(library)):
        for _ in range(int(free)):
            allocate(int(size))


def _statistics_of_pools(library: CDLL) -> str:
    """What Python says of its allocator. It only prints it, on standard error."""
    errors = os.dup(2)
    paper = os.memfd_create("statistics")
    try:
        os.dup2(paper, 2)
        sys._debugmallocstats()
        library.fflush(None)
        os.dup2(errors, 2)
        os.lseek(paper, 0, os.SEEK_SET)
        return os.read(paper, 1 << 20).decode("ascii", "replace")
    finally:
        os.close(paper)
        os.close(errors)


def _gather_pages(library: CDLL) -> None:
    """Makes large pages where most of one is in use."""
    advise = library.madvise
    advise.argtypes = [c_void_p, c_size_t, c_int]
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as pages:
            for start in _large_places():
                pages.seek(start // _PAGE * 8)
                entries = iter_unpack("Q", pages.read(_LARGE_PAGE // _PAGE * 8))
                present = sum(bool(entry & _PRESENT) for (entry,) in entries)
                if present * _PAGE >= _LARGE_PAGE * _WORTH_IT:
                    advise(start, _LARGE_PAGE, _COLLAPSE)
    except OSError:  # no pagemap here
        pass


def _large_places() -> list[int]:
    """Where a large page would fit into private memory that belongs to no file."""
    places: list[int] = []
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            limits, rights, _, _, inode, *_ = line.split()
            start, end = (int(limit, 16) for limit in limits.split("-"))
            if rights == "rw-p" and inode == "0":
                first = -(-start // _LARGE_PAGE) * _LARGE_PAGE
                places.extend(range(first, end - _LARGE_PAGE + 1, _LARGE_PAGE))
    return places
