"""Group F: what a sandboxed program finds and can change in the file system."""

import ctypes
import os
import stat
import subprocess
import sys

from probe_raw import attempt, call, errno_name, in_child
from probe_report import probe

WRITABLE = ("/workspace", "/tmp", "/dev/shm")

READ_ONLY = (
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/mnt", "/opt",
    "/opt/glovebox", "/opt/glovebox/bin", "/opt/glovebox/lib", "/opt/python", "/opt/python/bin",
    "/opt/python/lib", "/proc", "/proc/self", "/proc/self/fd", "/root", "/run", "/sbin", "/srv",
    "/sys", "/sys/fs/cgroup", "/usr", "/usr/bin", "/usr/lib", "/usr/share", "/usr/share/fonts",
    "/usr/share/zoneinfo", "/var", "/var/tmp",
)


def mounts():
    """The rows of mountinfo: mount point, own flags, propagation fields, kind, source, options."""
    rows = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            left, _, right = line.rstrip("\n").partition(" - ")
            fields = left.split(" ")
            kind, source, options = right.split(" ", 2)
            rows.append(
                {
                    "point": fields[4],
                    "root": fields[3],
                    "flags": sorted(fields[5].split(",")),
                    "propagation": fields[6:],
                    "kind": kind,
                    "source": source,
                    "options": options.split(","),
                }
            )
    return rows


def create_in(folder):
    path = os.path.join(folder, f"glovebox-probe-{os.getpid()}")
    answer = attempt(lambda: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)))
    if answer == "ok":
        os.unlink(path)
    return answer


@probe("F1")
def writing():
    for folder in WRITABLE:
        yield f"create in {folder}", create_in(folder)
    for folder in READ_ONLY:
        # A link may lead to a folder that is the sandbox's own.
        if os.path.isdir(folder) and not os.path.realpath(folder).startswith(WRITABLE):
            yield f"create in {folder}", create_in(folder)
    for path in ("/etc/passwd", "/bin/sh", sys.executable, "/opt/glovebox/bin/glovebox-agent"):
        if os.path.lexists(path):
            for what, answer in changes(path):
                yield f"{what} {path}", answer
    scratch = f"changes-{os.getpid()}"
    open(scratch, "w").close()
    for what, answer in changes(scratch):
        yield f"{what} one's own file", answer
    os.unlink(scratch)
    everywhere = sorted(
        row["point"] for row in mounts() if create_in_mount(row) and row["point"] not in WRITABLE
    )
    yield "other mounts that take a new file", everywhere


def create_in_mount(row):
    return os.path.isdir(row["point"]) and create_in(row["point"]) == "ok"


def changes(path):
    """Attempts to change a file in every way, each to what it is already.

    The kernel asks for the right to change before it looks at the change, and where the right is
    there, nothing is lost.
    """
    found = os.stat(path)
    yield "open for writing", attempt(lambda: os.close(os.open(path, os.O_WRONLY)))
    yield "truncate", attempt(lambda: os.truncate(path, found.st_size))
    yield "chmod", attempt(lambda: os.chmod(path, stat.S_IMODE(found.st_mode)))
    yield "chown", attempt(lambda: os.chown(path, found.st_uid, found.st_gid))
    times = (found.st_atime_ns, found.st_mtime_ns)
    yield "set times of", attempt(lambda: os.utime(path, ns=times))
    yield "remove an attribute of", attempt(lambda: os.removexattr(path, "user.probe"))
    yield "rename", attempt(lambda: os.rename(path, path))


@probe("F2")
def mount_flags():
    rows = mounts()
    without = {"ro": [], "nosuid": [], "nodev": []}
    for row in rows:
        for flag, points in without.items():
            if flag not in row["flags"]:
                points.append(row["point"])
    for flag, points in without.items():
        yield f"mounts without {flag}", sorted(points)
    yield "device nodes", sorted(row["point"] for row in rows if is_device(row["point"]))


def is_device(path):
    return stat.S_ISCHR(os.stat(path).st_mode)


@probe("F8")
def leaving_the_root():
    root = os.stat("/")
    same = (root.st_dev, root.st_ino)

    def is_root(path):
        try:
            found = os.stat(path)
        except OSError as error:
            return errno_name(error.errno)
        return "root" if (found.st_dev, found.st_ino) == same else "elsewhere"

    for path in (
        "/" + "../" * 40, "/proc/self/root", "/proc/self/root/..", "/proc/self/cwd/" + "../" * 40,
        "/proc/1/root", "/proc/1/cwd", "/proc/1/root/..",
    ):
        yield path, is_root(path)
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield "a descriptor's parent", is_root(f"/proc/self/fd/{fd}/../..")
        above = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        found = os.fstat(above)
        os.close(above)
        yield "openat above root", "root" if (found.st_dev, found.st_ino) == same else "elsewhere"
    finally:
        os.close(fd)
    yield "fchdir above root", in_child(above_by_fchdir)
    yield "open by handle", in_child(open_root_by_handle)


def above_by_fchdir():
    root = os.stat("/")
    os.chdir("/")
    for _ in range(40):
        os.chdir("..")
    found = os.stat(".")
    return "root" if (found.st_dev, found.st_ino) == (root.st_dev, root.st_ino) else "elsewhere"


def open_root_by_handle():
    # The old way out of a container: the handle of inode 2, which is a file system's root.
    fd = os.open("/", os.O_RDONLY)
    handle = ctypes.create_string_buffer(b"\x08\x00\x00\x00\x01\x00\x00\x00\x02" + bytes(7), 16)
    value, error = call("open_by_handle_at", fd, handle, os.O_RDONLY)
    os.close(fd)
    if error is None:
        os.close(value)
    return error or "ok"


HOST_PATHS = (
    "/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock",
    "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/var/lib/kubelet",
    "/run/systemd/private", "/run/systemd/journal/socket", "/run/systemd/journal/stdout",
    "/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", "/run/user",
    "/run/nscd/socket", "/var/run/nscd/socket", "/run/udev/control", "/run/snapd.socket",
    "/run/secrets", "/var/run/secrets", "/var/lib/docker", "/etc/shadow", "/etc/gshadow",
    "/etc/ssh", "/etc/sudoers", "/home/user/.ssh", "/var/lib/glovebox",
    "/run/glovebox", "/lost+found", "/boot/vmlinuz", "/var/log",
)


@probe("F9")
def traces_of_the_host():
    yield "host paths", sorted(path for path in HOST_PATHS if os.path.lexists(path))
    variables = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR")
    yield "variables", sorted(name for name in variables if name in os.environ)
    yield "a path that is there", os.path.lexists("/etc/passwd")


@probe("F10")
def running_own_files():
    for folder in WRITABLE:
        path = os.path.join(folder, f"own-program-{os.getpid()}")
        yield f"from {folder}", attempt(lambda path=path: run_own(path))
    preload = f"/tmp/absent-{os.getpid()}.so"
    child = subprocess.run(
        [sys.executable, "-c", "print('ran')"],
        env={**os.environ, "LD_PRELOAD": preload},
        capture_output=True,
        text=True,
    )
    yield "preload reaches one's own child", preload in child.stderr
    yield "preload in one's own environment", "LD_PRELOAD" in os.environ


def run_own(path):
    with open(path, "w") as file:
        file.write("#!/bin/sh\nexit 0\n")
    try:
        os.chmod(path, 0o700)
        subprocess.run([path], check=True)
    finally:
        os.unlink(path)


@probe("F15")
def propagation():
    yield "mounts that share", sorted(row["point"] for row in mounts() if row["propagation"])


# Checks that walk the whole tree are asked for by name and run once.
WALKS = {}


def walk():
    """Sees every file below the root once, on every mount but /proc."""
    if WALKS:
        return WALKS
    WALKS.update(setid=[], sockets=[], writable=[], devices=[], secrets=[], files=0, capable=[])
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders.remove("proc")
        for name in files:
            look_at(os.path.join(folder, name))
        if not folder.startswith(WRITABLE) and os.access(folder, os.W_OK):
            WALKS["writable"].append(folder)
    return WALKS


SECRET_NAMES = (
    ".netrc", "_netrc", ".pypirc", "pip.conf", ".git-credentials", ".npmrc", ".dockercfg",
    "id_rsa", "id_ed25519", "id_ecdsa", "credentials.json", ".pgpass", ".my.cnf", "shadow",
    "kubeconfig", ".env", ".bash_history", ".python_history", "auth.json",
)
SECRET_FOLDERS = ("/.ssh/", "/.aws/", "/.azure/", "/.gnupg/", "/.kube/", "/.docker/", "/gcloud/")


def look_at(path):
    try:
        found = os.lstat(path)
    except OSError:
        return
    WALKS["files"] += 1
    mode = found.st_mode
    if stat.S_ISSOCK(mode):
        WALKS["sockets"].append(path)
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        WALKS["devices"].append(path)
    if path.endswith(tuple("/" + name for name in SECRET_NAMES)) or any(
        folder in path for folder in SECRET_FOLDERS
    ):
        WALKS["secrets"].append(path)
    if not stat.S_ISREG(mode):
        return
    if mode & (stat.S_ISUID | stat.S_ISGID):
        WALKS["setid"].append(path)
    if mode & 0o111 and has_capability(path):
        WALKS["capable"].append(path)
    if found.st_size < 65536 and holds_a_key(path):
        WALKS["secrets"].append(path)


def has_capability(path):
    try:
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False


def holds_a_key(path):
    try:
        with open(path, "rb") as file:
            return b"PRIVATE KEY-----\n" in file.read()
    except OSError:
        return False


@probe("walk/K5")
def set_id_files():
    yield "set-id files", walk()["setid"]
    yield "files with capabilities", walk()["capable"]
    yield "files seen", walk()["files"] > 1000


@probe("walk/F1")
def writable_folders():
    yield "writable folders", sorted(walk()["writable"])


@probe("walk/F9")
def sockets():
    yield "sockets", walk()["sockets"]


@probe("walk/K18")
def device_files():
    yield "devices", sorted(walk()["devices"])


@probe("walk/S7")
def stored_secrets():
    yield "secrets", sorted(walk()["secrets"])
