"""Group S: whether anything that is nobody's business in a sandbox can be found in it."""

import ctypes
import mmap
import os
import signal

from probe_kernel import read
from probe_raw import LIBC, attempt, child_outcome, in_child
from probe_report import probe

SECRET_WORDS = (
    "TOKEN", "KEY", "SECRET", "PASSW", "CREDENTIAL", "KUBERNETES", "PROXY", "AUTH", "SESSION",
    "GATEWAY", "AWS_", "AZURE_", "GOOGLE_", "CARGO", "RUST",
)

# Names whose meaning the harness gave itself.
OWN = ("PROBE_",)


@probe("S1")
def environment():
    names = sorted(name for name in os.environ if not name.startswith(OWN))
    yield "names", names
    yield "secret names", [name for name in names if any(word in name.upper() for word in SECRET_WORDS)]


@probe("S2")
def the_agent():
    for name in ("environ", "mem", "maps", "fd", "auxv", "stack", "syscall", "io", "cwd", "exe", "root"):
        yield f"/proc/1/{name}", attempt(lambda name=name: look(f"/proc/1/{name}"))
    yield "own environ", attempt(lambda: look("/proc/self/environ"))
    yield "agent's program", attempt(lambda: look("/opt/glovebox/bin/glovebox-exec"))


def look(path):
    if os.path.islink(path):
        os.readlink(path)
    elif os.path.isdir(path):
        os.listdir(path)
    else:
        with open(path, "rb") as file:
            file.read(1)


@probe("S4", control=True)
def core_dumps():
    before = set(os.listdir("."))
    yield "a crash", in_child(lambda: os.kill(os.getpid(), signal.SIGSEGV))
    new = sorted(set(os.listdir(".")) - before)
    yield "core files", [name for name in new if "core" in name]


@probe("S5", control=True)
def logs():
    yield "kernel log", child_outcome("syslog", 10, None, 0)
    yield "read the kernel log", child_outcome("syslog", 3, None, 0)
    for path in ("/dev/kmsg", "/proc/kmsg", "/dev/log", "/run/systemd/journal/socket", "/var/log/syslog"):
        yield path, attempt(lambda path=path: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)))


def canary_patterns():
    """What must not be found. It comes with every bit turned, so that looking does not plant it."""
    for text in os.environ.get("PROBE_CANARY_INVERTED", "").split():
        yield bytes.fromhex(text)


def holds(data, inverted):
    pattern = bytes(byte ^ 0xFF for byte in inverted)
    return pattern in data


@probe("S3")
def canary():
    found = []
    for inverted in canary_patterns():
        for path in readable_texts():
            try:
                with open(path, "rb") as file:
                    if holds(file.read(1 << 20), inverted):
                        found.append(path)
            except OSError:
                continue
    yield "places", sorted(found)
    yield "looked at", len(list(readable_texts())) > 3


def readable_texts():
    for entry in os.listdir("/proc"):
        if entry.isdigit() or entry == "self":
            for name in ("environ", "cmdline", "mountinfo", "comm", "status", "cgroup"):
                yield f"/proc/{entry}/{name}"
    for folder in ("/workspace", "/tmp", "/dev/shm", "/etc", "/opt/glovebox/lib"):
        for place, _, files in os.walk(folder):
            for name in files:
                yield os.path.join(place, name)


@probe("S11")
def memory_of_others():
    found = []
    size = 64 * 1024 * 1024
    for inverted in canary_patterns():
        area = mmap.mmap(-1, size)
        if holds(area, inverted):
            found.append("anonymous memory")
        area.close()
        for folder in ("/workspace", "/tmp", "/dev/shm"):
            path = os.path.join(folder, f"fresh-{os.getpid()}")
            fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                os.posix_fallocate(fd, 0, 1024 * 1024)
                if holds(os.pread(fd, 1024 * 1024, 0), inverted):
                    found.append(folder)
            finally:
                os.close(fd)
                os.unlink(path)
    yield "places", sorted(found)
    yield "own memory", sorted({name for inverted in canary_patterns() for name in own_memory_with(inverted)})


def own_memory_with(inverted):
    """The mappings of this process that hold a pattern, but for the one copy to search with."""
    # Made byte by byte: no other copy of it may come into being.
    needle = (ctypes.c_ubyte * len(inverted))()
    for index, byte in enumerate(inverted):
        needle[index] = byte ^ 0xFF
    LIBC.memmem.restype = ctypes.c_void_p
    for line in read("/proc/self/maps").splitlines():
        place, rights, _, _, _, *name = line.split(maxsplit=5)
        first, last = (int(word, 16) for word in place.split("-"))
        while rights == "rw-p" and first < last:
            rest = ctypes.c_void_p(first), ctypes.c_size_t(last - first)
            found = LIBC.memmem(*rest, needle, ctypes.c_size_t(len(inverted)))
            if found is None:
                break
            if found != ctypes.addressof(needle):
                yield name[0] if name else "anonymous"
                break
            first = found + 1
