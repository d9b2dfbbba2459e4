"""Runs LibreOffice, where this sandbox has it."""

import os
import shutil
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
    environment = {
        **os.environ,
        "HOME": home,
        "TMPDIR": home,
        "SAL_USE_VCLPLUGIN": "svp",
        "SAL_DISABLE_OPENCL": "1",
        "OOO_DISABLE_RECOVERY": "1",
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
    try:
        subprocess.run(
            command,
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Trouble(f"LibreOffice did not get done with it in {seconds} seconds") from None
    ending = target.split(":")[0]
    name = os.path.splitext(os.path.basename(path))[0]
    made = os.path.join(into, f"{name}.{ending}")
    return made if os.path.isfile(made) else None
