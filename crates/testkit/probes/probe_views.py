"""Group K, second half: terminals, and what of the machine a sandboxed program sees."""

import ctypes
import mmap
import os
import socket

from probe_kernel import read
from probe_raw import LIBC, attempt, call, child_outcome, in_child, outcome
from probe_report import probe

TIOCSTI, TIOCLINUX = 0x5412, 0x541C


@probe("K16", control=True)
def personality_and_terminals():
    yield "query personality", child_outcome("personality", 0xFFFFFFFF)
    yield "no address randomisation", child_outcome("personality", 0x0040000)
    yield "read implies execute", child_outcome("personality", 0x0400000)
    null = os.open("/dev/null", os.O_RDONLY)
    letter = ctypes.create_string_buffer(b"x", 1)
    yield "push terminal input", outcome("ioctl", null, TIOCSTI, letter)
    yield "push terminal input behind high bits", outcome("ioctl", null, (1 << 32) | TIOCSTI, letter)
    yield "console control", outcome("ioctl", null, TIOCLINUX, letter)
    yield "another ioctl", outcome("ioctl", null, 0x541B, letter)
    os.close(null)
    yield "open the terminal", attempt(lambda: os.close(os.open("/dev/tty", os.O_RDWR)))
    yield "terminals among 0, 1, 2", [fd for fd in (0, 1, 2) if os.isatty(fd)]
    yield "session is one's own", os.getsid(0) > 1


PROC_FILES = (
    "kcore", "kallsyms", "kmsg", "keys", "key-users", "timer_list", "sched_debug",
    "sysrq-trigger", "scsi", "acpi", "config.gz", "modules", "interrupts", "iomem", "ioports",
    "slabinfo", "vmallocinfo", "pagetypeinfo", "mounts/..", "sys/kernel/core_pattern",
    "sys/kernel/random/boot_id", "sys/vm/drop_caches", "cmdline", "cpuinfo", "meminfo", "bus",
    "fs", "irq", "tty", "partitions", "diskstats", "self/../uptime", "version",
)


@probe("K17")
def processes_and_kernel_files():
    entries = os.listdir("/proc")
    yield "entries besides processes", sorted(name for name in entries if not name.isdigit())
    own = os.getuid()
    owners = set()
    for name in entries:
        if name.isdigit():
            try:
                owners.add(os.stat(f"/proc/{name}").st_uid == own)
            except FileNotFoundError:
                continue
    yield "processes of others", False in owners
    yield "own process", str(os.getpid()) in entries
    yield "kernel files", sorted(name for name in PROC_FILES if os.path.lexists(f"/proc/{name}"))
    yield "highest process id", max(int(name) for name in entries if name.isdigit()) < 100_000


@probe("K18")
def devices():
    try:
        yield "sys", sorted(os.listdir("/sys"))
    except FileNotFoundError:
        yield "sys", []
    yield "dev", sorted(os.listdir("/dev"))
    yield "write to null", attempt(lambda: open("/dev/null", "w").write("x"))
    yield "read zeros", open("/dev/zero", "rb").read(4).hex()
    yield "full is full", attempt(write_to_full)


def write_to_full():
    fd = os.open("/dev/full", os.O_WRONLY)
    try:
        os.write(fd, b"x")
    finally:
        os.close(fd)


@probe("K20", control=True)
def second_wall():
    # What the mounts would allow.
    null = os.open("/dev/null", os.O_RDONLY)
    state = ctypes.create_string_buffer(64)
    yield "an ioctl of a device", outcome("ioctl", null, 0x5401, state)
    os.close(null)
    for name in ("glovebox-agent", "glovebox-exec"):
        yield f"read {name}", attempt(lambda name=name: read_start(f"/opt/glovebox/bin/{name}"))
        yield f"run {name}", in_child(lambda name=name: run_program(f"/opt/glovebox/bin/{name}"))


def read_start(path):
    with open(path, "rb") as file:
        file.read(4)


def run_program(path):
    os.execv(path, [path])


@probe("K21", control=True)
def page_cache():
    # Which pages of shared files are in memory tells what others have read.
    with open("/bin/sh", "rb") as file:
        size = (ctypes.c_uint64 * 2)(0, 4096)
        answer = (ctypes.c_uint64 * 5)()
        yield "cachestat", outcome("cachestat", file.fileno(), size, answer, 0)


@probe("K23")
def identity():
    name = os.uname()
    yield "node name", name.nodename
    yield "domain name", read_domain_name()
    yield "host name", socket.gethostname()
    texts = {"uname": " ".join((name.sysname, name.nodename, name.release, name.version, name.machine))}
    for path in (
        "/proc/self/mountinfo", "/proc/self/mounts", "/proc/self/mountstats", "/proc/self/cgroup",
        "/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostname", "/etc/hosts", "/etc/passwd",
        "/etc/group", "/etc/resolv.conf", "/etc/os-release", "/proc/sys/kernel/random/boot_id",
        "/proc/cpuinfo", "/proc/version", "/proc/cmdline", "/proc/self/maps", "/proc/self/environ",
        "/etc/localtime", "/etc/timezone", "/.dockerenv", "/run/.containerenv",
    ):
        try:
            texts[path] = read(path)
        except OSError:
            continue
    yield "texts", texts
    yield "cgroup", sorted(read("/proc/self/cgroup").splitlines())


def read_domain_name():
    buffer = ctypes.create_string_buffer(65)
    LIBC.getdomainname(buffer, ctypes.sizeof(buffer))
    return buffer.value.decode()


@probe("K24", control=True)
def merged_memory():
    # PR_GET_MEMORY_MERGE: whether this process's pages may be merged with those of others.
    value, error = call("prctl", 68, 0, 0, 0, 0)
    yield "merged", error or value
    yield "ask for merging", in_child(lambda: outcome("prctl", 67, 1, 0, 0, 0))
    area = mmap.mmap(-1, 4096)
    yield "advise merging", attempt(lambda: area.madvise(12))
    area.close()
