"""Runs the harmless probes, in a sandbox only: `probe_batch.py [--detached] [CHECK...]`.

With `--detached` they run in a grandchild that has left the session and whose parent is gone.
A kernel calls `main` with the same words, or with `--program` to have them run in a program.
"""

import os
import subprocess
import sys

import probe_files
import probe_kernel
import probe_network
import probe_report
import probe_resources
import probe_secrets
import probe_views

MODULES = [probe_kernel, probe_views, probe_files, probe_network, probe_resources, probe_secrets]


def detached(only):
    """Runs the probes two forks down, in a session of their own, and passes on what they say."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.dup2(writer, 1)
            os.close(reader)
            os.close(writer)
            with open(1, "w", closefd=False) as out:
                probe_report.run(only, out)
        os._exit(0)
    os.close(writer)
    os.wait()
    with open(reader, "rb") as lines:
        sys.stdout.buffer.write(lines.read())
    sys.stdout.flush()


def in_program(only):
    """Runs the probes in a program that gets every descriptor that it can inherit."""
    words = [sys.executable, os.path.abspath(__file__), *only]
    subprocess.run(words, close_fds=False, check=True)


def main(arguments):
    only = [argument for argument in arguments if not argument.startswith("--")]
    if "--detached" in arguments:
        detached(only)
    elif "--program" in arguments:
        in_program(only)
    else:
        probe_report.run(only, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
