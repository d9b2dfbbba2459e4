"""Raw system calls by number, so that no library stands between a probe and the kernel.

Knows the numbers of x86_64 and aarch64. Does not judge: it says what the kernel answered.
"""

import ctypes
import errno
import os
import platform
import select
import signal

MACHINE = platform.machine()
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

# name: (x86_64, aarch64); None where the machine has no such call.
NUMBERS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "cachestat": (451, 451),
    "capset": (126, 91),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "getpid": (39, 172),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "landlock_create_ruleset": (444, 444),
    "lookup_dcookie": (212, 18),
    "memfd_create": (319, 279),
    "mknodat": (259, 33),
    "mlockall": (151, 230),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "setgid": (106, 144),
    "setgroups": (116, 159),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setuid": (105, 146),
    "setxattr": (188, 5),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "splice": (275, 76),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "tee": (276, 77),
    "tgkill": (234, 131),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vmsplice": (278, 75),
}

NOT_HERE = "not on this machine"


def number(name):
    """The number of a call on this machine, or None."""
    x86_64, aarch64 = NUMBERS[name]
    return {"x86_64": x86_64, "aarch64": aarch64}[MACHINE]


def errno_name(code):
    return errno.errorcode.get(code, f"errno {code}")


def call(name, *args):
    """Makes a call; gives its value and the name of its error, or None."""
    return call_number(number(name), *args)


def call_number(nr, *args):
    words = [argument(value) for value in args]
    ctypes.set_errno(0)
    value = LIBC.syscall(ctypes.c_long(nr), *words)
    return value, (errno_name(ctypes.get_errno()) if value == -1 else None)


def argument(value):
    if value is None:
        return ctypes.c_void_p(None)
    if isinstance(value, int):
        return ctypes.c_long(value)
    return value


def outcome(name, *args):
    """What a call gave: `ok`, or the name of its error. For calls that leave nothing behind."""
    if number(name) is None:
        return NOT_HERE
    _, error = call(name, *args)
    return error or "ok"


def in_child(act, seconds=10):
    """Runs `act` in a forked child and gives the text that it returns, or how the child ended.

    Calls that change the caller, or may kill it, are made this way.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            try:
                text = act()
            except OSError as error:
                text = errno_name(error.errno)
            os.write(writer, str(text).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    text = b""
    ready, _, _ = select.select([reader], [], [], seconds)
    if ready:
        text = os.read(reader, 65536)
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return "killed by " + signal.Signals(os.WTERMSIG(status)).name
    return text.decode() or "said nothing"


def child_outcome(name, *args):
    """`outcome`, made in a child."""
    if number(name) is None:
        return NOT_HERE
    return in_child(lambda: outcome(name, *args))


def attempt(act):
    """What a Python call gave: `ok`, or the name of its error."""
    try:
        act()
    except OSError as error:
        return errno_name(error.errno)
    return "ok"
