"""Attacks on files: full disks, many names, deep folders, planted links."""

import ctypes
import os
import socket
import stat

from hostile_attack import MIB, attack, say, until_refused
from hostile_memory import write_until_refused
from probe_raw import LIBC, attempt, errno_name


@attack
def fill_disk(folder, bound_mib):
    path = os.path.join(folder, "fill")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    say("control", os.write(fd, b"x"))
    taken, why = write_until_refused(fd, int(bound_mib) * MIB)
    os.close(fd)
    say("written", taken, why)
    say("write when full", attempt(lambda: write_one(folder)))
    os.unlink(path)
    say("write after deleting", attempt(lambda: write_one(folder)))


def write_one(folder):
    path = os.path.join(folder, "one")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(fd, bytes(65536))
    finally:
        os.close(fd)


@attack
def fill_inodes(folder, bound):
    made = os.path.join(folder, "many")
    os.mkdir(made)
    numbers = iter(range(int(bound)))

    def make():
        os.close(os.open(f"{made}/{next(numbers)}", os.O_CREAT | os.O_WRONLY))

    count, why = until_refused(make, int(bound))
    say("made", count, why)
    os.unlink(f"{made}/0")
    say("make after deleting", attempt(lambda: os.close(os.open(f"{made}/again", os.O_CREAT))))


@attack
def deep_tree(levels):
    """Folders in folders, deeper than a path may be long."""
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    made = 0
    for _ in range(int(levels)):
        try:
            os.mkdir("d", dir_fd=here)
        except OSError as error:
            say("why", errno_name(error.errno))
            break
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
        made += 1
    say("levels", made)
    fd = os.open("x\n\x1b[2J", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(fd, b"at the bottom")
    # The immutable bit, which even the owner could not take away again.
    flags = ctypes.c_long(0x10)
    say("immutable", "ok" if LIBC.ioctl(fd, 0x40086602, ctypes.byref(flags)) == 0 else "refused")


@attack
def many_files(count):
    os.mkdir("many")
    for number in range(int(count)):
        os.close(os.open(f"many/{number}\n", os.O_CREAT | os.O_WRONLY))
    say("made", len(os.listdir("many")))


@attack
def links(outside):
    """Plants names that lead outside or nowhere, of every kind a collector could follow."""
    os.symlink(outside, "link.txt")
    os.symlink(os.path.dirname(outside), "folder")
    os.symlink("/proc/self/environ", "environ.txt")
    os.symlink("/proc/1/root/etc/passwd", "root.txt")
    os.symlink("loop.txt", "loop.txt")
    os.symlink("../" * 40 + outside.lstrip("/"), "far.txt")
    os.mkfifo("fifo.txt")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("socket.txt")
    listener.close()
    with open("plain.txt", "w") as file:
        file.write("plain")
    os.link("plain.txt", "second.txt")
    say("device", attempt(lambda: os.mknod("device.txt", stat.S_IFCHR | 0o600, os.makedev(1, 5))))
    say("planted", sorted(os.listdir(".")))
