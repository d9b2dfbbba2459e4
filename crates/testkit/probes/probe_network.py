"""Group N: whether a sandboxed program can reach anything outside."""

import os
import socket
import struct

from probe_raw import attempt, child_outcome, errno_name
from probe_report import probe

FAMILIES = {
    "AF_INET": 2, "AF_AX25": 3, "AF_IPX": 4, "AF_INET6": 10, "AF_KEY": 15, "AF_NETLINK": 16,
    "AF_PACKET": 17, "AF_RDS": 21, "AF_CAN": 29, "AF_TIPC": 30, "AF_BLUETOOTH": 31,
    "AF_RXRPC": 33, "AF_PHONET": 35, "AF_ALG": 38, "AF_NFC": 39, "AF_VSOCK": 40, "AF_KCM": 41,
    "AF_QIPCRTR": 42, "AF_SMC": 43, "AF_XDP": 44, "AF_MCTP": 45,
}


def reach(family, kind, address):
    """What connecting gave: `connected`, or the name of the error."""
    try:
        with socket.socket(family, kind) as sock:
            sock.settimeout(2)
            sock.connect(address)
            if kind != socket.SOCK_STREAM:
                sock.send(b"glovebox-probe")
    except TimeoutError:
        return "timed out"
    except OSError as error:
        return errno_name(error.errno)
    return "connected"


def v4(address, port):
    return reach(socket.AF_INET, socket.SOCK_STREAM, (address, port))


def v6(address, port):
    return reach(socket.AF_INET6, socket.SOCK_STREAM, (address, port))


def resolve(name):
    try:
        socket.getaddrinfo(name, 443)
    except socket.gaierror:
        return "not resolved"
    except OSError as error:
        return errno_name(error.errno)
    return "resolved"


def given_targets():
    """Addresses of listeners that the harness opened outside: `tcp:HOST:PORT`, `udp:HOST:PORT`."""
    for target in os.environ.get("PROBE_TARGETS", "").split():
        kind, host, port = target.split(",")
        yield target, kind, host, int(port)


@probe("N1")
def internet():
    yield "tcp v4", v4("1.1.1.1", 443)
    yield "tcp v6", v6("2606:4700:4700::1111", 443)
    yield "udp v4", reach(socket.AF_INET, socket.SOCK_DGRAM, ("8.8.8.8", 53))
    yield "udp v6", reach(socket.AF_INET6, socket.SOCK_DGRAM, ("2001:4860:4860::8888", 53))
    yield "icmp", child_outcome("socket", 2, 3, 1)
    yield "icmp without privilege", child_outcome("socket", 2, 2, 1)
    yield "icmp v6", child_outcome("socket", 10, 3, 58)
    yield "raw ip", child_outcome("socket", 2, 3, 255)
    for target, kind, host, port in given_targets():
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sort = socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM
        yield f"a listener outside by {kind}", reach(family, sort, (host, port)), target


METADATA_V4 = (
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "2852039166", "0251.0376.0251.0376", "0xa9fea9fe",
)
METADATA_V6 = ("fd00:ec2::254", "::ffff:169.254.169.254", "fe80::a9fe:a9fe")


@probe("N2")
def metadata():
    yield "v4", sorted({v4(address, 80) for address in METADATA_V4})
    yield "v6", sorted({v6(address, 80) for address in METADATA_V6})
    yield "name", resolve("metadata.google.internal")


@probe("N3")
def names():
    for name in ("example.com", "probe.local", "glovebox-probe"):
        yield f"resolve {name}", resolve(name)
    yield "udp 53", reach(socket.AF_INET, socket.SOCK_DGRAM, ("9.9.9.9", 53))
    yield "tcp 53", v4("9.9.9.9", 53)
    yield "dns over tls", v4("9.9.9.9", 853)
    yield "multicast dns", reach(socket.AF_INET, socket.SOCK_DGRAM, ("224.0.0.251", 5353))
    yield "link-local names", reach(socket.AF_INET, socket.SOCK_DGRAM, ("224.0.0.252", 5355))
    yield "nscd", reach(socket.AF_UNIX, socket.SOCK_STREAM, "/run/nscd/socket")
    yield "resolvers", resolvers()


def resolvers():
    try:
        with open("/etc/resolv.conf", encoding="utf-8") as file:
            return [line.split()[1] for line in file if line.startswith("nameserver")]
    except FileNotFoundError:
        return []


@probe("N4")
def the_host():
    answers = set()
    for address in ("127.0.0.1", "172.17.0.1", "10.88.0.1", "10.0.2.2", "192.168.1.1", "0.0.0.0"):
        for port in (22, 80, 443, 9443, 6443):
            answers.add(v4(address, port))
    yield "addresses", sorted(answers)
    yield "loopback v6", v6("::1", 22)
    for name in ("host.docker.internal", "host.containers.internal", "kubernetes.default.svc"):
        yield f"resolve {name}", resolve(name)
    for target, kind, host, port in given_targets():
        if kind == "tcp":
            yield "a listener of the host", v4(host, port), target


@probe("N8")
def abstract_sockets():
    for name in os.environ.get("PROBE_ABSTRACT", "").split():
        yield "of the host", reach(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name), name
    yield "of a desktop", reach(socket.AF_UNIX, socket.SOCK_STREAM, "\0/tmp/.X11-unix/X0")
    yield "listed", listed_sockets()


def listed_sockets():
    try:
        with open("/proc/self/net/unix", encoding="utf-8", errors="replace") as file:
            return sorted({row.split()[7] for row in file if len(row.split()) > 7 and "@" in row})
    except OSError as error:
        return errno_name(error.errno)


@probe("N10", control=True)
def rare_families():
    for name, family in FAMILIES.items():
        answers = {child_outcome("socket", family, kind, 0) for kind in (1, 2, 3, 5)}
        yield name, sorted(answers)
        if name == "AF_INET" and "ok" in answers:
            # Nothing is sealed, and asking for the rare ones would load their modules.
            break
    yield "queue a socket in io_uring", child_outcome("io_uring_setup", 8, None)


@probe("N11")
def loopback():
    try:
        with open("/proc/self/net/if_inet6", encoding="utf-8") as file:
            # Loopback has the address ::1 as soon as it is up.
            yield "addresses", [line.split()[5] for line in file]
    except OSError as error:
        yield "addresses", errno_name(error.errno)
    try:
        with open("/proc/self/net/dev", encoding="utf-8") as file:
            yield "devices", sorted(line.split(":")[0].strip() for line in list(file)[2:])
    except OSError as error:
        yield "devices", errno_name(error.errno)
    try:
        with open("/proc/self/net/route", encoding="utf-8") as file:
            yield "routes", len(list(file)) - 1
    except OSError as error:
        yield "routes", errno_name(error.errno)
    yield "bind and connect", attempt(loopback_round)


def loopback_round():
    with socket.socket(socket.AF_INET) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.socket(socket.AF_INET) as sock:
            sock.settimeout(2)
            sock.connect(listener.getsockname())
            sock.sendall(struct.pack("B", 1))
