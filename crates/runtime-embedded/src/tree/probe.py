"""Says, as JSON on standard output, what this interpreter is and where its parts lie."""

import json
import os
import platform
import sys
import sysconfig

PREFIX = "/opt/python"


def portable_variables():
    """What a moved interpreter may still say of its build: numbers, words, and places under PREFIX.

    Compiler flags and source folders are left out: they mean nothing in a sandbox and name
    folders of the machine that built the interpreter.
    """
    kept = {}
    for name, value in sysconfig.get_config_vars().items():
        if isinstance(value, str):
            value = value.replace(sys.base_prefix + "/", PREFIX + "/") if sys.base_prefix != "/" else value
            value = PREFIX if value == sys.base_prefix else value
            if "/" in value and not (value == PREFIX or value.startswith(PREFIX + "/")) or " /" in value:
                continue
        elif not isinstance(value, int):
            continue
        kept[name] = value
    return kept


base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
print(
    json.dumps(
        {
            "implementation": platform.python_implementation(),
            "version": list(sys.version_info[:3]),
            "build": sys.version,
            "machine": platform.machine(),
            "libc": platform.libc_ver(base)[0],
            "abi": "" if not sysconfig.get_config_var("Py_GIL_DISABLED") else "t",
            "debug": hasattr(sys, "gettotalrefcount"),
            "executable": base,
            "base_prefix": sys.base_prefix,
            "stdlib": os.path.dirname(os.path.realpath(os.__file__)),
            "dynload": [path for path in sys.path if os.path.basename(path) == "lib-dynload"],
            "multiarch": sysconfig.get_config_var("MULTIARCH") or "",
            "sysconfig_module": sysconfig._get_sysconfigdata_name(),
            "sysconfig": portable_variables(),
        }
    )
)
