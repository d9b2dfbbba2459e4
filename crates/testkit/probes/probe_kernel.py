"""Group K, first half: what the kernel lets a sandboxed program do."""

import ctypes
import fcntl
import mmap
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading

from probe_raw import (
    MACHINE,
    NOT_HERE,
    NUMBERS,
    attempt,
    call,
    call_number,
    child_outcome,
    errno_name,
    in_child,
    outcome,
)
from probe_report import probe

NAMESPACES = {
    "user": 0x10000000,
    "pid": 0x20000000,
    "mnt": 0x00020000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
    "time": 0x00000080,
}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def status_of(task="self"):
    fields = {}
    for line in read(f"/proc/{task}/status").splitlines():
        name, _, value = line.partition(":")
        fields[name] = value.strip()
    return fields


@probe("K1")
def namespaces():
    seen = {}
    for name in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
        seen[name] = os.stat(f"/proc/self/ns/{name}").st_ino
    yield "namespaces", seen


@probe("K2")
def ids():
    yield "uid", list(os.getresuid())
    yield "gid", list(os.getresgid())
    yield "groups", sorted(os.getgroups())
    for name in ("uid_map", "gid_map"):
        rows = [[int(word) for word in row.split()] for row in read(f"/proc/self/{name}").splitlines()]
        yield name, rows
        yield f"{name} holds id 0", any(first == 0 for first, _, _ in rows)
    yield "setgroups", read("/proc/self/setgroups").strip()
    yield "setuid 0", child_outcome("setuid", 0)
    yield "setgid 0", child_outcome("setgid", 0)
    none = (ctypes.c_uint * 1)(0)
    yield "set groups", child_outcome("setgroups", 1, none)


def every_thread(fields):
    """The distinct values of status fields over several threads."""
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    seen = set()
    try:
        for task in os.listdir("/proc/self/task"):
            status = status_of(f"self/task/{task}")
            seen.add(tuple(status[name] for name in fields))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return sorted(list(row) for row in seen)


@probe("K3", control=True)
def capabilities():
    fields = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    yield "threads", every_thread(fields)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(1, 1, 0, 0, 0, 0)
    yield "capset", child_outcome("capset", header, data)


@probe("K4", control=True)
def no_new_privileges():
    yield "threads", every_thread(("NoNewPrivs", "Seccomp"))
    child = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True)
    fields = dict(line.split(":\t", 1) for line in child.stdout.splitlines() if ":\t" in line)
    yield "after exec", [fields["NoNewPrivs"].strip(), fields["Seccomp"].strip()]


@probe("K5", control=True)
def setuid_file():
    path = f"setuid-{os.getpid()}"
    # By its name: a copied kernel's own program lies on its template's file system.
    with open(sys.executable, "rb") as source, open(path, "wb") as target:
        target.write(source.read())
    try:
        os.chmod(path, 0o6755)
        kept = stat.S_IMODE(os.stat(path).st_mode)
        yield "mode of one's own set-id file", oct(kept)
        report = "import os; print(os.getresuid(), os.getresgid())"
        environment = {**os.environ, "PYTHONHOME": sys.prefix}
        plain, setid = (
            subprocess.run([program, "-c", report], capture_output=True, text=True, env=environment)
            for program in (sys.executable, os.path.abspath(path))
        )
        yield "set-id gains nothing", setid.stdout == plain.stdout != "", setid.stdout + setid.stderr
    finally:
        os.unlink(path)
    mounts = [line.split() for line in read("/proc/self/mountinfo").splitlines()]
    yield "mounts without nosuid", sorted(row[4] for row in mounts if "nosuid" not in row[5].split(","))
    yield "file capabilities", in_child(set_file_capability)


def set_file_capability():
    path = f"filecap-{os.getpid()}"
    open(path, "w").close()
    try:
        # Version 2, effective, CAP_SETUID.
        value = struct.pack("<5I", 0x02000001, 1 << 7, 0, 0, 0)
        return attempt(lambda: os.setxattr(path, "security.capability", value))
    finally:
        os.unlink(path)


@probe("K6", control=True)
def new_namespaces():
    for name, flag in NAMESPACES.items():
        yield f"unshare {name}", child_outcome("unshare", flag)
        if name != "time":
            yield f"clone {name}", in_child(lambda flag=flag: clone_with(flag))
    handle = os.open("/proc/self/ns/uts", os.O_RDONLY)
    try:
        yield "setns", child_outcome("setns", handle, 0)
    finally:
        os.close(handle)
    yield "setns by pidfd", in_child(setns_by_pidfd)
    yield "clone3", in_child(plain_clone3)
    yield "clone without flags", in_child(lambda: clone_with(0))


def clone_with(flag):
    value, error = call("clone", flag | signal.SIGCHLD, None, None, None, None)
    if value == 0:
        os._exit(0)
    if error:
        return error
    os.waitpid(value, 0)
    return "ok"


def plain_clone3():
    arguments = (ctypes.c_uint64 * 8)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    value, error = call("clone3", arguments, ctypes.sizeof(arguments))
    if value == 0:
        os._exit(0)
    if error:
        return error
    os.waitpid(value, 0)
    return "ok"


def setns_by_pidfd():
    return outcome("setns", os.pidfd_open(os.getpid()), NAMESPACES["uts"])


@probe("K7", control=True)
def mounting():
    nothing = b"/nonexistent"
    yield "mount", child_outcome("mount", nothing, nothing, b"tmpfs", 0, None)
    yield "remount", child_outcome("mount", None, b"/dev/shm", None, 0x1000 | 0x20 | 2 | 4, None)
    yield "umount2", child_outcome("umount2", nothing, 0)
    yield "pivot_root", child_outcome("pivot_root", nothing, nothing)
    yield "chroot", child_outcome("chroot", b"/")
    yield "fsopen", child_outcome("fsopen", b"tmpfs", 0)
    yield "fspick", child_outcome("fspick", -100, b"/", 0)
    yield "fsmount", child_outcome("fsmount", -1, 0, 0)
    yield "open_tree", child_outcome("open_tree", -100, b"/", 0)
    yield "move_mount", child_outcome("move_mount", -1, b"", -1, b"", 0)
    yield "mount_setattr", child_outcome("mount_setattr", -1, b"", 0, None, 0)


@probe("K8", control=True)
def other_processes():
    yield "ptrace traceme", child_outcome("ptrace", 0, 0, None, None)
    yield "ptrace seize a child", with_child(lambda pid: outcome("ptrace", 0x4206, pid, None, None))
    yield "read a child's memory", with_child(read_memory)
    yield "write a child's memory", with_child(write_memory)
    yield "open a child's memory file", with_child(
        lambda pid: attempt(lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)))
    )
    yield "take a child's descriptor", with_child(take_descriptor)
    yield "compare with a child", with_child(lambda pid: outcome("kcmp", os.getpid(), pid, 1, 0, 0))
    yield "advise a child's memory", with_child(advise_memory)
    yield "read the agent's memory", in_child(lambda: read_memory(1))
    yield "ptrace seize the agent", in_child(lambda: outcome("ptrace", 0x4206, 1, None, None))
    yield "agent by pidfd", in_child(lambda: take_descriptor(1))
    yield "own child is seen", with_child(lambda pid: attempt(lambda: os.kill(pid, 0)))


def with_child(act):
    """Runs `act` on a child that sleeps."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.pause()
        finally:
            os._exit(0)
    try:
        return in_child(lambda: act(pid))
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


TARGET = ctypes.create_string_buffer(b"a word in memory", 16)


def read_memory(pid):
    into = ctypes.create_string_buffer(16)
    here = Iovec(ctypes.addressof(into), 16)
    there = Iovec(ctypes.addressof(TARGET), 16)
    return outcome("process_vm_readv", pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)


def write_memory(pid):
    here = Iovec(ctypes.addressof(TARGET), 16)
    return outcome("process_vm_writev", pid, ctypes.byref(here), 1, ctypes.byref(here), 1, 0)


def take_descriptor(pid):
    handle, error = call("pidfd_open", pid, 0)
    if error:
        return error
    return outcome("pidfd_getfd", handle, 0, 0)


def advise_memory(pid):
    handle, error = call("pidfd_open", pid, 0)
    if error:
        return error
    page = ctypes.addressof(TARGET) & ~4095
    there = Iovec(page, 4096)
    cold = 20
    return outcome("process_madvise", handle, ctypes.byref(there), 1, cold, 0)


@probe("K9")
def descriptors():
    yield "open", open_descriptors()


def open_descriptors():
    """Number and kind of every open descriptor."""
    seen = {}
    for fd in range(os.sysconf("SC_OPEN_MAX")):
        try:
            fcntl.fcntl(fd, fcntl.F_GETFD)
        except OSError:
            continue
        seen[str(fd)] = kind_of(fd)
    return seen


def kind_of(fd):
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        sock = socket.socket(fileno=os.dup(fd))
        with sock:
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return "listening socket"
            return "socket"
    for test, name in (
        (stat.S_ISFIFO, "pipe"),
        (stat.S_ISDIR, "directory"),
        (stat.S_ISREG, "file"),
        (stat.S_ISBLK, "block device"),
    ):
        if test(mode):
            return name
    if stat.S_ISCHR(mode):
        return f"device {os.major(os.fstat(fd).st_rdev)}:{os.minor(os.fstat(fd).st_rdev)}"
    return os.readlink(f"/proc/self/fd/{fd}")


@probe("K10")
def place():
    yield "getcwd", os.getcwd()
    yield "cwd", os.readlink("/proc/self/cwd")
    yield "root", os.readlink("/proc/self/root")
    here, above = os.stat("/"), os.stat("/..")
    yield "above root is root", (here.st_dev, here.st_ino) == (above.st_dev, above.st_ino)


# Arguments with which a privileged caller changes nothing, but gets another answer than
# somebody for whom the call does not exist.
RARE_CALLS = {
    "bpf": (0, None, 0),
    "perf_event_open": (None, 0, -1, -1, 0),
    "userfaultfd": (1,),
    "io_uring_setup": (1, None),
    "io_uring_enter": (-1, 0, 0, 0, None, 0),
    "io_uring_register": (-1, 0, None, 0),
    "keyctl": (0, -2, 0),
    "add_key": (b"user", b"glovebox-probe", b"x", 1, -1),
    "request_key": (b"user", b"glovebox-absent", None, 0),
    "kexec_load": (0, 17, None, 0),
    "kexec_file_load": (-1, -1, 0, None, 0xFFFF),
    "init_module": (None, 0, b""),
    "finit_module": (-1, b"", 0),
    "delete_module": (b"glovebox_absent", 0o4000),
    "open_by_handle_at": (-1, None, 0),
    "name_to_handle_at": (-100, b"/nonexistent", None, None, 0),
    "quotactl": (0x7FFFFF00, None, 0, None),
    "acct": (b"/nonexistent/accounting",),
    "swapon": (b"/nonexistent", 0),
    "swapoff": (b"/nonexistent",),
    "reboot": (0, 0, 0, None),
    "settimeofday": (None, None),
    "clock_settime": (1, None),
    "lookup_dcookie": (0, None, 0),
    "fanotify_init": (0x200, 0),
    "syslog": (10, None, 0),
    "sethostname": (None, 1000),
    "setdomainname": (None, 1000),
    "ioperm": (0x80, 1, 0),
    "modify_ldt": (0, None, 0),
}


@probe("K11", control=True)
def rare_calls():
    for name, arguments in RARE_CALLS.items():
        yield name, child_outcome(name, *arguments)
    for kind, device in (("character", stat.S_IFCHR | 0o666), ("block", stat.S_IFBLK | 0o666)):
        yield f"make a {kind} device", in_child(lambda device=device: make_device(device))


def make_device(mode):
    path = f"device-{os.getpid()}"
    try:
        return attempt(lambda: os.mknod(path, mode, os.makedev(1, 3)))
    finally:
        attempt(lambda: os.unlink(path))


@probe("K12", control=True)
def other_interfaces():
    yield "32-bit call", in_child(call_32_bit) if MACHINE == "x86_64" else NOT_HERE
    if MACHINE == "x86_64":
        yield "x32 call", in_child(lambda: call_number(0x40000000 | NUMBERS["getpid"][0])[1] or "ok")
    else:
        yield "x32 call", NOT_HERE


def call_32_bit():
    # mov eax, 20 (getpid of the 32-bit table); int 0x80; ret
    code = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"
    area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    value = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return "ok" if value == os.getpid() else errno_name(-value)


@probe("K13", control=True)
def socket_families():
    answers = {}
    made = set()
    # The internet first: where that can be made nothing is sealed, and asking for the rare ones
    # would only load their modules into the machine's kernel.
    for family in sorted(range(46), key=lambda family: (family != socket.AF_INET, family)):
        for kind in (1, 2, 3, 4, 5, 6, 10):
            answer = socket_outcome(family, kind)
            if answer == "ok":
                made.add(family)
            answers.setdefault(family, set()).add(answer)
        if socket.AF_INET in made:
            break
    yield "families", sorted(made)
    others = set().union(*(answers[family] for family in answers if family != socket.AF_UNIX))
    yield "answers for others", sorted(others)
    first, second = (ctypes.c_int * 2)(), (ctypes.c_int * 2)()
    yield "unix pair", child_outcome("socketpair", socket.AF_UNIX, 1, 0, first)
    yield "internet pair", child_outcome("socketpair", socket.AF_INET, 1, 0, second)
    high_bits = (1 << 32) | socket.AF_INET
    yield "family behind high bits", in_child(lambda: outcome("socket", high_bits, 1, 0))


def socket_outcome(family, kind):
    value, error = call("socket", family, kind, 0)
    if error:
        return error
    os.close(value)
    return "ok"


@probe("K14", control=True)
def moving_pages():
    reader, writer = os.pipe()
    second_reader, second_writer = os.pipe()
    source = os.open("/dev/zero", os.O_RDONLY)
    word = ctypes.create_string_buffer(b"word", 4)
    piece = Iovec(ctypes.addressof(word), 4)
    try:
        yield "vmsplice", outcome("vmsplice", writer, ctypes.byref(piece), 1, 0)
        os.write(writer, b"more")
        yield "tee", outcome("tee", reader, second_writer, 1, 0)
        yield "splice", outcome("splice", source, None, writer, None, 1, 0)
    finally:
        for fd in (reader, writer, second_reader, second_writer, source):
            os.close(fd)
    yield "copy a file", attempt(copy_a_file)


def copy_a_file():
    import shutil

    source, target = f"copy-{os.getpid()}-a", f"copy-{os.getpid()}-b"
    with open(source, "wb") as file:
        file.write(b"x" * 100_000)
    try:
        shutil.copyfile(source, target)
        if os.path.getsize(target) != 100_000:
            raise OSError(5, "the copy has another size")
    finally:
        for path in (source, target):
            attempt(lambda path=path: os.unlink(path))


@probe("K15", control=True)
def filter_arguments():
    yield "unknown call", in_child(lambda: call_number(9999)[1] or "ok")
    yield "negative call", in_child(lambda: call_number(-2)[1] or "ok")
    yield "own limits", in_child(lambda: outcome("prlimit64", 0, 7, None, None))
    yield "another's limits", with_child(lambda pid: outcome("prlimit64", pid, 7, None, None))
    # An allowed flag must not hide one that is not: CLONE_FILES with a namespace.
    yield "files flag with a namespace", in_child(lambda: clone_with(0x00000400 | NAMESPACES["uts"]))
