"""Prepares the toolbox while the image is built, as set-up does for the embedded runtime.

    prepare.py PACKAGES                      cuts tests off, gives matplotlib its other fonts
    prepare.py --font-cache ANSWER FOLDER    keeps the font cache that finish.py has made
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


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--font-cache", answer, folder]:
            keep_font_cache(pathlib.Path(answer), pathlib.Path(folder))
        case [packages]:
            prepare(pathlib.Path(packages))
        case _:
            sys.exit(__doc__)
