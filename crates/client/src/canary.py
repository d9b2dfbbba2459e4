"""What a canary tries inside of a sandbox. Standard library only.

Arguments, of the program and of `main`: `attempt LIMIT_MS TARGETS` tries every target of the JSON
list and prints a line of JSON for each; `listen NAME` opens an abstract socket, reaches it itself,
prints `ready` and answers until it is killed.
"""

import contextlib
import errno
import ipaddress
import json
import os
import socket
import sys
import tempfile
import threading
import time

BANNER = b"glovebox canary\n"


def answer(listener):
    # Until nobody listens any more.
    with contextlib.suppress(OSError):
        while True:
            stream, _ = listener.accept()
            with stream:
                stream.sendall(BANNER)


def through(stream, where):
    """Somebody has taken the connection; what they say is only of interest."""
    try:
        said = stream.recv(64)
    except OSError as error:
        return f"{where} took the connection and then: {error}"
    return f"{where} took the connection and said {said!r}"


def tcp(reach, limit):
    address, port = reach["address"], reach["port"]
    where = f"{address} port {port}"
    is_local = ipaddress.ip_address(address).is_loopback
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as stream:
            stream.settimeout(limit)
            stream.connect((address, port))
            return True, through(stream, where)
    except TimeoutError:
        return False, f"{where} did not answer"
    except OSError as error:
        # A refusal comes from a network that was reached; on the loopback, from the sandbox's own.
        reached = error.errno in (errno.ECONNREFUSED, errno.ECONNRESET) and not is_local
        return reached, f"connecting to {where}: {error}"


def nameservers():
    """Those that the sandbox knows, and the one that is asked where none is named."""
    known = [("127.0.0.1", 53)]
    try:
        with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
            rows = [row.split() for row in file]
        known += [(row[1], 53) for row in rows if row[:1] == ["nameserver"] and len(row) > 1]
    except OSError:
        pass
    return known


def ask(resolver, name, limit):
    """A question over UDP. Whatever is answered, somebody was reached."""
    address, port = resolver
    where = f"asking {address} port {port} for {name}"
    number = os.urandom(2)
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    question = number + b"\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as stream:
            stream.settimeout(limit)
            stream.connect((address, port))
            stream.send(question)
            while True:
                answer = stream.recv(512)
                if answer[:2] == number and len(answer) > 3:
                    return True, f"{where} was answered with the code {answer[3] & 15}"
    except TimeoutError:
        return False, f"{where}: there was no answer"
    except OSError as error:
        return False, f"{where}: {error}"


def dns(reach, limit):
    name, given = reach["name"], reach.get("resolver")
    if given:
        return ask((given["address"], given["port"]), name, limit)
    found = []

    def look_up():
        try:
            found.append((True, f"{name} is {socket.getaddrinfo(name, 443)[0][4][0]}"))
        except OSError as error:
            found.append((False, f"looking up {name}: {error}"))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(limit / 2)
    if found and found[0][0]:
        return found[0]
    # A resolver that knows of no such name was reached all the same.
    servers = nameservers()
    for server in servers:
        reached, how = ask(server, name, limit / 2 / len(servers))
        if reached:
            return reached, how
    return found[0] if found else (False, f"looking up {name}: there was no answer")


def unix(address, shown, limit):
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
            stream.settimeout(limit)
            stream.connect(address)
            return True, through(stream, shown)
    except OSError as error:
        return False, f"connecting to {shown}: {error}"


def abstract(reach, limit):
    return unix("\0" + reach["name"], f"the abstract socket {reach['name']}", limit)


def own(_reach, limit):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen()
            threading.Thread(target=answer, args=(listener,), daemon=True).start()
            return unix(path, "a socket of its own", limit)


# What the kernel puts into every network namespace where it has the modules for it. None leads
# anywhere until somebody gives it an address, and then there is a route.
EVERYWHERE = {"lo", "tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0"}
EVERYWHERE |= {"ip6tnl0", "ip6gre0", "ip6_vti0"}


def listed(name):
    with open(f"/proc/self/net/{name}", encoding="utf-8", errors="replace") as file:
        return [row.split() for row in file]


def look(what, find):
    """What cannot be looked at is not shown to be closed."""
    try:
        found = sorted(find())
    except (OSError, IndexError, ValueError) as error:
        return True, f"{what} cannot be looked at: {error}"
    return bool(found), f"{what}: {', '.join(found) or 'none'}"


def interfaces(_reach, _limit):
    def find():
        names = {" ".join(row).partition(":")[0] for row in listed("dev")[2:]}
        return names - EVERYWHERE

    return look("interfaces beside the loopback", find)


def routes(_reach, _limit):
    def find():
        four = {f"{row[1]} by {row[0]}" for row in listed("route")[1:] if row[0] != "lo"}
        # Without version 6 there is no such file.
        six = listed("ipv6_route") if os.path.exists("/proc/self/net/ipv6_route") else []
        return four | {f"{row[0]} by {row[9]}" for row in six if row[9] != "lo"}

    return look("routes that lead away", find)


def listed_socket(reach, _limit):
    port = reach["port"]

    def find():
        tables = [name for name in ("tcp", "tcp6") if os.path.exists(f"/proc/self/net/{name}")]
        if not tables:
            raise OSError("there is no such list")
        rows = [row for name in tables for row in listed(name)[1:]]
        return {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}

    return look(f"sockets that listen at port {port}", find)


def network_namespace(reach, _limit):
    number = reach["number"]

    def find():
        own = os.stat("/proc/self/ns/net").st_ino
        return {f"{own}, the gateway's own"} if own == number else set()

    return look("the network namespace is a shared one", find)


KINDS = {
    "tcp": tcp,
    "dns": dns,
    "interfaces": interfaces,
    "routes": routes,
    "listed_socket": listed_socket,
    "network_namespace": network_namespace,
    "abstract_socket": abstract,
    "own_socket": own,
}


def attempt(limit, targets):
    for target in targets:
        reach = target["reach"]
        began = time.monotonic_ns()
        is_open, how = KINDS[reach["by"]](reach, limit)
        took_us = (time.monotonic_ns() - began) // 1000
        verdict = "OPEN" if is_open else "BLOCKED"
        result = {"id": target["id"], "verdict": verdict, "how": how, "took_us": took_us}
        print(json.dumps(result), flush=True)


def listen(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind("\0" + name)
        listener.listen()
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        reached, how = unix("\0" + name, "itself", 10)
        print("ready" if reached else how, flush=True)
        threading.Event().wait()


def main(words):
    if words[0] == "attempt":
        attempt(int(words[1]) / 1000, json.loads(words[2]))
    else:
        listen(words[1])
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
    # Threads that still wait for an answer must not hold the end up.
    os._exit(0)
