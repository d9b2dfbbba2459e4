"""The posture of a sandbox: everything that a fresh process in it has and sees, as one document."""

import ctypes
import json
import os
import resource
import sys

from probe_files import mounts
from probe_kernel import open_descriptors, read, status_of
from probe_raw import LIBC
from probe_report import refuse_outside
from probe_views import read_domain_name

STATUS = (
    "Umask", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
    "NoNewPrivs", "Seccomp", "Seccomp_filters", "SigBlk", "ShdPnd", "Threads",
)
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")


def limit(name):
    return ["unlimited" if value == -1 else value for value in resource.getrlimit(getattr(resource, name))]


def prctl(option):
    return LIBC.prctl(option, 0, 0, 0, 0)


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
            "personality": LIBC.personality(ctypes.c_ulong(0xFFFFFFFF)),
        },
    }


def folder(path):
    found = os.stat(path)
    return [oct(found.st_mode), found.st_uid, found.st_gid]


if __name__ == "__main__":
    refuse_outside()
    json.dump(posture(), sys.stdout, indent=1, sort_keys=True)
