#!@PYTHON@
"""Becomes the launcher after taking one feature of the kernel away from itself."""

import ctypes
import os
import platform
import struct

TAKEN = "@FEATURE@"
LAUNCHER = "@LAUNCHER@"

LIBC = ctypes.CDLL(None, use_errno=True)
EPERM, EINVAL, ENOSYS = 1, 22, 38
NEW_USER = 0x10000000
X86_64 = platform.machine() == "x86_64"
NUMBERS = {
    "unshare": 272 if X86_64 else 97,
    "clone": 56 if X86_64 else 220,
    "clone3": 435,
    "prctl": 157 if X86_64 else 167,
    "seccomp": 317 if X86_64 else 277,
    "landlock_create_ruleset": 444,
}
LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22


def instruction(code, value, true=0, false=0):
    return struct.pack("HBBI", code, true, false, value)


def refuse(name, error, argument=None, value=None, test=JUMP_EQUAL):
    """The call fails with the error; with an argument, only where that is the value."""
    if argument is None:
        return (
            instruction(LOAD, 0)
            + instruction(JUMP_EQUAL, NUMBERS[name], 0, 1)
            + instruction(RETURN, ERRNO | error)
        )
    return (
        instruction(LOAD, 0)
        + instruction(JUMP_EQUAL, NUMBERS[name], 0, 3)
        + instruction(LOAD, 16 + 8 * argument)
        + instruction(test, value, 0, 1)
        + instruction(RETURN, ERRNO | error)
    )


def load(program):
    program += instruction(RETURN, ALLOW)
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    filled = Program(len(program) // 8, ctypes.addressof(buffer))
    if os.geteuid() != 0 and LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no new privileges")
    if LIBC.prctl(PR_SET_SECCOMP, 2, ctypes.byref(filled), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "filter")


def hide_control_groups():
    new_mounts, private = 0x00020000, 0x4000 | 0x40000
    if LIBC.unshare(new_mounts) != 0:
        raise OSError(ctypes.get_errno(), "mount namespace")
    LIBC.mount(b"none", b"/", None, private, None)
    # Nothing is mounted on it any more, or something else is.
    if LIBC.mount(b"tmpfs", b"/sys/fs/cgroup", b"tmpfs", 0, None) != 0:
        raise OSError(ctypes.get_errno(), "hiding control groups")


if TAKEN == "user-namespaces":
    load(
        refuse("unshare", EPERM, 0, NEW_USER, JUMP_SET)
        + refuse("clone", EPERM, 0, NEW_USER, JUMP_SET)
        + refuse("clone3", EPERM)
    )
elif TAKEN == "seccomp":
    load(refuse("seccomp", ENOSYS) + refuse("prctl", EINVAL, 0, PR_SET_SECCOMP))
elif TAKEN == "landlock":
    load(refuse("landlock_create_ruleset", ENOSYS))
elif TAKEN == "control-groups":
    hide_control_groups()
elif TAKEN != "nothing":
    raise SystemExit(f"no such feature: {TAKEN}")
os.execv(LAUNCHER, [LAUNCHER])
