"""Runs LibreOffice, where this sandbox has it."""

import os
import shutil
import signal
import subprocess
import tempfile

from trouble import Trouble

MISSING = "this sandbox has no LibreOffice"

# What it must never do by itself: macros, links to elsewhere, asking for anything. And what it
# must: calculate what has no stored value.
SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="MacroSecurityLevel" \
oor:op="fuse"><value>3</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop oor:name="DisableMacrosExecution" \
oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Common/Security/Scripting"><prop \
oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop></item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update"><prop oor:name="Link" \
oor:op="fuse"><value>0</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Content/Update"><prop oor:name="Link" \
oor:op="fuse"><value>1</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" \
oor:op="fuse"><value>0</value></prop></item>
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="ODFRecalcMode" \
oor:op="fuse"><value>0</value></prop></item>
<item oor:path="/org.openoffice.Setup/Office"><prop oor:name="ooSetupInstCompleted" \
oor:op="fuse"><value>true</value></prop></item>
</oor:items>
"""


# It takes and gives back pieces of memory all the time. Each that goes back to Linux has to be cleared
# anew, which is a third of all the time that a conversion takes: it keeps them.
MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}


def is_here():
    return shutil.which("soffice") is not None


def convert(path, target, into, seconds):
    """Converts a file into a folder, and gives the path of what came of it; nothing where
    LibreOffice could not read the file."""
    # Everything of it lies where there is room: /tmp is small.
    home = tempfile.mkdtemp(prefix=".office-", dir=into)
    user = os.path.join(home, "profile", "user")
    os.makedirs(user)
    with open(os.path.join(user, "registrymodifications.xcu"), "w") as file:
        file.write(SETTINGS)
    if build := build_of(shutil.which("soffice")):
        # A profile of this very build needs no second start to set itself up.
        os.makedirs(os.path.join(user, "extensions"))
        with open(os.path.join(user, "extensions", "buildid"), "w") as file:
            file.write(build)
    environment = {
        **os.environ,
        "HOME": home,
        "TMPDIR": home,
        "SAL_USE_VCLPLUGIN": "svp",
        "SAL_DISABLE_OPENCL": "1",
        "OOO_DISABLE_RECOVERY": "1",
        **MEMORY,
    }
    command = [
        "soffice",
        f"-env:UserInstallation=file://{home}/profile",
        "--headless",
        "--norestore",
        "--nolockcheck",
        "--nodefault",
        "--convert-to",
        target,
        "--outdir",
        into,
        path,
    ]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # In a group of its own: what the command starts is ended with it.
    running = subprocess.Popen(command, env=environment, cwd=home, start_new_session=True, **quiet)
    try:
        code = running.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        raise Trouble(f"LibreOffice did not get done with it in {seconds} seconds") from None
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        # Nobody else ends it so than Linux, where memory runs out.
        raise MemoryError
    ending = target.split(":")[0]
    name = os.path.splitext(os.path.basename(path))[0]
    made = os.path.join(into, f"{name}.{ending}")
    return made if os.path.isfile(made) else None


def build_of(command):
    version = os.path.join(os.path.dirname(os.path.realpath(command)), "versionrc")
    try:
        with open(version, encoding="utf-8", errors="replace") as file:
            return next((line[8:].strip() for line in file if line.startswith("buildid=")), None)
    except OSError:
        return None
