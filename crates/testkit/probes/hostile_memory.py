"""Attacks on memory, wherever it can be hidden."""

import ctypes
import mmap
import os
import socket
import threading

from hostile_attack import MIB, attack, say
from probe_raw import LIBC, attempt, errno_name


def touch(area, size):
    for offset in range(0, size, 4096):
        area[offset] = 1


@attack
def memory(kind, bound_mib):
    """Takes memory in one of many forms until it is ended, or fails, or has its fill."""
    bound = int(bound_mib) * MIB
    say("control", "running")
    taken, why = MEMORY[kind](bound)
    say("taken", taken // MIB, why)


def take_heap(bound):
    blocks = []
    while len(blocks) * 8 * MIB < bound:
        try:
            blocks.append(bytearray(os.urandom(4096) * (8 * MIB // 4096)))
        except MemoryError:
            return len(blocks) * 8 * MIB, "MemoryError"
    return bound, "never refused"


def take_shared_mapping(bound):
    try:
        area = mmap.mmap(-1, bound)
    except OSError as error:
        return 0, errno_name(error.errno)
    touch(area, bound)
    return bound, "never refused"


def take_private_mapping(bound):
    try:
        area = mmap.mmap(-1, bound, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        return 0, errno_name(error.errno)
    touch(area, bound)
    return bound, "never refused"


def take_stack(bound):
    """Touches every page of a thread's stack."""
    done = []

    def touch_stack():
        attributes = ctypes.create_string_buffer(128)
        base, size = ctypes.c_void_p(), ctypes.c_size_t()
        LIBC.pthread_self.restype = ctypes.c_void_p
        LIBC.pthread_getattr_np(ctypes.c_void_p(LIBC.pthread_self()), attributes)
        LIBC.pthread_attr_getstack(attributes, ctypes.byref(base), ctypes.byref(size))
        # The upper end is in use.
        free = size.value - MIB
        ctypes.memset(base.value + 4096, 1, free - 4096)
        done.append(free)

    threading.stack_size(bound)
    thread = threading.Thread(target=touch_stack)
    try:
        thread.start()
    except RuntimeError as error:
        return 0, str(error)
    thread.join()
    return (done[0] if done else 0), "never refused"


def take_memory_file(bound):
    fd = os.memfd_create("hidden")
    return write_until_refused(fd, bound)


def take_sealed_memory_files(bound):
    taken = 0
    while taken < bound:
        try:
            fd = os.memfd_create("hidden")
        except OSError as error:
            return taken, errno_name(error.errno)
        more, why = write_until_refused(fd, 4 * MIB)
        taken += more
        if why != "never refused":
            return taken, why
    return taken, "never refused"


def take_deleted_files(bound):
    taken = 0
    reasons = set()
    held = []
    for folder in ("/tmp", "/dev/shm", "/workspace"):
        path = os.path.join(folder, "deleted")
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        os.unlink(path)
        held.append(fd)
        more, why = write_until_refused(fd, bound)
        taken += more
        reasons.add(why)
    return taken, " ".join(sorted(reasons))


def take_pipes(bound):
    taken = 0
    held = []
    while taken < bound:
        try:
            reader, writer = os.pipe2(os.O_NONBLOCK)
        except OSError as error:
            return taken, errno_name(error.errno)
        held += [reader, writer]
        attempt(lambda writer=writer: fcntl_pipe_size(writer))
        try:
            while True:
                taken += os.write(writer, bytes(65536))
        except BlockingIOError:
            continue
    return taken, "never refused"


def fcntl_pipe_size(fd):
    import fcntl

    fcntl.fcntl(fd, 1031, MIB)


def take_sockets(bound):
    taken = 0
    held = []
    while taken < bound:
        try:
            pair = socket.socketpair()
        except OSError as error:
            return taken, errno_name(error.errno)
        held.append(pair)
        pair[0].setblocking(False)
        try:
            while True:
                taken += pair[0].send(bytes(32768))
        except BlockingIOError:
            continue
        except OSError as error:
            return taken, errno_name(error.errno)
    return taken, "never refused"


def write_until_refused(fd, bound):
    block = os.urandom(4096) * 256
    taken = 0
    while taken < bound:
        try:
            taken += os.write(fd, block)
        except OSError as error:
            return taken, errno_name(error.errno)
    return taken, "never refused"


MEMORY = {
    "heap": take_heap,
    "private": take_private_mapping,
    "shared": take_shared_mapping,
    "stack": take_stack,
    "memfd": take_memory_file,
    "memfds": take_sealed_memory_files,
    "deleted": take_deleted_files,
    "pipes": take_pipes,
    "sockets": take_sockets,
}
