"""Prints what a workload can see of its own posture, one line for each thing."""

import ctypes
import errno
import os
import resource
import signal
import socket

libc = ctypes.CDLL(None, use_errno=True)


def attempt(work):
    try:
        return repr(work())
    except OSError as error:
        return errno.errorcode[error.errno]


def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    return result, errno.errorcode.get(ctypes.get_errno())


def read(path):
    with open(path) as file:
        return file.read()


def abstract_socket():
    one = socket.socket(socket.AF_UNIX)
    one.bind("\0glovebox-look")
    one.listen()
    return socket.socket(socket.AF_UNIX).connect("\0glovebox-look")


status = dict(line.split(":", 1) for line in read("/proc/self/status").splitlines())
for name in (
    "Name Umask TracerPid Uid Gid Groups NStgid Threads SigQ SigPnd ShdPnd SigBlk SigIgn CapInh "
    "CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp Seccomp_filters Cpus_allowed Mems_allowed "
    "Speculation_Store_Bypass SpeculationIndirectBranch CoreDumping"
).split():
    # Of ids in the box only how many there are: the first process is the agent's.
    value = len(status[name].split()) if name == "NStgid" else status[name].strip()
    print(name, value)
print(read("/proc/self/limits"))
print(read("/proc/self/mountinfo"))
for file in ("cgroup", "uid_map", "gid_map", "setgroups", "oom_score_adj", "loginuid", "sessionid"):
    print(file, attempt(lambda file=file: read(f"/proc/self/{file}")))
for space in "user mnt net ipc uts pid pid_for_children cgroup time".split():
    print(space, os.readlink(f"/proc/self/ns/{space}"))
print(os.getcwd(), os.readlink("/proc/self/root"), os.getppid(), os.uname().nodename)
print(os.getsid(0) == os.getpid() == os.getpgid(0), os.getgroups(), os.getpriority(os.PRIO_PROCESS, 0))
print(os.sched_getscheduler(0) if hasattr(os, "sched_getscheduler") else None, os.sched_getaffinity(0))
# Dumpable, kept capabilities, filters, securebits, timer slack, new privileges, huge pages.
for option in (3, 7, 21, 27, 30, 39, 42):
    print("prctl", option, libc.prctl(option, 0, 0, 0, 0))
# Death signal, subreaper.
for option in (2, 37):
    value = ctypes.c_int(-1)
    print("prctl", option, libc.prctl(option, ctypes.byref(value), 0, 0, 0), value.value)
print(hex(libc.personality(ctypes.c_ulong(0xFFFFFFFF))))
limits = [name for name in sorted(dir(resource)) if name.startswith("RLIMIT_")]
print([(name, resource.getrlimit(getattr(resource, name))) for name in limits])
for folder in ("/", "/opt", "/proc", "/dev", "/mnt", "/workspace"):
    names = sorted(name for name in os.listdir(folder) if not name.isdigit())
    print(folder, names)
print("sees process 1", os.path.exists("/proc/1"))
for path in (
    "/opt/glovebox/bin/glovebox-exec",
    "/opt/glovebox/bin/glovebox-agent",
    "/etc",
    "/usr/bin/env",
    "/dev/zero",
    "/proc/1/environ",
):
    print(path, attempt(lambda path=path: len(os.read(os.open(path, os.O_RDONLY), 4))))
closed = ("/usr/x", "/etc/x", "/opt/x", "/dev/x", "/proc/self/comm")
for path in (*closed, "/tmp/x", "/workspace/x", "/dev/shm/x"):
    print(path, attempt(lambda path=path: os.write(os.open(path, os.O_WRONLY | os.O_CREAT), b"x")))
for folder in ("/tmp", "/workspace", "/dev/shm"):
    made = os.statvfs(folder)
    print(folder, made.f_blocks, made.f_files, made.f_flag)
print(attempt(lambda: os.mknod("/tmp/node", 0o600 | 0o020000)))
print(attempt(lambda: os.kill(1, signal.SIGTERM)), attempt(lambda: os.kill(1, 0)))
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
    print(family, attempt(lambda family=family: socket.socket(family).family))
print("abstract", attempt(abstract_socket))
if os.uname().machine == "x86_64":
    for number in (101, 155, 161, 165, 166, 272, 308, 310, 317, 321, 323, 425, 435, 438, 444):
        print("call", number, call(number, 0, 0, 0, 0, 0))
print(attempt(lambda: os.setxattr("/tmp/x", "user.x", b"x")))
for path in ("/tmp/x", "/workspace/x", "/dev/shm/x", "/tmp/node"):
    attempt(lambda path=path: os.unlink(path))
