"""Programs that attack the limits of the sandbox they run in, one a run: `hostile.py NAME [ARGS]`.

Each goes on until it is stopped or until a bound of its own, a little above the limit, so that
even a sandbox without limits does no harm to the machine. Each says what it saw, one JSON
document a line; the first line is a control, done before the attack.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import hostile_files  # noqa: F401 - enters its attacks
import hostile_memory  # noqa: F401 - enters its attacks
from hostile_attack import ATTACKS, MIB, attack, say, until_refused
from probe_raw import LIBC, attempt, call
from probe_report import refuse_outside

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
def reach_every_number():
    """Tries to signal, open and read every process that there could be, whoever's it is."""
    child = os.fork()
    if child == 0:
        sleep_until_killed()
    reached = {"signalled": [], "opened": [], "read": []}
    for pid in range(2, 8_192):
        if pid == os.getpid():
            continue
        if call("pidfd_open", pid, 0)[1] is None:
            reached["opened"].append(pid)
        if attempt(lambda pid=pid: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))) == "ok":
            reached["read"].append(pid)
        if attempt(lambda pid=pid: os.kill(pid, signal.SIGKILL)) == "ok":
            reached["signalled"].append(pid)
    os.waitpid(child, 0)
    say("control", child in reached["signalled"])
    say("reached", reached)


@attack
def close_everything():
    """Closes every descriptor, the line to the agent included."""
    say("control", "running")
    os.closerange(0, 4096)


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
def flood_both(bound_mib):
    """Writes to both streams what nobody wants."""
    say("control", "running")
    block = b"z" * 65535 + b"\n"
    for _ in range(int(bound_mib) * 8):
        os.write(1, block)
        os.write(2, block)


@attack
def crash(how):
    say("control", "running")
    if how == "segv":
        ctypes.string_at(0)
    os.kill(os.getpid(), getattr(signal, how.upper(), signal.SIGSEGV))


def main(words):
    refuse_outside()
    name, *arguments = words
    ATTACKS[name](*arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
