"""A template for tests: plays the part of the library that copies it, with `os.fork`.

Run as `python3 -P template_process.py`, with a packet socket as descriptor 3. An order is a JSON
object with the kernel's end of a socket beside it; the answers are `ready`, `forked` and `ended`.
"""

import json
import os
import runpy  # noqa: F401 (loaded where a module is started by its name)
import select
import sys
from ctypes import CDLL, get_errno
from socket import CMSG_SPACE, socket
from struct import unpack
from typing import NoReturn

from glovebox_kernel.begin import quietly

quietly()

from glovebox_kernel.template.process import LINE, Template  # noqa: E402

CLONE_NEWPID = 0x20000000


def main() -> None:
    template = Template()
    template.settle({0, 1, 2, LINE})
    line = socket(fileno=LINE)
    tell(line, is_="ready", modules=sorted(sys.modules))
    poll = select.poll()
    poll.register(LINE, select.POLLIN)
    copies: dict[int, int] = {}
    while True:
        for fd, _ in poll.poll():
            if fd != LINE:
                pid = copies.pop(fd)
                poll.unregister(fd)
                os.close(fd)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                tell(line, is_="ended", pid=pid, status=status)
                continue
            text, beside, _, _ = line.recvmsg(1 << 16, CMSG_SPACE(4))
            if not text:
                return
            wire = unpack("i", beside[0][2])[0]
            order = json.loads(text)
            own_process_ids(order["process_ids_of_its_own"])
            pid = os.fork()
            if pid == 0:
                become_kernel(template, wire, order)
            os.close(wire)
            pidfd = os.pidfd_open(pid)
            copies[pidfd] = pid
            poll.register(pidfd, select.POLLIN)
            tell(line, is_="forked", pid=pid)


def become_kernel(template: Template, wire: int, order: dict) -> NoReturn:
    """What the library does in a copy, but for all that seals it."""
    os.setsid()
    os.chdir(order["folder"])
    os.closerange(3, wire)
    os.closerange(wire + 1, 1024)
    template.child(wire, order["threads"], order["reseed"], order["in_advance"])
    os._exit(99)


def own_process_ids(wanted: bool) -> None:
    """Lets the next copy be process 1, as others were, or a process like any. Only for root."""
    library = CDLL(None, use_errno=True)
    here = os.open("/proc/self/ns/pid", os.O_RDONLY)
    failed = library.setns(here, CLONE_NEWPID) or (wanted and library.unshare(CLONE_NEWPID))
    os.close(here)
    if wanted and failed:
        raise OSError(get_errno(), "a process namespace for a copy")


def tell(line: socket, is_: str, **more: object) -> None:
    line.send(json.dumps({"is": is_, **more}).encode())


main()
