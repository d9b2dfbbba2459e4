"""SVG: drawn here, where it can reach nothing, and shown as the picture that comes out."""

import os

import markup
import office
from images import still
from trouble import Trouble, damaged

SECONDS = 90
BYTES = 20 << 20


def make(path, out):
    from lxml import etree
    from PIL import Image

    if os.path.getsize(path) > BYTES:
        raise Trouble("the drawing is larger than a preview reads")
    markup.check_file(path)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False)
    try:
        root = etree.parse(path, parser).getroot()
    except etree.XMLSyntaxError:
        raise damaged("drawing") from None
    if etree.QName(root).localname != "svg":
        raise damaged("drawing")
    if not office.is_here():
        raise Trouble(office.MISSING, "ask a system admin to install LibreOffice where sandboxes run")
    made = office.convert(path, "png", os.path.dirname(path), SECONDS)
    if made is None:
        raise damaged("drawing")
    with Image.open(made, formats=["PNG"]) as image:
        if image.width * image.height > 64_000_000:
            raise Trouble("the drawing is larger than a preview shows")
        image.load()
    return still(image, "PNG", out, None)
