"""The images that the sample's contest is attacked with: clean ones, turned on black, as large as its models see them.

Run in the checkout's root with the sample built: PYTHONPATH=sample python -m contest_images. The images are committed,
since the contest is about these bytes; their judges' answers are drawn up by hand, as everything in the sample is.
"""

from pathlib import Path

from PIL import Image

from cleanset.images.codec import decode, png
from cleanset.images.preprocessing import BASE_SIZE, base_image

SIDE = 182
"""Pixels of a square image's side that the sample's models see: the largest that can be submitted."""
EXPORT = Path("data", "export")
SUBMISSIONS = Path("sample", "contest", "submissions")
ATTACKS: dict[str, tuple[str, int, float]] = {
    "orchard/2026-11-03-1/a.png": ("n07745940/ILSVRC2012_val_00000083.JPEG", 45, 1.0),
    "orchard/2026-11-03-1/b.png": ("n07745940/ILSVRC2012_val_00000406.JPEG", 90, 0.7),
    "grove/2026-11-05-1/a.png": ("n07753592/ILSVRC2012_val_00000129.JPEG", -30, 1.0),
    "orchard/2026-11-10-1/a.png": ("n07745940/ILSVRC2012_val_00000083.JPEG", -30, 0.7),
}
"""By file: the clean image, the angle in degrees and the scale."""


def turned(image: Image.Image, angle: int, scale: float) -> Image.Image:
    """An image scaled on black, and turned around its center."""
    side = round(image.width * scale)
    out = Image.new("RGB", image.size)
    corner = (image.width - side) // 2
    out.paste(image.resize((side, side), Image.Resampling.BILINEAR), (corner, corner))
    # resized as the models do it, so that they are given the same pixels
    return out.rotate(angle, Image.Resampling.BILINEAR).resize((SIDE, SIDE), Image.Resampling.BICUBIC)


def main() -> None:
    """Write the images."""
    for file, (name, angle, scale) in ATTACKS.items():
        (source,) = sorted(EXPORT.glob(f"*/{name}"))[:1]
        image = Image.fromarray(base_image(decode(source.read_bytes(), ("JPEG", "PNG"))))
        assert image.width == BASE_SIZE
        path = SUBMISSIONS / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(turned(image, angle, scale)))


if __name__ == "__main__":
    main()
