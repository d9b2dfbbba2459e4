"""The posture of a sandbox: everything that a fresh process in it has and sees, as one document.

A kernel calls `main` in its first cell.
"""

import ctypes
import gc
import json
import os
import resource
import signal
import sys
import threading

from probe_files import mounts
from probe_kernel import open_descriptors, read, status_of
from probe_raw import LIBC
from probe_report import refuse_outside
from probe_views import read_domain_name

STATUS = (
    "Umask", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
    "NoNewPrivs", "Seccomp", "Seccomp_filters", "SigBlk", "ShdPnd", "Threads", "SigIgn", "SigCgt",
    "PPid", "TracerPid", "CoreDumping", "THP_enabled", "Speculation_Store_Bypass",
    "SpeculationIndirectBranch", "Cpus_allowed", "Mems_allowed",
)
FLAGS = (
    "bytes_warning", "debug", "dev_mode", "dont_write_bytecode", "hash_randomization",
    "ignore_environment", "inspect", "interactive", "isolated", "no_site", "no_user_site",
    "optimize", "quiet", "safe_path", "utf8_mode", "verbose", "warn_default_encoding",
)
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")


def limit(name):
    return ["unlimited" if value == -1 else value for value in resource.getrlimit(getattr(resource, name))]


def prctl(option):
    return LIBC.prctl(option, 0, 0, 0, 0)


def prctl_into(option):
    """What a `prctl` answers that writes a number."""
    number = ctypes.c_int(-1)
    return number.value if LIBC.prctl(option, ctypes.byref(number), 0, 0, 0) == 0 else "refused"


def if_there(path):
    try:
        return read(path).strip()
    except OSError as error:
        return type(error).__name__


def mappings():
    """What is mapped, but for libraries: how, and from which file."""
    seen = set()
    for line in read("/proc/self/maps").splitlines():
        _, rights, _, _, _, *path = line.split(maxsplit=5)
        path = path[0] if path else ""
        is_library = ".so" in path and path.startswith(("/opt/python/", "/usr/lib"))
        is_shared = rights[3] == "s"
        if is_shared or (path and not path.startswith("[") and not is_library):
            seen.add((path, "shared" if is_shared else "private"))
    return sorted(map(list, seen))


def pairs(text):
    return dict(pair.split("=", 1) for pair in text.split("\0") if pair)


def posture():
    status = status_of()
    node = os.uname()
    return {
        "mounts": mounts(),
        "descriptors": open_descriptors(),
        "environment": dict(os.environ),
        "limits": {
            name: limit(name)
            for name in sorted(dir(resource))
            if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"
        },
        "status": {name: status.get(name, "").split() for name in STATUS},
        "uid_map": read("/proc/self/uid_map").split(),
        "gid_map": read("/proc/self/gid_map").split(),
        "setgroups": read("/proc/self/setgroups").split(),
        "namespaces": {name: os.stat(f"/proc/self/ns/{name}").st_ino for name in NAMESPACES},
        "proc": sorted(name for name in os.listdir("/proc") if not name.isdigit()),
        "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
        "dev": sorted(os.listdir("/dev")),
        "root": sorted(os.listdir("/")),
        "workspace": sorted(name for name in os.listdir("/workspace") if not name.startswith("probes")),
        "tmp": sorted(os.listdir("/tmp")),
        "shm": sorted(os.listdir("/dev/shm")),
        "folders": {path: folder(path) for path in ("/", "/workspace", "/tmp", "/dev", "/dev/shm", "/proc")},
        "names": {"node": node.nodename, "system": node.sysname, "domain": read_domain_name()},
        "cgroup": sorted(read("/proc/self/cgroup").splitlines()),
        "place": {"cwd": os.getcwd(), "root": os.readlink("/proc/self/root")},
        "session": {
            "leads its session": os.getsid(0) == os.getpid(),
            "leads its group": os.getpgid(0) == os.getpid(),
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
            "oom_score_adj": int(read("/proc/self/oom_score_adj")),
            "dumpable": prctl(3),
            "securebits": prctl(27),
            "keeps capabilities": prctl(7),
            "timer slack": prctl(30),
            "memory that is written and run": prctl(66),
            "signal at its parent's death": prctl_into(2),
            "takes in orphans": prctl_into(37),
            "scheduler": os.sched_getscheduler(0),
            "core dump filter": if_there("/proc/self/coredump_filter"),
            "login": if_there("/proc/self/loginuid"),
            "login session": if_there("/proc/self/sessionid"),
            "label": if_there("/proc/self/attr/current"),
            "clock": if_there("/proc/self/timens_offsets"),
            "personality": LIBC.personality(ctypes.c_ulong(0xFFFFFFFF)),
        },
    }


def program():
    """The program of this process, as `/proc` tells it."""
    return {
        "file": os.readlink("/proc/self/exe"),
        "name": read("/proc/self/comm").strip(),
        "arguments": read("/proc/self/cmdline").rstrip("\0").split("\0"),
        "environment": pairs(read("/proc/self/environ")),
        "mapped": mappings(),
    }


def handlers():
    """What happens at each signal, where it is known."""
    for number in signal.Signals:
        found = signal.getsignal(number)
        yield number, getattr(found, "name", None) or getattr(found, "__qualname__", str(found))


def of_python():
    """What code finds of the interpreter that it runs in."""
    main = sys.modules["__main__"]
    return {
        "flags": {name: getattr(sys.flags, name) for name in FLAGS},
        "arguments": sys.argv,
        "path": [place for place in sys.path if not place.endswith("/probes")],
        "program": sys.executable,
        "prefix": sys.prefix,
        "warnings": sys.warnoptions,
        "streams": [[stream.encoding, stream.errors] for stream in (sys.stdout, sys.stderr)],
        "recursion limit": sys.getrecursionlimit(),
        "collects garbage": [gc.isenabled(), gc.get_debug()],
        "keeps apart from collections": gc.get_freeze_count() > 0,
        "threads": [thread.name for thread in threading.enumerate()],
        "main": [main.__name__, str(main.__spec__), hasattr(main, "__file__")],
        "signals": {number.name: handler for number, handler in handlers() if handler != "SIG_DFL"},
        "tracing": [str(sys.gettrace()), str(sys.getprofile())],
    }


def folder(path):
    found = os.stat(path)
    return [oct(found.st_mode), found.st_uid, found.st_gid]


def main():
    refuse_outside()
    seen = {**posture(), "program": program(), "python": of_python()}
    print(json.dumps(seen, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
