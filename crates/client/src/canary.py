"""What a canary tries inside of a sandbox. Standard library only.

Arguments: `attempt LIMIT_MS TARGETS` tries every target of the JSON list and prints a line of JSON for
each; `listen NAME` opens an abstract socket, reaches it itself, prints `ready` and answers until it
is killed.
"""

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


def dns(reach, limit):
    name = reach["name"]
    found = []

    def look_up():
        try:
            found.append((True, f"{name} is {socket.getaddrinfo(name, 443)[0][4][0]}"))
        except OSError as error:
            found.append((False, f"looking up {name}: {error}"))

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(limit)
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


KINDS = {"tcp": tcp, "dns": dns, "abstract_socket": abstract, "own_socket": own}


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


if sys.argv[1] == "attempt":
    attempt(int(sys.argv[2]) / 1000, json.loads(sys.argv[3]))
else:
    listen(sys.argv[2])
# Threads that still wait for an answer must not hold the end up.
sys.stdout.flush()
os._exit(0)
