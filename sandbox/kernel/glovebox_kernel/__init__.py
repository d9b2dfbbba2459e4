"""The Python kernel of a Glovebox sandbox: IPython behind one framed Unix socket.

The agent starts it with ``python3 -P -m glovebox_kernel``. It runs code that it must not trust,
in its own process: nothing here is a security boundary. What it does promise is order: whatever
the code prints, shows, raises, forks or breaks, the agent gets well-formed frames and exactly one
reply for each execute, or sees the process die. ``README.md`` beside this package has the rules.

It does not speak ZeroMQ or read any configuration, profile or history file.
"""
