#!/opt/python/bin/python3
"""Takes the agent's place in a sandbox: what could an agent do that was taken over?

It has everything that an agent is started with, answers the one question that the runtime asks,
and runs probes for whoever asks next.
"""

import json
import os
import select
import socket
import subprocess
import sys
import time

sys.path.insert(0, "/opt/glovebox/lib/probes")
sys.dont_write_bytecode = True

import probe_batch  # noqa: E402,F401 - enters the probes
import probe_report  # noqa: E402

HEALTH = json.dumps({"protocol": int("@PROTOCOL@"), "epoch": "0" * 32}).encode()


def answer(connection, body):
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    # Whoever asked ends the connection.
    while connection.recv(4096):
        pass


def probes(checks):
    """What the probes say, from a child: they must not change who asks them."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        os.chdir("/tmp")
        with open(writer, "w") as out:
            probe_report.run(checks, out)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as said:
        body = said.read()
    os.wait()
    return body


def of_a_program(config):
    """What a program sees that is started while this process has a folder of the sandbox open."""
    forgotten = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    ids = config["ids"]
    argv = [config["exec_helper"], "--uid", str(ids["workload"]), "--gid", str(ids["workload"])]
    argv += ["--cwd", "/workspace", "--open-files", "256", "--file-size", str(1 << 20), "--"]
    argv += [sys.executable, "-B", "/opt/glovebox/lib/probes/probe_batch.py", "K9"]
    ran = subprocess.run(argv, pass_fds=[forgotten], stdin=subprocess.DEVNULL, capture_output=True)
    os.close(forgotten)
    return ran.stdout + ran.stderr


def open_now():
    """Number and file of every open descriptor."""
    seen = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            seen[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # the one that the list was read with
            continue
    return seen


def what_is_open(opened, config):
    """What was open from the start, and which of it the configuration names."""
    fds = config["fds"]
    events = (fds.get("oom_events") or {}).get("fd")
    declared = [fds["listener"], fds.get("launcher"), events, *fds["workload_cgroups"]]
    return reports(open=opened, declared=[fd for fd in declared if fd is not None])


WANTED = b'{"is":"kernel_wanted"}'
NONSENSE = (
    b"",
    b"\x00" * 64,
    b"{" * 200,
    b'{"is":"kernel_wanted","more":1}',
    b'{"is":"claim"}',
    b'{"is":"kernel"}',
    b'"kernel_ready"',
)


class Line:
    """The line to the launcher, as an agent has it."""

    def __init__(self, config):
        self.socket = socket.socket(fileno=os.dup(config["fds"]["launcher"]))
        self.socket.setblocking(False)
        self.kernels = 0
        self.refusals = 0
        self.is_cut = False
        # Their kernels go on for as long as these are open.
        self.wires = []

    def say(self, packet, rights=()):
        try:
            socket.send_fds(self.socket, [packet], rights)
        except OSError:
            return 0
        return 1

    def hear(self, seconds):
        """Takes what comes until nothing comes for so long."""
        while not self.is_cut and select.select([self.socket], [], [], seconds)[0]:
            try:
                packet, wires, _, _ = socket.recv_fds(self.socket, 65536, 8)
            except OSError:  # cut with something unread
                packet, wires = b"", []
            self.wires += wires
            self.kernels += b'"kernel"' in packet
            self.refusals += b'"no_kernel"' in packet
            self.is_cut = not packet


def reports(**seen):
    lines = ({"id": name, "observed": value, "detail": ""} for name, value in seen.items())
    return "\n".join(map(json.dumps, lines)).encode()


def first_kernel(line):
    """Takes the kernel that comes unasked, before which nothing may be asked for."""
    end = time.monotonic() + 60
    while not line.kernels and not line.refusals and not line.is_cut and time.monotonic() < end:
        line.hear(0.1)


def one_more(line):
    """Asks for a kernel as an agent does, and waits for the answer."""
    before = line.kernels + line.refusals
    line.say(WANTED)
    end = time.monotonic() + 30
    while line.kernels + line.refusals == before and not line.is_cut and time.monotonic() < end:
        line.hear(0.01)
    return line.kernels + line.refusals > before


def ask_for_a_kernel(line):
    first_kernel(line)
    before = line.kernels
    one_more(line)
    return reports(kernels=line.kernels - before, refusals=line.refusals)


def greed(line):
    """Asks for a kernel again as soon as the last one has come."""
    first_kernel(line)
    began = time.monotonic()
    before = line.kernels
    while time.monotonic() < began + 2 and one_more(line):
        pass
    took = time.monotonic() - began
    return reports(kernels=line.kernels - before, milliseconds=int(took * 1000))


def flood(line, kind):
    """Says far more than there is to be said: words, nonsense, long packets, descriptors."""
    first_kernel(line)
    before = line.kernels
    said = 0
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(2000):
        if kind == "words":
            said += line.say(WANTED)
        elif kind == "nonsense":
            said += sum(map(line.say, NONSENSE))
        elif kind == "long":
            said += line.say(b"x" * 65536)
        elif kind == "descriptors":
            said += line.say(WANTED, [null] * 16)
    line.hear(1)
    os.close(null)
    return reports(said=said, kernels=line.kernels - before)


def main():
    opened = open_now()
    config = json.load(sys.stdin)
    line = Line(config)
    listener = socket.socket(fileno=config["fds"]["listener"])
    listener.setblocking(True)
    while True:
        connection, _ = listener.accept()
        with connection:
            request = b""
            while b"\r\n\r\n" not in request:
                part = connection.recv(4096)
                if not part:
                    break
                request += part
            path = request.split(b" ")[1].decode() if request.count(b" ") > 1 else ""
            if path == "/v1/health":
                answer(connection, HEALTH)
            elif path.startswith("/probes/"):
                answer(connection, probes(path.split("/")[2].split(",")))
            elif path == "/program":
                answer(connection, of_a_program(config))
            elif path == "/open":
                answer(connection, what_is_open(opened, config))
            elif path == "/kernel":
                answer(connection, ask_for_a_kernel(line))
            elif path == "/greed":
                answer(connection, greed(line))
            elif path.startswith("/flood/"):
                answer(connection, flood(line, path.split("/")[2]))


main()
