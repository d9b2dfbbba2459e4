"""Added by Glovebox to what matplotlib ships.

Whatever family a figure, a style sheet or seaborn asks for, characters that its fonts lack are
drawn with fonts that have them, not as empty boxes.
"""

import functools

FALLBACK = ("DejaVu Sans", "Noto Sans CJK SC", "Symbola")


def add_fallback_fonts(manager, properties):
    """Makes the class of font managers look further than the families it is asked for."""
    find = manager._find_fonts_by_props

    @functools.wraps(find)
    def find_with_fallback(self, prop, fontext="ttf", *args, **kwargs):
        found = find(self, prop, fontext, *args, **kwargs)
        if fontext != "ttf":
            return found
        plain = properties._from_any(prop)
        for family in FALLBACK:
            copy = plain.copy()
            copy.set_file(None)
            copy.set_family(family)
            if family == "Symbola":
                copy.set_weight("normal")  # it has no other, and matplotlib would warn each time
            try:
                path = self.findfont(copy, fontext, fallback_to_default=False)
            except ValueError:
                continue
            if path not in found:
                found.append(path)
        return found

    manager._find_fonts_by_props = find_with_fallback
