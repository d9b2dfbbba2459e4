"""Makes what a file looks like, inside a throwaway sandbox.

    python3 main.py FORMAT FILE OUT

Every part is written into OUT and then named in one line of standard output, so that what is ready
can be fetched while the rest is being made. The last line is the outcome. Nobody relies on a word
of it: whoever reads this checks all of it, as a file that was read here may have taken over this
very program.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from trouble import Trouble  # noqa: E402  its folder is not known before


class Out:
    """Where parts go, and who is told."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def bytes(self, name, content):
        temporary = self.path("." + name)
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, self.path(name))

    def document(self, name, content):
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        self.bytes(name, text.encode("utf-8", "replace"))

    def tell(self, **line):
        print(json.dumps(line, ensure_ascii=True, separators=(",", ":")), flush=True)


def make(form, path, out):
    if form in ("pptx", "docx", "ppt", "doc", "odp", "odt", "rtf"):
        import documents

        return documents.make(form, path, out)
    if form == "pdf":
        import pages

        return pages.make(path, out)
    if form in ("xlsx", "xls", "ods"):
        import workbooks

        return workbooks.make(form, path, out)
    if form in ("csv", "tsv"):
        import tables

        return tables.make(form, path, out)
    if form in ("png", "jpeg", "gif", "webp"):
        import images

        return images.make(path, out)
    if form == "svg":
        import drawings

        return drawings.make(path, out)
    raise Trouble("there is no preview of this type of file")


def main():
    form, path, folder = sys.argv[1:]
    out = Out(folder)
    try:
        outcome = make(form, path, out)
    except Trouble as trouble:
        outcome = {"failed": str(trouble), "fix": trouble.fix}
    except MemoryError:
        outcome = {"failed": "it takes more memory than a preview may use", "fix": None}
    except RecursionError:
        outcome = {"failed": "it is nested too deeply to be shown", "fix": None}
    except Exception as error:
        print(f"{type(error).__name__}: {error}"[:2000], file=sys.stderr)
        outcome = {"failed": "the file is damaged, or not of the type that its name says", "fix": None}
    out.document("outcome.json", outcome)
    out.tell(done=True)
    # Threads of libraries that are still at work on a hostile file are not waited for.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
