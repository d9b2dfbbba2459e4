"""`%%bash`, `%%sh`, `%%script` and their like, without the event loop thread IPython uses for them.

The script's output goes straight to its call, as fast as a pipe is, and an interrupt ends the
cell. Scripts in the background (`--bg`) are left to IPython.
"""

import subprocess
import sys
from typing import Any

from IPython.core.magic import cell_magic, magics_class
from IPython.core.magics.script import ScriptMagics
from IPython.utils.process import arg_split

from . import commands


@magics_class
class KernelScriptMagics(ScriptMagics):
    """IPython's script magics with another way to run what is not in the background."""

    @cell_magic("script")
    def shebang(self, line: str, cell: str) -> None:
        """Runs a cell with a program: %%script [--out NAME] [--err NAME] PROGRAM ARGUMENTS."""
        options, program = ScriptMagics.shebang.parser.parse_known_args(arg_split(line, posix=True))
        if options.bg or options.proc:
            super().shebang(line, cell)
            return
        text = (cell if cell.endswith("\n") else cell + "\n").encode("utf-8", "replace")
        try:
            code = self._run(program, text, options)
        except FileNotFoundError:
            print(f"Couldn't find program: {program[0]!r}")
            return
        if options.raise_error and code != 0:
            raise subprocess.CalledProcessError(code, program)

    def _run(self, program: list[str], text: bytes, options: Any) -> int:
        """Runs it, keeping in variables what the options say. Returns the exit code."""
        if not (options.out or options.err):
            return commands.run(program, text)
        out, err, code = commands.capture_apart(program, text)
        for name, output, stream in (
            (options.out, out, sys.stdout),
            (options.err, err, sys.stderr),
        ):
            if name:
                self.shell.user_ns[name] = output
            else:
                stream.write(output)
        return code
