"""Two sides of a test whether sandboxes, or executions of one, notice each other.

`sibling.py hold NAME ARGS` does something that another side could notice, says `ready`, holds on
until it is interrupted, and then says what it noticed itself. `sibling.py look NAME ARGS` is the
other side.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys

from probe_raw import LIBC, attempt, call, errno_name
from probe_report import refuse_outside

HOLDS = {}
LOOKS = {}


def hold(function):
    HOLDS[function.__name__.replace("_", "-")] = function
    return function


def look(function):
    LOOKS[function.__name__.replace("_", "-")] = function
    return function


def say(name, observed, detail=""):
    print(json.dumps({"id": name, "observed": observed, "detail": detail}), flush=True)


def until_interrupted(ready=True):
    """Waits for the interrupt that ends a hold."""
    if ready:
        say("ready", "ready")
    signal.sigwait({signal.SIGINT})


# Locks and file events on files that sandboxes may share.


def lock(path):
    fd = os.open(path, os.O_RDONLY)
    return fd, attempt(lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB))


@hold
def hold_lock(path):
    fd, answer = lock(path)
    say("lock", answer)
    # The control: somebody else on this side does notice.
    _, second = lock(path)
    say("second lock", second)
    say("lease", attempt(lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)))
    until_interrupted()


@look
def look_lock(path):
    _, answer = lock(path)
    say("lock", answer)


IN_EVERYTHING = 0xFFF


def watch(*paths):
    watcher = LIBC.inotify_init1(os.O_NONBLOCK)
    if watcher < 0:
        raise OSError(ctypes.get_errno(), "no watch")
    for path in paths:
        if LIBC.inotify_add_watch(watcher, path.encode(), IN_EVERYTHING) < 0:
            raise OSError(ctypes.get_errno(), "no watch")
    return watcher


def events_of(watcher):
    data = b""
    while select.select([watcher], [], [], 0)[0]:
        data += os.read(watcher, 65536)
    count = 0
    while data:
        _, _, _, length = struct.unpack_from("iIII", data)
        data = data[16 + length :]
        count += 1
    return count


def use(path):
    with open(path, "rb") as file:
        file.read(4096)
    os.stat(path)
    os.listdir(os.path.dirname(path))


@hold
def hold_watch(path):
    folder = os.path.dirname(path)
    watcher = watch(path, folder)
    notified = []
    signal.signal(signal.SIGIO, lambda *_: notified.append(1))
    fd = os.open(folder, os.O_RDONLY)
    use(path)
    say("own events", events_of(watcher) > 0)
    say("dnotify", attempt(lambda: fcntl.fcntl(fd, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)))
    until_interrupted()
    say("events", events_of(watcher))
    say("notifications", len(notified))


@look
def look_watch(path):
    use(path)
    say("used", path)


# Names of inter-process communication.


IPC_CREAT, IPC_EXCL = 0o1000, 0o2000


def ipc_calls(key, flags, name, shm_flags):
    yield "shared memory", call("shmget", key, 4096, flags)
    yield "message queue", call("msgget", key, flags)
    yield "semaphore", call("semget", key, 1, flags)
    mode = os.O_RDWR | (os.O_CREAT if flags & IPC_CREAT else 0)
    yield "posix queue", call("mq_open", name.encode(), mode, 0o600, None)
    path = f"/dev/shm/{name}"
    yield "memory file", (0, attempt(lambda: os.close(os.open(path, shm_flags, 0o600))))
    yield "key", call("request_key", b"user", name.encode(), None, 0)


def report_ipc(rows):
    for what, (_, error) in rows:
        say(what, error or "ok")


@hold
def hold_ipc(key, name):
    call("add_key", b"user", name.encode(), b"x", 1, -4)
    flags = IPC_CREAT | 0o666
    report_ipc(ipc_calls(int(key), flags, name, os.O_CREAT | os.O_RDWR))
    # The control: on this side the memory file is there.
    say("own memory file", os.path.exists(f"/dev/shm/{name}"))
    until_interrupted()


@look
def look_ipc(key, name):
    report_ipc(ipc_calls(int(key), 0, name, os.O_RDWR))


# Sockets by name.


@hold
def hold_abstract(name):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + name)
    listener.listen()
    path = f"/tmp/{name}"
    beside = socket.socket(socket.AF_UNIX)
    beside.bind(path)
    beside.listen()
    os.chmod(path, 0o777)
    say("own connection", connect("\0" + name))
    say("process", os.getpid())
    until_interrupted()


def connect(address):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(2)
        return attempt(lambda: sock.connect(address))


@look
def look_abstract(name):
    say("abstract", connect("\0" + name))
    say("by path", connect(f"/tmp/{name}"))


@hold
def hold_listener(path):
    """Waits for connections to a socket in the workspace that nobody outside should make."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    say("own connection", connect(path))
    listener.accept()[0].close()
    until_interrupted()
    listener.setblocking(False)
    seen = 0
    while attempt(lambda: listener.accept()[0].close()) == "ok":
        seen += 1
    say("connections", seen)


# Processes.


@hold
def hold_process(word):
    """Has a word in its arguments, its environment and its memory."""
    os.environ["SIBLING_WORD"] = word
    say("process", os.getpid())
    until_interrupted()


@look
def look_process(word, pid):
    """Looks for a process of another execution or sandbox."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{entry}/{name}", "rb") as file:
                    if word.encode() in file.read():
                        found.append(name)
            except OSError:
                continue
    say("found in", sorted(set(found)))
    pid = int(pid)
    say("signal", attempt(lambda: os.kill(pid, 0)))
    say("memory", attempt(lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))))
    say("descriptors", attempt(lambda: os.listdir(f"/proc/{pid}/fd")))
    say("own memory", attempt(lambda: os.close(os.open("/proc/self/mem", os.O_RDONLY))))


# Limits that a user's sandboxes could share.


@hold
def hold_instances(bound):
    held = []
    why = "never refused"
    while len(held) < int(bound):
        fd = LIBC.inotify_init1(0)
        if fd < 0:
            why = errno_name(ctypes.get_errno())
            break
        held.append(fd)
    say("instances", len(held), why)
    pipes = []
    why = "never refused"
    while len(pipes) < int(bound):
        try:
            reader, writer = os.pipe()
        except OSError as error:
            why = errno_name(error.errno)
            break
        pipes.append((reader, writer))
        attempt(lambda writer=writer: fcntl.fcntl(writer, 1031, 1024 * 1024))
    say("pipes", len(pipes), why)
    until_interrupted()


@look
def look_instances():
    say("an instance", "ok" if LIBC.inotify_init1(0) >= 0 else errno_name(ctypes.get_errno()))
    reader, writer = os.pipe()
    say("a large pipe", attempt(lambda: fcntl.fcntl(writer, 1031, 256 * 1024)))
    os.close(reader)


# What one sandbox leaves for the next.


@look
def plant(text):
    """Leaves a word wherever memory can be: heap, mapped memory, every writable folder."""
    word = bytes.fromhex(text)
    block = word * (1024 * 1024 // len(word))
    heap = [bytes(block) for _ in range(48)]
    for folder in ("/workspace", "/tmp", "/dev/shm"):
        with open(os.path.join(folder, "planted"), "wb") as file:
            for _ in range(16):
                file.write(block)
    say("planted", len(heap))


# Descriptors sent over the kernel's line to the agent.


def send_rights_on_every_socket(count=20):
    """Sends descriptors on each socket that this process has, as a kernel could to its agent."""
    sent = 0
    for fd in range(3, 256):
        try:
            sock = socket.socket(fileno=os.dup(fd))
        except OSError:
            continue
        with sock:
            rights = [os.open("/dev/null", os.O_RDONLY) for _ in range(count)]
            frame = b'{"type":"ack","seq":0}'
            try:
                sock.setblocking(False)
                socket.send_fds(sock, [struct.pack(">I", len(frame)) + frame], rights)
                sent += 1
            except OSError:
                pass
            finally:
                for right in rights:
                    os.close(right)
    return sent


def main(arguments):
    refuse_outside()
    # The interrupt is waited for, and must not come as an exception.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    side, name, *rest = arguments
    if side == "hold":
        HOLDS[f"hold-{name}"](*rest)
    else:
        table = LOOKS
        table.get(f"look-{name}", table.get(name))(*rest)


if __name__ == "__main__":
    main(sys.argv[1:])
