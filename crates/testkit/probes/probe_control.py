"""Positive controls: shows that what a sandbox refuses is possible without one.

Runs, of the probes, only those marked as controls, and these in a thin box of their own that
keeps its capabilities and every system call, but has its own namespaces and a read-only root:
what is refused here was refused by something else than the sandbox, and nothing that happens
here reaches the machine.
"""

import ctypes
import os
import sys
import tempfile

import probe_batch  # noqa: F401 - enters the probes
import probe_kernel
import probe_report
from probe_raw import LIBC, call

MS_RDONLY, MS_REC, MS_PRIVATE = 0x1, 0x4000, 0x40000
NAMESPACES = ("pid", "mnt", "net", "ipc", "uts")


def check(answer, doing):
    if answer != 0:
        raise OSError(ctypes.get_errno(), f"{doing}: {os.strerror(ctypes.get_errno())}")


def become_root_of_a_namespace():
    uid, gid = os.geteuid(), os.getegid()
    check(LIBC.unshare(probe_kernel.NAMESPACES["user"]), "making a user namespace")
    for path, line in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{path}", "w") as file:
            file.write(line)


class MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def make_everything_read_only():
    check(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "making mounts private")
    attributes = MountAttributes(set=MS_RDONLY)
    recursive = 0x8000
    size = ctypes.sizeof(attributes)
    _, error = call("mount_setattr", -100, b"/", recursive, ctypes.byref(attributes), size)
    if error:
        raise OSError(0, f"making mounts read-only: {error}")


def run_in_thin_box(scratch):
    if os.geteuid() != 0:
        become_root_of_a_namespace()
    flags = 0
    for name in NAMESPACES:
        flags |= probe_kernel.NAMESPACES[name]
    check(LIBC.unshare(flags), "making namespaces")
    # The namespace of processes holds for children only. The probes run as an ordinary process
    # beside a first one, as in a sandbox.
    in_a_child(lambda: first_process(scratch))


def first_process(scratch):
    make_everything_read_only()
    check(LIBC.mount(b"proc", b"/proc", b"proc", 0, None), "mounting /proc")
    check(LIBC.mount(b"tmpfs", scratch.encode(), b"tmpfs", 0, None), "mounting scratch")
    os.chdir(scratch)
    in_a_child(lambda: probe_report.run(out=sys.stdout, control=True))


def in_a_child(act):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise ChildProcessError("the child failed")


def main():
    scratch = tempfile.mkdtemp(prefix="glovebox-control-")
    try:
        in_a_child(lambda: run_in_thin_box(scratch))
    finally:
        os.rmdir(scratch)


if __name__ == "__main__":
    main()
