"""Prepares the toolbox while the image is built, as set-up does for the embedded runtime.

    prepare.py PACKAGES                      cuts tests off, gives matplotlib its other fonts
    prepare.py --font-cache ANSWER FOLDER    keeps the font cache that finish.py has made
    prepare.py --drop-glyph-names FONT       marks a font as one without glyph names
"""

import json
import pathlib
import shutil
import sys

ADD_FALLBACK_FONTS = """
# Added by Glovebox.
from matplotlib._glovebox_fonts import add_fallback_fonts

add_fallback_fonts(FontManager, FontProperties)

"""


def prepare(packages):
    # Commands of the packages name an interpreter of elsewhere, and manuals have no reader here.
    for unused in ("bin", "share"):
        shutil.rmtree(packages / unused, ignore_errors=True)
    for tests in sorted(packages.rglob("tests")):
        if tests.is_dir():
            shutil.rmtree(tests)
    module = packages / "matplotlib" / "font_manager.py"
    source = module.read_text()
    made = source.index("\nfontManager = ")
    module.write_text(source[:made] + ADD_FALLBACK_FONTS + source[made:])
    beside = pathlib.Path(__file__).with_name("fallback_fonts.py")
    shutil.copyfile(beside, packages / "matplotlib" / "_glovebox_fonts.py")
    (packages / "glovebox.pth").write_text("/opt/glovebox/lib\n")


def keep_font_cache(answer, folder):
    # Packages may greet on standard output; the answer is the last line.
    fonts = json.loads(answer.read_text().rstrip().rsplit("\n", 1)[-1])["fonts"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / pathlib.PurePath(fonts["name"]).name).write_text(fonts["content"])


def drop_glyph_names(font):
    """Symbola's are all empty, and matplotlib, which tells glyphs apart by name in PDF, draws the
    same one for all. Version 3 of the table of names says that there are none."""
    data = bytearray(font.read_bytes())
    for entry in range(12, 12 + 16 * int.from_bytes(data[4:6], "big"), 16):
        if data[entry : entry + 4] == b"post":
            at = int.from_bytes(data[entry + 8 : entry + 12], "big")
            data[at : at + 4] = b"\0\3\0\0"
    font.write_bytes(data)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--font-cache", answer, folder]:
            keep_font_cache(pathlib.Path(answer), pathlib.Path(folder))
        case ["--drop-glyph-names", font]:
            drop_glyph_names(pathlib.Path(font))
        case [packages]:
            prepare(pathlib.Path(packages))
        case _:
            sys.exit(__doc__)
