"""A client of a Glovebox server: sandboxes, code in them, files in and out."""

from ._client import Artifact, Client, Event, Refused, Result, Sandbox

__all__ = ["Artifact", "Client", "Event", "Refused", "Result", "Sandbox"]
