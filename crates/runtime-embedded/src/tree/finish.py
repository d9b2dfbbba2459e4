"""Runs inside the new tree, as nobody and without network: the last step of a set-up.

Makes matplotlib's font cache with the paths that hold in a sandbox, and shows that the tree
works before anyone relies on it: every package is imported, and text in several scripts is
drawn without a missing glyph. Prints one JSON object.
"""

import importlib
import importlib.metadata
import json
import os
import warnings

# Names that people write in their scripts for fonts they had elsewhere.
STAND_INS = {
    "Noto Sans CJK SC": (
        "SimHei, SimSun, Microsoft YaHei, WenQuanYi Micro Hei, WenQuanYi Zen Hei, Source Han Sans SC, "
        "Noto Sans SC, PingFang SC, STHeiti, Heiti SC, Arial Unicode MS"
    ),
    "Noto Sans CJK TC": "Microsoft JhengHei, PMingLiU, PingFang TC, Noto Sans TC, Source Han Sans TC",
    "Noto Sans CJK JP": (
        "MS Gothic, Yu Gothic, Meiryo, Hiragino Sans, IPAexGothic, IPAGothic, TakaoPGothic, "
        "Noto Sans JP, Source Han Sans JP"
    ),
    "Noto Sans CJK KR": "Malgun Gothic, NanumGothic, AppleGothic, Noto Sans KR, Source Han Sans KR",
}


def font_cache():
    from matplotlib import font_manager

    folder = os.environ["MPLCONFIGDIR"]
    (name,) = [name for name in os.listdir(folder) if name.startswith("fontlist-")]
    with open(os.path.join(folder, name)) as file:
        cache = json.load(file)
    entries = cache["ttflist"]
    for real, others in STAND_INS.items():
        faces = [entry for entry in entries if entry["name"] == real]
        entries.extend({**face, "name": other} for face in faces for other in others.split(", "))
    with open(os.path.join(folder, name), "w") as file:
        json.dump(cache, file)
    font_manager.fontManager = font_manager.json_load(os.path.join(folder, name))
    return {"name": name, "content": json.dumps(cache, separators=(",", ":"))}


def draw():
    import io

    import matplotlib
    import matplotlib.ft2font

    matplotlib.use("agg")
    from matplotlib import pyplot

    text = "Zürich Ελλάδα Москва 数据 データ 데이터 😀 📈 ✓"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for families in (["sans-serif"], ["serif"], ["monospace"], ["SimHei"]):
            figure = pyplot.figure()
            figure.text(0.1, 0.5, text, family=families)
            for form in ("png", "svg", "pdf"):
                figure.savefig(io.BytesIO(), format=form)
            pyplot.close(figure)
    emoji = matplotlib.ft2font.FT2Font(matplotlib.font_manager.findfont("Symbola"))
    names = {emoji.get_glyph_name(emoji.get_char_index(ord(character))) for character in "🎉🚀👍"}
    if len(names) != 3:
        raise SystemExit("glyphs of the emoji font have no names of their own, which PDF needs")


packages = sorted(name for name in importlib.metadata.packages_distributions() if name.isidentifier())
for package in packages:
    try:
        importlib.import_module(package)
    except Exception as error:
        raise SystemExit(f"importing {package}: {error!r}") from error
fonts = None
if "matplotlib" in packages:
    fonts = font_cache()
    draw()
print(json.dumps({"imported": len(packages), "fonts": fonts}))
