"""Draws text of many scripts, and compares each character with one that no font can have.

A character that no font has is drawn as a box, the same for all of them. So a character is
drawn when its picture is neither that box nor blank.
"""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageDraw, ImageFont

SCRIPTS = {
    "Latin": "AgÄßřłœ€",
    "Greek and Cyrillic": "αΩЖя",
    "Chinese": "漢汉龙圖",
    "Japanese": "東あアヶ",
    "Korean": "한글뷁",
    "signs": "→≤√∑●✓★",
    "emoji": "😀🚀🎉❤🐧",
}
UNASSIGNED = "\u0378"


def draw(text, **style):
    figure = Figure(figsize=(0.6, 0.6), dpi=100)
    figure.text(0.5, 0.5, text, size=20, ha="center", va="center", **style)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def check_figures():
    import warnings

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        box = draw(UNASSIGNED)
    # The control: matplotlib does say when it has no glyph.
    print("unassigned:", *[str(warning.message).split(" (")[0] for warning in told])
    blank = draw("")
    assert (box != blank).any()
    for style in ({}, {"weight": "bold"}, {"family": "serif"}):
        for script, characters in SCRIPTS.items():
            pictures = [draw(character, **style) for character in characters]
            bad = [
                character
                for character, picture in zip(characters, pictures, strict=True)
                if (picture == box).all() or (picture == blank).all()
            ]
            alike = len({picture.tobytes() for picture in pictures}) != len(characters)
            if bad or alike:
                print("not drawn:", script, style, bad, "alike" if alike else "")
    print("figures:", len(SCRIPTS), "scripts drawn")


def check_pictures():
    """Colour emoji, which matplotlib cannot draw and Pillow can."""
    font = ImageFont.truetype("/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf", 109)
    picture = Image.new("RGB", (140, 140), "white")
    ImageDraw.Draw(picture).text((0, 0), "🚀", font=font, embedded_color=True)
    colours = picture.getcolors(1 << 16)
    print("emoji in colour:", any(max(c) - min(c) > 100 for _, c in colours))


def save_figure():
    import matplotlib.pyplot as plt

    plt.figure(figsize=(6, 4))
    plt.bar(["Zürich", "東京", "서울", "Москва 🚀"], [1, 2, 3, 4])
    plt.title("Umsatz 売上 매출 😀")
    plt.show()


check_figures()
check_pictures()
save_figure()
