"""What is the matter with a file, in one line for a person."""


class Trouble(Exception):
    """It cannot be shown, and why; `fix` says what would help, where something would."""

    def __init__(self, message, fix=None):
        super().__init__(message)
        self.fix = fix


def damaged(what):
    return Trouble(f"the file is damaged, or no {what}")


PROTECTED = Trouble("the file is protected by a password", "save a copy without a password")
