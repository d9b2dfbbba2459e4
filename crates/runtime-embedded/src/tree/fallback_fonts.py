

# Added by Glovebox to what the package ships. Whatever family a figure, a style sheet or
# seaborn asks for, characters that its fonts lack are drawn with these, not as empty boxes.
def _add_fallback_fonts(find):
    @functools.wraps(find)
    def find_with_fallback(self, prop, fontext="ttf", *args, **kwargs):
        found = find(self, prop, fontext, *args, **kwargs)
        if fontext != "ttf":
            return found
        plain = FontProperties._from_any(prop)
        for family in ("DejaVu Sans", "Noto Sans CJK SC", "Symbola"):
            cprop = plain.copy()
            cprop.set_file(None)
            cprop.set_family(family)
            try:
                path = self.findfont(cprop, fontext, fallback_to_default=False)
            except ValueError:
                continue
            if path not in found:
                found.append(path)
        return found

    return find_with_fallback


FontManager._find_fonts_by_props = _add_fallback_fonts(FontManager._find_fonts_by_props)
