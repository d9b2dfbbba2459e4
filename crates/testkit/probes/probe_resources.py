"""Group R, the harmless part: limits that can be looked at without reaching them."""

import ctypes
import fcntl
import os
import resource
import signal
import struct
import subprocess
import threading

from probe_raw import LIBC, attempt, call, child_outcome, errno_name, in_child, outcome
from probe_report import probe

LIMITS = sorted(name for name in dir(resource) if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE")


@probe("R3")
def memory_that_nobody_counts():
    path = "/tmp/uncounted"
    with open(path, "wb+") as file:
        acl = "system.posix_acl_access"
        yield "an access control list", attempt(lambda: os.setxattr(path, acl, access_list()))
        yield "an attribute", attempt(lambda: os.setxattr(path, "user.probe", b"x"))
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield "a lock of bytes as another process sees it", in_child(lambda: lock_on(file))
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    copied = subprocess.run(["cp", "-a", path, "/tmp/uncounted-copy"], capture_output=True, check=False)
    silent = copied.returncode == 0 and not copied.stderr
    yield "copying with attributes", "ok" if silent else copied.stderr.decode()
    os.unlink(path)
    os.unlink("/tmp/uncounted-copy")


def access_list():
    """One entry each for the owner, the group and others."""
    entries = [struct.pack("<HHI", tag, 7, 2**32 - 1) for tag in (0x01, 0x04, 0x20)]
    return struct.pack("<I", 2) + b"".join(entries)


def lock_on(file):
    """Whether a lock of another process stands in the way."""
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    kind = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked))[0]
    return "none" if kind == fcntl.F_UNLCK else "there"


@probe("R7")
def shared_limits():
    fd = LIBC.inotify_init1(0)
    yield "an inotify instance", "ok" if fd >= 0 else errno_name(ctypes.get_errno())
    if fd >= 0:
        os.close(fd)


@probe("R14")
def signals_to_the_agent():
    for name in ("SIGTERM", "SIGHUP", "SIGSTOP", "SIGKILL", "SIGSEGV", "SIGUSR1"):
        number = getattr(signal, name)
        yield name, attempt(lambda number=number: os.kill(1, number)) if os.getpid() > 1 else "init"
    yield "a signal by thread", child_outcome("tgkill", 1, 1, 0)
    yield "a signal by pidfd", in_child(signal_by_pidfd)
    queued = (ctypes.c_int32 * 32)(signal.SIGUSR2, 0, -1)
    yield "a queued signal", child_outcome("rt_tgsigqueueinfo", 1, 1, signal.SIGUSR2, queued)
    yield "a signal to oneself", attempt(lambda: os.kill(os.getpid(), 0))


def signal_by_pidfd():
    handle, error = call("pidfd_open", 1, 0)
    return error or outcome("pidfd_send_signal", handle, 0, None, 0)


@probe("R16", control=True)
def priorities():
    yield "lower the oom score", in_child(lambda: write_oom_score(-1))
    yield "raise the oom score", in_child(lambda: write_oom_score(999))
    yield "higher priority", in_child(lambda: attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, -10)))
    yield "lower priority", in_child(lambda: attempt(lambda: os.setpriority(os.PRIO_PROCESS, 0, 5)))
    yield "the agent's priority", in_child(lambda: attempt(lambda: os.setpriority(os.PRIO_PROCESS, 1, 5)))
    parameter = ctypes.c_int(1)
    for name, policy in (("fifo", 1), ("round robin", 2)):
        yield f"real time {name}", child_outcome("sched_setscheduler", 0, policy, ctypes.byref(parameter))
    real_time_class = 1 << 13
    yield "real time input and output", child_outcome("ioprio_set", 1, 0, real_time_class)
    yield "lock all memory", in_child(lock_all_memory)


def write_oom_score(by):
    with open("/proc/self/oom_score_adj") as file:
        now = int(file.read())
    wanted = max(-1000, min(1000, now + by))
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write(str(wanted))
    return "ok"


def lock_all_memory():
    # More than any sandbox may lock, so that a small allowance does not look like freedom.
    area = ctypes.create_string_buffer(64 * 1024 * 1024)
    answer = outcome("mlockall", 1)
    del area
    return answer


@probe("R17")
def control_groups():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        kinds = [line.partition(" - ")[2].split()[0] for line in file]
    yield "mounted", sorted(kind for kind in kinds if kind.startswith("cgroup"))
    for path in (
        "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/release_agent",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/release_agent",
    ):
        yield path, attempt(lambda path=path: os.close(os.open(path, os.O_WRONLY)))
    yield "seen from outside the root", outside_cgroups()


def outside_cgroups():
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        return sorted(row.strip() for row in file if ":/.." in row and ":/../" not in row)


@probe("R20", control=True)
def resource_limits():
    values = {name[7:]: list(resource.getrlimit(getattr(resource, name))) for name in LIMITS}
    # Limits whose two halves differ could be raised.
    yield "raisable", sorted(name for name, (soft, hard) in values.items() if soft != hard)
    yield "core", values["CORE"]
    yield "open files", values["NOFILE"]
    yield "file size", values["FSIZE"]
    for name in ("NOFILE", "FSIZE", "CORE", "MEMLOCK", "MSGQUEUE", "NICE", "RTPRIO"):
        yield f"raise {name}", in_child(lambda name=name: raise_limit(getattr(resource, "RLIMIT_" + name)))
    yield "lower one's own", in_child(lower_limit)


def raise_limit(which):
    _, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY:
        return "unlimited"
    try:
        resource.setrlimit(which, (hard + 1, hard + 1))
    except ValueError:
        return "EPERM"
    return "ok"


def lower_limit():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    return "ok"


@probe("R15")
def parts_of_the_agent():
    yield "threads of the agent", attempt(lambda: os.listdir("/proc/1/task"))
    yield "descriptors of the agent", attempt(lambda: os.listdir("/proc/1/fd"))
    yield "threads of one's own", len(os.listdir("/proc/self/task")) >= threading.active_count()
