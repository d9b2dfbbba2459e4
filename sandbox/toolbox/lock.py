#!/usr/bin/env python3
"""Writes requirements.lock from toolbox.in: exact versions and the wheels' SHA-256.

It needs `uv` beside the Python that runs it and the module `packaging`; README.md says how
to get both. It does not install anything and does not download wheels: uv reads the index
and this script keeps the hashes of the wheels that a sandbox can use.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib
from urllib.parse import unquote, urlsplit

from packaging.markers import Marker
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

HERE = pathlib.Path(__file__).resolve().parent
PYTHONS = ["3.11", "3.12", "3.13"]
MACHINES = ["x86_64", "aarch64"]

# Asked for by a package that works without them.
LEFT_OUT = {
    "jedi": "IPython completes names without it; its 6 600 files would be a third of the tree",
    "parso": "only jedi uses it",
}

HEADER = """\
# Made by lock.py from toolbox.in; do not edit. README.md says how to make it anew.
# One version of each package for CPython {pythons} on Linux ({machines}, glibc),
# with the hash of every wheel that one of them can use.
# pip install --require-hashes --only-binary :all: --no-deps -r requirements.lock
"""


def main() -> None:
    lines = [HEADER.format(pythons=", ".join(PYTHONS), machines=", ".join(MACHINES))]
    for package in resolve():
        if not wanted(package):
            continue
        hashes = usable_hashes(package)
        lines.append(f"{package['name']}=={package['version']} \\\n")
        lines.extend(f"    --hash=sha256:{value} \\\n" for value in hashes[:-1])
        lines.append(f"    --hash=sha256:{hashes[-1]}\n")
    target = HERE / "requirements.lock"
    target.write_text("".join(lines))
    print(f"{target}: {sum('==' in line for line in lines)} packages")


def resolve() -> list[dict]:
    """Resolves toolbox.in once for all Pythons and platforms, into the form of PEP 751."""
    # Settings of this machine, such as a folder of wheels, must not find their way into the lock.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_FIND", "UV_FIND"))}
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "pylock.toml")
        subprocess.run(
            [
                pathlib.Path(sys.executable).parent / "uv", "pip", "compile", HERE / "toolbox.in",
                "--quiet", "--universal", "--python-version", PYTHONS[0], "--fork-strategy", "fewest",
                "--only-binary", ":all:", "--generate-hashes", "--format", "pylock.toml",
                "--output-file", output,
            ],
            check=True,
            env=environment,
        )  # fmt: skip
        return tomllib.loads(output.read_text())["packages"]


def wanted(package: dict) -> bool:
    """Whether a package is for Linux at all (`colorama`, for one, is for Windows), and of use."""
    if package["name"] in LEFT_OUT:
        return False
    marker = package.get("marker")
    return marker is None or any(Marker(marker).evaluate(environment(python)) for python in PYTHONS)


def environment(python: str) -> dict[str, str]:
    return {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "os_name": "posix",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "python_version": python,
        "python_full_version": f"{python}.0",
    }


def usable_hashes(package: dict) -> list[str]:
    """The hashes of the wheels for our Pythons and machines; ends the program where one has none."""
    found: dict[tuple[str, str], bool] = {(p, m): False for p in PYTHONS for m in MACHINES}
    hashes = set()
    for wheel in package["wheels"]:
        name = unquote(urlsplit(wheel["url"]).path).rsplit("/", 1)[-1]
        tags = parse_wheel_filename(name)[3]
        fits = {key for key in found if any(tag_fits(tag, *key) for tag in tags)}
        if fits:
            hashes.add(wheel["hashes"]["sha256"])
            found.update(dict.fromkeys(fits, True))
    missing = [f"CPython {p} on {m}" for (p, m), present in found.items() if not present]
    if missing:
        sys.exit(f"{package['name']} {package['version']} has no wheel for {', '.join(missing)}")
    return sorted(hashes)


def tag_fits(tag: Tag, python: str, machine: str) -> bool:
    short = python.replace(".", "")
    if tag.platform != "any" and not (
        tag.platform.startswith("manylinux") and tag.platform.endswith(f"_{machine}")
    ):
        return False
    if tag.abi == "abi3":
        return tag.interpreter.startswith("cp3") and int(tag.interpreter[3:]) <= int(short[1:])
    return tag.abi in ("none", f"cp{short}") and tag.interpreter in (f"cp{short}", "py3", f"py{short}")


if __name__ == "__main__":
    main()
