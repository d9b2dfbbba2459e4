"""Measures one goal on a jupyter-kernel-gateway and prints the figures as one JSON document.

    measure.py GOAL RUNS [CODE]

`{"peer": "jupyter-kernel-gateway 3.0.1", "figures": {NAME: [sample, …]}}`; which statistic of
the samples is wanted is for the reader to say.
"""

import base64
import json
import os
import sys
import threading
import time
from pathlib import Path

import gateway
from gateway import Gateway, Kernel

LIBRARIES = "import pandas, numpy, matplotlib.pyplot, openpyxl, pptx"
MIB = 1024 * 1024


def milliseconds(work):
    """How long `work` takes."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def start(runs):
    """Create a kernel until its first print, bare and with the libraries."""
    bare, libraries = [], []
    with Gateway() as server:
        # Once for nothing: what is compiled and cached on first use is not what is measured.
        warm = Kernel(server)
        warm.run(LIBRARIES)
        warm.close()
        for _ in range(runs):
            for code, samples in (("print(1)", bare), (LIBRARIES + "; print(1)", libraries)):
                made = []

                def create(code=code, made=made):
                    made.append(Kernel(server))
                    made[0].first_output(code)

                samples.append(milliseconds(create))
                made[0].close()
    return {"bare_ms": bare, "libraries_ms": libraries}


def first_result(runs, code):
    """Create a kernel until the end of its first code."""
    with Gateway() as server:
        warm = Kernel(server)
        warm.run(code)
        warm.close()
        samples = []
        for _ in range(runs):
            made = []

            def create(made=made):
                made.append(Kernel(server))
                made[0].run(code)

            samples.append(milliseconds(create))
            made[0].close()
    return {"first_result_ms": samples}


def round_trip(runs):
    """A small execute on a kept connection."""
    with Gateway() as server:
        kernel = Kernel(server)
        kernel.run("1+1")
        samples = [milliseconds(lambda: kernel.run("1+1")) for _ in range(runs)]
        kernel.close()
    return {"execute_ms": samples}


def share_mib(pid):
    """The proportional share of a process, in MiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def memory(runs):
    """Idle kernels, untouched and after some work with pandas; without kernel memory, which a
    process does not show."""
    untouched, worked = [], []
    with Gateway() as server:
        kernels = [Kernel(server) for _ in range(runs)]
        for kernel in kernels:
            kernel.run("1+1")
        untouched = [share_mib(pid) for pid in server.processes()]
        for kernel in kernels:
            kernel.run(
                "import pandas as pd\n"
                "frame = pd.DataFrame({'a': range(1000), 'b': [i % 7 for i in range(1000)]})\n"
                "print(frame.groupby('b').a.sum())"
            )
        worked = [share_mib(pid) for pid in server.processes()]
        for kernel in kernels:
            kernel.close()
    return {"untouched_mib": untouched, "pandas_mib": worked}


def put(kernel, name, data):
    """Writes a file in pieces that the gateway's message limit lets through."""
    piece = 3 * MIB
    kernel.run(f"open({name!r}, 'wb').close()")
    for at in range(0, len(data), piece):
        text = base64.b64encode(data[at : at + piece]).decode()
        kernel.run(f"import base64\nwith open({name!r}, 'ab') as f: f.write(base64.b64decode({text!r}))")


def get(kernel, name, size):
    """Reads a file back as printed base64."""
    message = kernel.send(
        f"import base64; print(base64.b64encode(open({name!r}, 'rb').read()).decode(), end='')"
    )
    text = []
    while True:
        answer = kernel.receive()
        if answer["parent_header"].get("msg_id") != message:
            continue
        if answer["msg_type"] == "stream":
            text.append(answer["content"]["text"])
        elif answer["content"].get("execution_state") == "idle":
            break
    assert len(base64.b64decode("".join(text))) == size


def files(runs):
    """Files in and out through the kernel, 9 MiB each way; 1 MiB in."""
    large, small = os.urandom(9 * MIB), os.urandom(MIB)
    with Gateway() as server:
        kernel = Kernel(server)
        kernel.run("1+1")
        figures = {
            "put_9mib_ms": [milliseconds(lambda: put(kernel, "a", large)) for _ in range(runs)],
            "get_9mib_ms": [milliseconds(lambda: get(kernel, "a", 9 * MIB)) for _ in range(runs)],
            "put_1mib_ms": [milliseconds(lambda: put(kernel, "b", small)) for _ in range(runs)],
        }
        kernel.close()
    return figures


def stdout(runs):
    """Output to the client in blocks and in lines, and small executes of another kernel
    meanwhile. The code is the same as on our side."""
    figures = {"blocks_mb_per_s": [], "lines_mb_per_s": []}
    codes = {
        "blocks_mb_per_s": "import sys\n"
        "block = ('x' * 99 + '\\n') * 1000\n"
        "for _ in range(200): _ = sys.stdout.write(block)",
        "lines_mb_per_s": "for _ in range(200_000): print('x' * 99)",
    }
    with Gateway() as server:
        loud, other = Kernel(server), Kernel(server)
        for kernel in (loud, other):
            kernel.run("1+1")
        figures["other_quiet_ms"] = [milliseconds(lambda: other.run("1+1")) for _ in range(50)]
        during, over = [], threading.Event()

        def beside():
            while not over.is_set():
                during.append(milliseconds(lambda: other.run("1+1")))

        thread = threading.Thread(target=beside)
        thread.start()
        for name, code in codes.items():
            for _ in range(runs):
                taken = milliseconds(lambda code=code: loud.run(code))
                figures[name].append(20 / taken * 1000)
        over.set()
        thread.join()
        for kernel in (loud, other):
            kernel.close()
    figures["other_flood_ms"] = during
    return figures


def death(runs):
    """How long after a kernel's end its client hears of it, and after a time limit (kept by the
    client, as the gateway has none) that the code was interrupted."""
    noticed, over = [], []
    with Gateway() as server:
        for _ in range(runs):
            kernel = Kernel(server)
            kernel.run("1+1")
            kernel.send("import os, time; time.sleep(0.2); os.kill(os.getpid(), 9)")
            begun = time.monotonic_ns()
            while True:
                answer = kernel.receive()
                if answer["content"].get("execution_state") in ("restarting", "dead"):
                    break
            # What a kernel prints last does not get out of it, so its sleep stands for its death.
            noticed.append((time.monotonic_ns() - begun) / 1e6 - 200)
            kernel.close()
        kernel = Kernel(server)
        kernel.run("1+1")
        for _ in range(runs):
            message = kernel.send("while True: pass")
            begun = time.monotonic()
            time.sleep(0.3)
            kernel.interrupt()
            kernel.until(message, lambda a: a["content"].get("execution_state") == "idle")
            over.append((time.monotonic() - begun) * 1000 - 300)
        kernel.close()
    return {"death_ms": noticed, "timeout_over_ms": over}


GOALS = {
    "first_result": first_result,
    "start": start,
    "round_trip": round_trip,
    "memory": memory,
    "files": files,
    "stdout": stdout,
    "death": death,
}


if __name__ == "__main__":
    goal, count, *code = sys.argv[1:]
    json.dump({"peer": gateway.name(), "figures": GOALS[goal](int(count), *code)}, sys.stdout)
