"""Looks at an office file as the zip archive that it is, before anything unpacks it."""

import zipfile

import markup
from trouble import PROTECTED, Trouble, damaged

# What all entries together may unpack to, and one of text.
TOTAL_BYTES = 600 << 20
ENTRY_BYTES = 300 << 20
ENTRIES = 20_000

# Office's own container of older and of encrypted files.
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def is_compound(path):
    with open(path, "rb") as file:
        return file.read(8) == COMPOUND


def is_encrypted_compound(path):
    """Names in such a container stand in it as UTF-16."""
    with open(path, "rb") as file:
        return "EncryptedPackage".encode("utf-16-le") in file.read(16 << 20)


def check(path, what, is_office=True):
    """Refuses what is no archive, is encrypted, declares entities, or unpacks to more than anything
    sensible."""
    if is_compound(path):
        if is_encrypted_compound(path):
            raise PROTECTED
        raise Trouble(f"the file is in the form of an older program, and named as a {what}")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise damaged(what) from None
    if len(entries) > ENTRIES:
        raise Trouble("the file has more parts than a preview reads")
    if any(entry.flag_bits & 1 for entry in entries):
        raise PROTECTED
    sizes = [entry.file_size for entry in entries]
    if sum(sizes) > TOTAL_BYTES or max(sizes, default=0) > ENTRY_BYTES:
        raise Trouble("the file unpacks to more than a preview may read")
    with zipfile.ZipFile(path) as archive:
        for entry in entries:
            # By any name: the file itself says which of its parts are what.
            try:
                part = archive.open(entry)
            except markup.UNREADABLE:
                continue
            with part:
                markup.check(part, is_office)


def read(archive, name, limit):
    """An entry's content, no more than `limit` bytes: sizes in an archive may lie."""
    with archive.open(name) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise Trouble("the file unpacks to more than a preview may read")
    return content
