"""Programs that attack the limits of the sandbox they run in, one a run: `hostile.py NAME [ARGS]`.

Each goes on until it is stopped or until a bound of its own, a little above the limit, so that
even a sandbox without limits does no harm to the machine. Each says what it saw, one JSON
document a line; the first line is a control, done before the attack.
"""

import ctypes
import json
import mmap
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

from probe_raw import LIBC, attempt, call, errno_name
from probe_report import refuse_outside

ATTACKS = {}
MIB = 1024 * 1024


def attack(function):
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def say(name, observed, detail=""):
    print(json.dumps({"id": name, "observed": observed, "detail": detail}), flush=True)


def until_refused(act, bound):
    """Repeats `act` until it fails or the bound is reached: how often it went well, and the error."""
    for count in range(bound):
        try:
            act()
        except OSError as error:
            return count, errno_name(error.errno)
        except RuntimeError as error:
            return count, str(error)
    return bound, "never refused"


# Processes


def sleep_for_ever():
    signal.pause()
    os._exit(0)


def fork_sleeper():
    if os.fork() == 0:
        sleep_for_ever()


def vfork_sleeper():
    subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, close_fds=False)


def clone_without_signal():
    value, error = call("clone", 0, None, None, None, None)
    if value == 0:
        sleep_for_ever()
    if error == "EAGAIN":
        raise OSError(11, "no more processes")


def thread_sleeper():
    threading.Thread(target=threading.Event().wait, daemon=True).start()


MAKERS = {
    "fork": fork_sleeper,
    "vfork": vfork_sleeper,
    "clone": clone_without_signal,
    "thread": thread_sleeper,
}


@attack
def bomb(kind, bound):
    threading.stack_size(256 * 1024)
    say("control", attempt(MAKERS[kind]))
    count, why = until_refused(MAKERS[kind], int(bound))
    say("made", count, why)
    sleep_until_killed()


@attack
def zombies(count):
    """Orphans that end at once: the first process of the sandbox has to collect them."""
    made = 0
    while made < int(count):
        pid = os.fork()
        if pid == 0:
            for _ in range(20):
                if os.fork() == 0:
                    os._exit(0)
            os._exit(0)
        os.waitpid(pid, 0)
        made += 20
    say("made", made)


@attack
def daemon():
    """Leaves a process that has left the session, ignores signals and holds standard output."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            sleep_until_killed()
        os._exit(0)
    os.wait()
    say("left", "a daemon")


def sleep_until_killed():
    while True:
        signal.pause()


@attack
def kill_everything():
    """Signals everything that it may signal, and still answers afterwards."""
    child = os.fork()
    if child == 0:
        sleep_until_killed()
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
        say(f"agent {number.name}", attempt(lambda number=number: os.kill(1, number)))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say("all SIGTERM", attempt(lambda: os.kill(-1, signal.SIGTERM)))
    ended, _ = os.waitpid(child, 0)
    say("control", ended == child)
    say("all SIGKILL", attempt(lambda: os.kill(-1, signal.SIGKILL)))


@attack
def stop_all():
    """Stops itself; only a time limit can end it."""
    say("control", "running")
    os.kill(os.getpid(), signal.SIGSTOP)
    say("went on", "running")


@attack
def wait_for(what):
    """Does not end by itself."""
    say("control", "running")
    if what == "stubborn":
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass
    elif what == "busy":
        while True:
            pass
    elif what == "sleep":
        time.sleep(600)
    elif what == "read":
        os.mkfifo("never")
        open("never").read()
    elif what == "child":
        subprocess.run([sys.executable, "-c", "import time; time.sleep(600)"])


@attack
def spin(seconds, threads):
    """Uses all processors it can get; says how much it got."""
    end = time.monotonic() + float(seconds)
    children = []
    for _ in range(int(threads)):
        pid = os.fork()
        if pid == 0:
            while time.monotonic() < end:
                pass
            os._exit(0)
        children.append(pid)
    say("spinning", len(children))
    began = time.monotonic()
    for pid in children:
        os.waitpid(pid, 0)
    elapsed = time.monotonic() - began
    used = os.times()
    say("share", (used.children_user + used.children_system) / elapsed)


# Memory


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


# Files


@attack
def fill_disk(folder, bound_mib):
    path = os.path.join(folder, "fill")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    say("control", os.write(fd, b"x"))
    taken, why = write_until_refused(fd, int(bound_mib) * MIB)
    os.close(fd)
    say("written", taken, why)
    say("write when full", attempt(lambda: write_one(folder)))
    os.unlink(path)
    say("write after deleting", attempt(lambda: write_one(folder)))


def write_one(folder):
    path = os.path.join(folder, "one")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(fd, bytes(65536))
    finally:
        os.close(fd)


@attack
def fill_inodes(folder, bound):
    made = os.path.join(folder, "many")
    os.mkdir(made)
    numbers = iter(range(int(bound)))

    def make():
        os.close(os.open(f"{made}/{next(numbers)}", os.O_CREAT | os.O_WRONLY))

    count, why = until_refused(make, int(bound))
    say("made", count, why)
    os.unlink(f"{made}/0")
    say("make after deleting", attempt(lambda: os.close(os.open(f"{made}/again", os.O_CREAT))))


@attack
def deep_tree(levels):
    """Folders in folders, deeper than a path may be long."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    made = 0
    for _ in range(int(levels)):
        try:
            os.mkdir("d", dir_fd=here)
        except OSError as error:
            say("why", errno_name(error.errno))
            break
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
        made += 1
    say("levels", made)
    fd = os.open("x\n\x1b[2J", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(fd, b"at the bottom")
    # The immutable bit, which even the owner could not take away again.
    flags = ctypes.c_long(0x10)
    say("immutable", "ok" if LIBC.ioctl(fd, 0x40086602, ctypes.byref(flags)) == 0 else "refused")


@attack
def many_files(count):
    os.mkdir("many")
    for number in range(int(count)):
        os.close(os.open(f"many/{number}\n", os.O_CREAT | os.O_WRONLY))
    say("made", len(os.listdir("many")))


DESCRIPTORS = {
    "file": lambda: os.open("/dev/null", os.O_RDONLY),
    "pipe": os.pipe,
    "epoll": lambda: checked(LIBC.epoll_create1(0)),
    "eventfd": lambda: os.eventfd(0),
    "timerfd": lambda: checked(LIBC.timerfd_create(1, 0)),
    "inotify": lambda: checked(LIBC.inotify_init1(0)),
    "socketpair": lambda: [side.detach() for side in socket.socketpair()],
}


def checked(value):
    if value == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return value


@attack
def descriptors(kind, bound):
    say("control", attempt(DESCRIPTORS[kind]))
    count, why = until_refused(DESCRIPTORS[kind], int(bound))
    say("opened", count, why)
    sleep_until_killed()


# Output


@attack
def flood(kind, bound_mib):
    """Writes output that no reader wants; standard error says how it went."""
    bound = int(bound_mib) * MIB
    block = {
        "no-newline": b"x" * 65536,
        "one-byte": b"x",
        "binary": bytes(range(256)) * 256,
        "invalid": b"\xff\xfe\x80\x00\x1b[2J\x1b]0;title\x07\r\x08" * 4096,
        "lines": b"y\n" * 32768,
    }[kind]
    written = 0
    while written < bound:
        written += os.write(1, block)
    os.write(2, json.dumps({"id": "written", "observed": written, "detail": ""}).encode() + b"\n")


@attack
def links(outside):
    """Plants names that lead outside or nowhere, of every kind a collector could follow."""
    os.symlink(outside, "link.txt")
    os.symlink(os.path.dirname(outside), "folder")
    os.symlink("/proc/self/environ", "environ.txt")
    os.symlink("/proc/1/root/etc/passwd", "root.txt")
    os.symlink("loop.txt", "loop.txt")
    os.symlink("../" * 40 + outside.lstrip("/"), "far.txt")
    os.mkfifo("fifo.txt")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket.txt")
    listener.close()
    with open("plain.txt", "w") as file:
        file.write("plain")
    os.link("plain.txt", "second.txt")
    say("device", attempt(lambda: os.mknod("device.txt", stat.S_IFCHR | 0o600, os.makedev(1, 5))))
    say("planted", sorted(os.listdir(".")))


@attack
def crash(how):
    say("control", "running")
    if how == "segv":
        ctypes.string_at(0)
    os.kill(os.getpid(), getattr(signal, how.upper(), signal.SIGSEGV))


if __name__ == "__main__":
    refuse_outside()
    ATTACKS[sys.argv[1]](*sys.argv[2:])
