"""What attacks have in common: how they are entered, what they say, and that they are bounded."""

import json

from probe_raw import errno_name

ATTACKS = {}
MIB = 1024 * 1024


def attack(function):
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def say(name, observed, detail=""):
    print(json.dumps({"id": name, "observed": observed, "detail": detail}), flush=True)


def until_refused(act, bound):
    """Repeats `act` until it fails or the bound is reached: how often it went well, and the error."""
    for count in range(bound):
        try:
            act()
        except OSError as error:
            return count, errno_name(error.errno)
        except RuntimeError as error:
            return count, str(error)
    return bound, "never refused"
