"""Values as a sheet shows them, by the number format of their cells.

It knows what people's sheets are full of: decimals, thousands, percent, money, dates, times,
fractions, texts around them, and up to four sections. What it does not know it shows plainly.
"""

import datetime
import math
import re

EPOCH = datetime.datetime(1899, 12, 30)

TOKEN = re.compile(
    r'"([^"]*)"|\\(.)|_.|\*.|\[([^\]]*)\]|(General)|(AM/PM|A/P)|([yY]+|[dD]+|[hH]+|[mM]+|[sS]+(?:\.0+)?)'
    r"|([0#?.,%/]+|E[+-])|(@)|(.)",
    re.DOTALL | re.IGNORECASE,
)

MONTHS = (
    "January February March April May June July August September October November December".split()
)
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def show(value, code):
    """A value's text, and whether it is one of a date."""
    if value is None:
        return "", False
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE"), False
    sections = split(code or "General")
    if isinstance(value, str):
        if len(sections) == 4 or "@" in sections[0]:
            return literal(sections[-1], value), False
        return value, False
    is_date = isinstance(value, (datetime.datetime, datetime.date, datetime.time, datetime.timedelta))
    number = serial(value) if is_date else value
    section, number = choose(sections, number)
    if is_date_code(section) or is_date:
        if not is_date_code(section):
            section = "yyyy-mm-dd" if not isinstance(value, datetime.time) else "hh:mm:ss"
        try:
            return date(number, section), True
        except (OverflowError, ValueError):
            return general(number), False
    return numeric(number, section), False


def split(code):
    """The sections of a format: semicolons in quotes are none."""
    sections, at, quoted, begin = [], 0, False, 0
    while at < len(code):
        letter = code[at]
        if letter == '"':
            quoted = not quoted
        elif letter == "\\":
            at += 1
        elif letter == ";" and not quoted:
            sections.append(code[begin:at])
            begin = at + 1
        at += 1
    sections.append(code[begin:])
    return sections[:4]


def choose(sections, number):
    conditions = [re.search(r"\[([<>=]+)(-?[\d.]+)\]", section) for section in sections]
    if any(conditions):
        for section, condition in zip(sections, conditions, strict=True):
            if condition is None or holds(number, condition.group(1), float(condition.group(2))):
                return section, number
        return sections[-1], number
    if number > 0 or len(sections) == 1:
        return sections[0], number
    if number < 0 and len(sections) > 1:
        return sections[1], -number
    return sections[2] if len(sections) > 2 else sections[0], number


def holds(number, operator, limit):
    return {
        "<": number < limit,
        ">": number > limit,
        "=": number == limit,
        "<=": number <= limit,
        ">=": number >= limit,
        "<>": number != limit,
    }.get(operator, False)


def tokens(section):
    for match in TOKEN.finditer(section):
        quoted, escaped, bracket, is_general, half, part, digits, text, other = match.groups()
        if quoted is not None:
            yield "text", quoted
        elif escaped is not None:
            yield "text", escaped
        elif bracket is not None:
            yield "bracket", bracket
        elif is_general:
            yield "general", ""
        elif half:
            yield "half", half
        elif part:
            yield "part", part
        elif digits:
            yield "digits", digits
        elif text:
            yield "value", ""
        elif other:
            yield "text", other
        elif match.group(0)[0] == "_":
            yield "text", " "


def is_date_code(section):
    kinds = list(tokens(section))
    return any(
        kind in ("part", "half") or (kind == "bracket" and re.fullmatch(r"[hms]+", text, re.IGNORECASE))
        for kind, text in kinds
    )


def literal(section, value):
    shown = ""
    for kind, text in tokens(section):
        if kind in ("value", "general"):
            shown += value
        elif kind == "text":
            shown += text
    return shown if shown.strip() or not value else value


def serial(value):
    if isinstance(value, datetime.timedelta):
        return value.total_seconds() / 86_400
    if isinstance(value, datetime.time):
        return (value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6) / 86_400
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return (value.replace(tzinfo=None) - EPOCH).total_seconds() / 86_400


def general(number):
    if isinstance(number, int):
        text = str(number)
        return text if len(text) <= 15 else f"{number:.9E}"
    if math.isnan(number) or math.isinf(number):
        return "#NUM!"
    if number == int(number) and abs(number) < 1e15:
        return str(int(number))
    if 1e-5 <= abs(number) < 1e11:
        return f"{number:.10g}"
    mantissa, exponent = f"{number:.5E}".split("E")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}E{exponent}"


def numeric(number, section):
    kinds = list(tokens(section))
    digits = "".join(text for kind, text in kinds if kind == "digits")
    if any(kind == "general" for kind, _ in kinds) or not digits:
        shown = general(number) if any(kind in ("general", "value") for kind, _ in kinds) else ""
        return literal_around(kinds, shown, {"general", "value"})
    pattern = digits.replace("%", "")
    number = float(number) * 100 ** digits.count("%")
    if math.isnan(number) or math.isinf(number):
        return "#NUM!"
    if "/" in pattern:
        body = fraction(number, pattern)
    elif "E" in pattern.upper():
        body = scientific(number, pattern)
    else:
        body = decimal(number, pattern)
    if "%" in digits:
        body += "%"
    return literal_around(kinds, body, {"digits"})


def literal_around(kinds, body, places):
    """Texts before and after the number; the number once, at its first place."""
    shown, is_placed = "", False
    for kind, text in kinds:
        if kind in places:
            if not is_placed:
                # A minus sign stands in front of everything.
                if body.startswith("-") and shown.strip():
                    shown, body = "-" + shown, body[1:]
                shown += body
                is_placed = True
        elif kind == "text":
            shown += text
        elif kind == "bracket" and text.startswith("$"):
            shown += text[1:].split("-")[0]
    return shown.strip()


def decimal(number, pattern):
    scale = len(pattern) - len(pattern.rstrip(","))
    number /= 1000**scale
    whole, _, part = pattern.rstrip(",").partition(".")
    places = sum(letter in "0#?" for letter in part)
    required = sum(letter in "0?" for letter in part)
    places = min(places, 30)
    # Halves go up, as sheets have it; a number in binary is often a little below its half.
    rounded = round(number + math.copysign(abs(number) * 1e-15, number), places)
    shown = f"{abs(rounded):.{places}f}"
    if "." in shown and places > required:
        head, tail = shown.split(".")
        tail = tail[:required] + tail[required:].rstrip("0")
        shown = f"{head}.{tail}" if tail else head
    head, _, tail = shown.partition(".")
    least = sum(letter == "0" for letter in whole)
    head = head.zfill(min(least, 40))
    if least == 0 and head == "0" and tail:
        head = ""
    if "," in whole:
        head = re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", head)
    sign = "-" if rounded < 0 else ""
    return sign + (f"{head}.{tail}" if tail else head)


def scientific(number, pattern):
    mantissa, exponent = re.split(r"E[+-]", pattern, maxsplit=1, flags=re.IGNORECASE)
    places = min(len(mantissa.partition(".")[2]), 30)
    head, power = f"{number:.{places}E}".split("E")
    least = max(len(exponent), 1)
    sign = "-" if power.startswith("-") else ("+" if "+" in pattern else "")
    return f"{head}E{sign}{power.lstrip('+-').lstrip('0').zfill(min(least, 9))}"


def fraction(number, pattern):
    from fractions import Fraction

    below = pattern.rsplit("/", 1)[1]
    most = int(below) if below.isdigit() and int(below) > 0 else 10 ** min(max(len(below), 1), 5) - 1
    whole = int(abs(number))
    rest = Fraction(abs(number) - whole).limit_denominator(most)
    if below.isdigit() and int(below) > 0:
        rest = Fraction(round((abs(number) - whole) * most), most)
    if rest == 1:
        whole, rest = whole + 1, Fraction(0)
    sign = "-" if number < 0 else ""
    if rest == 0:
        return f"{sign}{whole}"
    return f"{sign}{whole} {rest}" if whole else f"{sign}{rest}"


def date(number, section):
    kinds = list(tokens(section))
    parts = [(at, text.lower()) for at, (kind, text) in enumerate(kinds) if kind == "part"]
    minutes = set()
    for place, (at, text) in enumerate(parts):
        before = parts[place - 1][1] if place else ""
        after = parts[place + 1][1] if place + 1 < len(parts) else ""
        follows = before[:1] == "h" or any(
            kind == "bracket" and re.fullmatch("[hH]+", word) for kind, word in kinds[:at][-2:]
        )
        if text[0] == "m" and len(text) <= 2 and (follows or after[:1] == "s"):
            minutes.add(at)
    has_half = any(kind == "half" for kind, _ in kinds)
    fractions = max((len(text.partition(".")[2]) for _, text in parts if text[0] == "s"), default=0)
    seconds = round(number * 86_400, min(fractions, 6))
    moment = EPOCH + datetime.timedelta(seconds=seconds)
    if number < 60:
        # Sheets count a day in February 1900 that there was not.
        moment += datetime.timedelta(days=1) if number >= 1 else datetime.timedelta()
    shown = ""
    for at, (kind, text) in enumerate(kinds):
        if kind == "part":
            shown += piece(moment, text.lower(), at in minutes, has_half)
        elif kind == "half":
            shown += ("AM" if moment.hour < 12 else "PM")[: 1 if len(text) == 3 else 2]
        elif kind == "bracket" and re.fullmatch(r"[hms]+", text, re.IGNORECASE):
            unit = {"h": 3600, "m": 60, "s": 1}[text[0].lower()]
            shown += str(int(seconds // unit)).zfill(len(text))
        elif kind == "text":
            shown += text
        elif kind == "digits" and set(text) <= {"/", ".", ","}:
            shown += text
    return shown.strip()


def piece(moment, text, is_minute, has_half):
    letter, length = text[0], len(text)
    if letter == "y":
        return f"{moment.year:04}" if length > 2 else f"{moment.year % 100:02}"
    if letter == "d":
        if length > 2:
            name = DAYS[moment.weekday()]
            return name if length > 3 else name[:3]
        return str(moment.day).zfill(length)
    if letter == "m" and not is_minute:
        if length > 2:
            name = MONTHS[moment.month - 1]
            return {3: name[:3], 5: name[0]}.get(length, name)
        return str(moment.month).zfill(length)
    if letter == "m":
        return str(moment.minute).zfill(min(length, 2))
    if letter == "h":
        hour = (moment.hour % 12 or 12) if has_half else moment.hour
        return str(hour).zfill(min(length, 2))
    whole, _, places = text.partition(".")
    shown = str(moment.second).zfill(min(len(whole), 2))
    return f"{shown}.{moment.microsecond:06}"[: len(shown) + 1 + len(places)] if places else shown
