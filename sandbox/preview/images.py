"""Pictures: read whole, and written anew, so that what is shown is nothing but a picture."""

import io
import os
import warnings

from trouble import Trouble, damaged

PIXELS = 64_000_000
SIDE = 4096
MOVING_BYTES = 12 << 20
FRAMES = 500

MEDIA = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}


def make(path, out):
    from PIL import Image, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None
    warnings.simplefilter("ignore")
    try:
        with Image.open(path, formats=list(MEDIA)) as image:
            if image.width * image.height > PIXELS:
                raise Trouble(
                    f"the picture has {image.width} × {image.height} pixels, more than a preview shows"
                )
            frames = getattr(image, "n_frames", 1)
            if frames > 1 and os.path.getsize(path) <= MOVING_BYTES and frames <= FRAMES:
                return moving(image, frames, path, out)
            form = image.format
            image.load()
            image = ImageOps.exif_transpose(image)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError):
        raise damaged("picture") from None
    return still(image, form, out, "its first picture is shown" if frames > 1 else None)


def moving(image, frames, path, out):
    """One that moves stays as it is, once every frame of it has been read."""
    for number in range(frames):
        image.seek(number)
        image.load()
    with open(path, "rb") as file:
        out.bytes("image", file.read())
    size = {"width": image.width, "height": image.height}
    return {"image": {**size, "media": MEDIA[image.format]}, "cut": None}


def still(image, form, out, cut):
    width, height = image.size
    if max(width, height) > SIDE:
        image.thumbnail((SIDE, SIDE))
        cut = f"it is shown smaller than its {width} × {height} pixels"
    buffer = io.BytesIO()
    if form == "JPEG":
        image.convert("RGB").save(buffer, "JPEG", quality=90)
    else:
        has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
        image.convert("RGBA" if has_alpha else "RGB").save(buffer, "PNG", compress_level=4)
    out.bytes("image", buffer.getvalue())
    media = "image/jpeg" if form == "JPEG" else "image/png"
    return {"image": {"width": image.width, "height": image.height, "media": media}, "cut": cut}
