"""The list of probes and the form of their reports: one JSON document a line.

A probe says what it saw under its id (`CHECK/what`); what should have been seen is no business
of anything that runs inside a sandbox.
"""

import json
import os
import sys
import traceback

PROBES = []


def probe(check, control=False):
    """Enters a function as the probe of a check. It yields `(what, observed, detail)`.

    `control` marks a probe that changes nothing wherever it runs. Only these are ever run outside
    a sandbox, to show that what they find refused inside is possible at all.
    """

    def enter(function):
        PROBES.append((check, function, control))
        return function

    return enter


def is_sandbox():
    return os.getuid() != 0 and os.path.exists("/opt/glovebox/bin/glovebox-agent")


def refuse_outside():
    """Ends the program unless it runs in a sandbox: on a machine it would do harm."""
    if not is_sandbox():
        sys.exit("this attacks what it runs on, and so runs in a sandbox only")


def say(out, name, observed, detail=""):
    line = {"id": name, "observed": observed, "detail": detail}
    out.write(json.dumps(line, sort_keys=True) + "\n")


def run(only=(), out=sys.stdout, control=False):
    """Runs the probes of the named checks, or all but those that walk the whole tree."""
    if not control:
        refuse_outside()
    for check, function, is_control in PROBES:
        wanted = check in only if only else not check.startswith("walk/")
        if not wanted or (control and not is_control):
            continue
        try:
            for what, observed, *detail in function():
                say(out, f"{check}/{what}", observed, *detail)
        except Exception:
            # A probe that fails is reported and never counts as a protection that holds.
            say(out, f"{check}/{function.__name__}", "probe failed", traceback.format_exc())
    out.write(json.dumps({"id": "end", "observed": "end", "detail": ""}) + "\n")
    out.flush()
