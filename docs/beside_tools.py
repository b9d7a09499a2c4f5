"""Count what cleanset's hints, cleanvision and imagededup find of the same changes of 100 photographs.

Run `PYTHONPATH=sample python docs/beside_tools.py FOLDER` where all three are installed; FOLDER has 100 photographs or
more, of which the first 100 by name are taken. docs/other_tools.md has what it prints, as tables.
"""

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

from cleanvision import Imagelab
from imagededup.methods import PHash
from PIL import Image, ImageFilter, ImageOps

from cleanset.classes import imagenet
from cleanset.drawing.flaws import border, caption
from cleanset.images.codec import decode
from cleanset.review.hints.duplicates import hints_between_images
from cleanset.review.hints.hints import hints_of_image, measure
from cleanset.review.hints.text import lines_of_text

COUNT = 100
Change = Callable[[Image.Image], Image.Image]
FLAWS: Mapping[str, tuple[Change, str, str]] = {
    "none": (lambda image: image, "", ""),
    "a fifth of the brightness": (lambda image: image.point(lambda level: level // 5), "dark", "is_dark_issue"),
    "a fifth of the darkness": (
        lambda image: image.point(lambda level: 255 - (255 - level) // 5), "bright", "is_light_issue",
    ),
    "grey": (lambda image: image.convert("L"), "filter", "is_grayscale_issue"),
    "blurred, radius 5": (lambda image: image.filter(ImageFilter.GaussianBlur(5)), "blur", "is_blurry_issue"),
    "a frame": (lambda image: border(image.copy(), Random(0), lambda: image)[0], "border", ""),
    "a strip with words": (lambda image: caption(image.copy(), Random(0), lambda: image)[0], "text", ""),
}  # fmt: skip
"""Changes, the kind of hint at each, and the issue of cleanvision; empty where there is none."""
COPIES: Mapping[str, Change] = {
    "half the size, quality 40": lambda image: image.reduce(2),
    "mirrored": ImageOps.mirror,
    "turned by 90 degrees": lambda image: image.transpose(Image.Transpose.ROTATE_90),
    "without 5 % of each side": lambda image: ImageOps.crop(image, min(image.size) // 20),
}


def saved(image: Image.Image, path: Path, quality: int = 90) -> None:
    """Write a JPEG file."""
    image.save(path, "JPEG", quality=quality)


def hinted(path: Path, kind: str) -> tuple[bool, bool]:
    """Whether cleanset has a hint of the kind at an image, and any hint."""
    image = decode(path.read_bytes())
    kinds = {hint.kind for hint in hints_of_image(measure(image)[0], imagenet(), lines_of_text(image))}
    return kind in kinds, bool(kinds)


def issues(folder: Path) -> Imagelab:
    """The issues that cleanvision finds."""
    lab = Imagelab(data_path=str(folder))
    lab.find_issues(n_jobs=1)
    return lab


def flawed(photographs: Mapping[str, Image.Image]) -> None:
    """Print what is found of each flaw."""
    for name, (change, kind, issue) in FLAWS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            for file, image in photographs.items():
                saved(change(image), folder / file)
            ours = [hinted(path, kind) for path in sorted(folder.iterdir())]
            with quiet():
                found = issues(folder).issues
            flags = found[[column for column in found if str(column).startswith("is_")]]
            theirs = int(found[issue].sum()) if issue else "-"
            any_theirs = int(flags.any(axis=1).sum())
        print(f"{name}: cleanset {sum(a for a, _ in ours)} (any {sum(b for _, b in ours)}), "
              f"cleanvision {theirs} (any {any_theirs})")  # fmt: skip


def copied(photographs: Mapping[str, Image.Image]) -> None:
    """Print how many copies are found beside their originals, and how many wrong pairs."""
    for name, change in COPIES.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            for file, image in photographs.items():
                saved(image, folder / f"a_{file}")
                saved(change(image), folder / f"b_{file}", 40 if "40" in name else 90)
            prints = {path.name: measure(decode(path.read_bytes()))[1] for path in sorted(folder.iterdir())}
            ours = {
                file: {other for hint in hints for other in hint.others}
                for file, hints in hints_between_images(prints).items()
            }
            with quiet():
                phash = PHash().find_duplicates(image_dir=str(folder))
                lab = issues(folder)
            groups = [
                {Path(path).name for path in group}
                for kind in ("near_duplicates", "exact_duplicates")
                for group in lab.info[kind]["sets"]
            ]
            vision = {file: set().union(*(group for group in groups if file in group)) - {file} for file in prints}
        for tool, pairs in {"cleanset": ours, "imagededup": phash, "cleanvision": vision}.items():
            right = sum(f"b_{file}" in pairs[f"a_{file}"] for file in photographs)
            wrong = sum(other[2:] != file[2:] for file, others in pairs.items() for other in others) // 2
            print(f"{name}: {tool} {right}, wrong pairs {wrong}")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what the others print."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def main() -> None:
    """Print what is found of flaws and of copies."""
    paths = sorted(Path(sys.argv[1]).iterdir())[:COUNT]
    photographs = {path.name: decode(path.read_bytes()).convert("RGB") for path in paths}
    flawed(photographs)
    copied(photographs)


if __name__ == "__main__":
    main()
