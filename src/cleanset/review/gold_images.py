"""`cleanset review gold`: draw flaws into photographs, and write the images with their known verdicts as gold items.

The flaws are named like the review's reasons, and as visible as those in real photographs, not more: a stamp is half
transparent, a frame narrow. Verdicts go into `reviews/gold.csv`.
"""

import hashlib
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.errors import CleansetError
from cleanset.images.codec import Read, decode
from cleanset.plumbing.files import sha256, write_bytes, write_text
from cleanset.review.decided import candidates_of, checked_votes
from cleanset.review.gold import GoldItem
from cleanset.review.gold_files import GOLD_KEY, gold_file, gold_key_text, read_gold_key
from cleanset.review.queue import ByRole, by_image
from cleanset.review.store import BOARD, Votes, basis_of
from cleanset.review.verdicts import Clean, ImageKey, Review
from cleanset.tables import INDEX, read_table
from cleanset.vocabulary import SCOOTER

STAMPS = ("© photostock", "SAMPLE", "www.photos.example", "© 2009 J. Miller", "PREVIEW")
CAPTIONS = ("Holiday 2007", "Lot 214", "www.my-blog.example", "Fig. 3", "12/08/2006 14:31")

# mean difference of the largest and the smallest of red, green and blue with which missing colours show
MIN_COLOUR = 16

Planter = Callable[[Image.Image, Random], Image.Image]


def watermark(image: Image.Image, rng: Random) -> Image.Image:
    """A half transparent stamp in a corner or in the middle."""
    words = rng.choice(STAMPS)
    size = max(10, image.height // rng.randrange(9, 16))
    layer = Image.new("L", image.size)
    in_middle = rng.choice([False, False, True])
    place = _middle(image, words, size) if in_middle else _corner(image, words, size, rng)
    ImageDraw.Draw(layer).text(place, words, fill=rng.randrange(110, 190), font=_font(size))
    image.paste(rng.choice([(255, 255, 255), (20, 20, 20)]), (0, 0), layer)
    return image


def text(image: Image.Image, rng: Random) -> Image.Image:
    """Small opaque words near a lower corner."""
    words = rng.choice(CAPTIONS)
    size = max(10, image.height // rng.randrange(14, 22))
    place = _corner(image, words, size, rng)
    ink = rng.choice([(255, 255, 255), (250, 220, 60), (230, 60, 40)])
    ImageDraw.Draw(image).text(place, words, fill=ink, font=_font(size), stroke_width=1, stroke_fill=(20, 20, 20))
    return image


def border(image: Image.Image, rng: Random) -> Image.Image:
    """A plain frame."""
    wide = max(3, min(image.size) * rng.randrange(2, 5) // 100)
    return ImageOps.expand(image, wide, rng.choice([(255, 255, 255), (0, 0, 0), (90, 70, 50)]))


def filtered(image: Image.Image, rng: Random) -> Image.Image:
    """Sepia, no colours, or oversaturated ones; sepia for images with few colours."""
    kind = rng.randrange(3)
    values = np.asarray(image).astype(np.int64)
    if kind == 0 or (values.max(axis=2) - values.min(axis=2)).mean() < MIN_COLOUR:
        return ImageOps.colorize(ImageOps.grayscale(image), (40, 24, 10), (255, 238, 200), (170, 125, 80))
    return ImageEnhance.Color(image).enhance(0.0 if kind == 1 else 3.0)


def noise(image: Image.Image, rng: Random) -> Image.Image:
    """Grain in every value."""
    values = np.asarray(image).astype(np.float64)
    grain = np.random.default_rng(rng.getrandbits(64)).normal(0, rng.randrange(22, 35), values.shape)
    return Image.fromarray(np.clip(values + grain, 0, 255).astype(np.uint8))


def blur(image: Image.Image, rng: Random) -> Image.Image:
    """The whole image out of focus."""
    return image.filter(ImageFilter.GaussianBlur(max(2.0, min(image.size) / rng.randrange(90, 130))))


PLANTERS: dict[str, Planter] = {
    "watermark": watermark,
    "text": text,
    "border": border,
    "filter": filtered,
    "noise": noise,
    "blur": blur,
}


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _middle(image: Image.Image, words: str, size: int) -> tuple[int, int]:
    """The upper left corner of words in the middle."""
    return (image.width - _width(words, size)) // 2, (image.height - size) // 2


def _corner(image: Image.Image, words: str, size: int, rng: Random) -> tuple[int, int]:
    """The upper left corner of words near a lower corner."""
    edge = max(2, size // 3)
    left = rng.choice([edge, max(edge, image.width - _width(words, size) - edge)])
    return left, image.height - size - 2 * edge


def _width(words: str, size: int) -> int:
    return int(_font(size).getlength(words))


ENOUGH = 3
"""Reviewers who must agree on an image that counts as settled."""

# an empty comment of a JPEG file: other bytes, the same pixels
_COMMENT = b"\xff\xfe\x00\x04\x00\x00"


def make(edition: Edition, folder: Path, counts: Mapping[str, int], clean: int) -> str:
    """Add items of each source, and clean ones; return a report.

    `counts`: the number of flawed items, by source; `clean`: the number of clean ones. `folder`: relative to the
    edition. Items that are there stay; the images of listed ones that are missing, as in a new clone, are made again.
    Raises CleansetError if nothing could be made, and for a listed image that cannot be made with the same bytes.
    """
    params = read_params(edition.folder)
    classes = edition.read_classes()
    golds = read_gold_key(edition.reviews, classes)
    target = edition.path(str(folder))
    missing = [item for item in golds.values() if not gold_file(target, item.image_id).is_file()]
    if not any(counts.values()) and not clean and not missing:
        raise CleansetError(
            "review gold: no number; expected how many: --planted 50, --published, --settled or --clean"
        )
    index = read_table(edition.index, INDEX, classes)
    candidates = candidates_of(edition, params, classes)
    votes = checked_votes(edition, params, index, classes)
    read = verified_images(edition, params.dataset.images, index, classes).read
    found = dict(golds)
    target.mkdir(parents=True, exist_ok=True)
    for item in missing:
        _make_again(item, target, read)
    wishes = [*((source, True, count) for source, count in counts.items()), ("", False, clean)]
    for source, is_flawed, count in wishes:
        for item in islice(_bases(source, votes, candidates, is_flawed=is_flawed, taken=found), count):
            drawn, data = _content(item, read)
            write_bytes(gold_file(target, item.image_id), data)
            found[item.key] = replace(item, sha256=sha256(data), reason=drawn)
    made = [item for key, item in found.items() if key not in golds]
    if not made and not missing:
        raise CleansetError(
            "review gold: no image fits; expected candidates (--planted), or images with verdicts of "
            f"{SCOOTER} (--published) or of {ENOUGH} reviewers who agree (--settled)"
        )
    if made:
        write_text(edition.reviews / GOLD_KEY, gold_key_text(found.values(), classes))
    again = [f"{folder}: {len(missing)} images of gold items made again"] if missing else []
    return "\n".join([*again, *_report(params, folder, made, sum(counts.values()) + clean)])


def _report(params: Params, folder: Path, made: list[GoldItem], wanted: int) -> list[str]:
    kinds = Counter(item.source if item.is_flawed else "clean" for item in made)
    counted = ", ".join(f"{name} {n}" for name, n in sorted(kinds.items()))
    lines = [f"{folder}: {len(made)} gold items made ({counted})"] if made else []
    if len(made) < wanted:
        lines.append(f"{wanted - len(made)} more were asked for, but no other image fits")
    if params.review.gold is None:
        lines.append(f"Mix them in by the params: review: {{gold: {{folder: {folder.as_posix()}, share: 0.05}}}}")
    return lines


def _bases(
    source: str, votes: Votes, by_class: Mapping[int, ByRole], *, is_flawed: bool, taken: Mapping[ImageKey, object]
) -> Iterator[GoldItem]:
    """The images that items of a source can be made from, as items without a digest yet; each class in turn."""
    images = {index: by_image(by_role).keys() for index, by_role in by_class.items()}
    # of images that are candidates of several classes, one class would show the item, another the image
    several = Counter(name for of_class in images.values() for name in of_class)
    candidates = {index: {name for name in names if several[name] == 1} for index, names in images.items()}
    of_class: dict[int, list[GoldItem]] = {}
    for key, by_reviewer in votes.items():
        known = _known(source, {name: vote.review for name, vote in by_reviewer.items()}, is_flawed=is_flawed)
        if known is not None and key[1] in candidates.get(key[0], ()):
            reason, of_source = known
            item = GoldItem(class_index=key[0], image_id=key[1], sha256="", reason=reason, source=of_source)
            of_class.setdefault(key[0], []).append(item)
    if source == "planted":
        for index, by_role in by_class.items():
            for name in _last_candidates(by_role, candidates[index]):
                if (index, name) not in votes:
                    item = GoldItem(class_index=index, image_id=name, sha256="", reason=None, source=source)
                    of_class.setdefault(index, []).append(item)
    for found in of_class.values():
        # found to be clean comes before not reviewed
        found.sort(key=lambda item: (item.key not in votes, _shuffled(item.key)))
    in_order = sorted(of_class, key=lambda index: _shuffled((index, "")))
    free = [[item for item in of_class[index] if item.key not in taken] for index in in_order]
    # the first of each class, then the second of each, and so on
    yield from filter(None, chain.from_iterable(zip_longest(*free)))


def _known(source: str, reviews: Mapping[str, Review], *, is_flawed: bool) -> tuple[str | None, str] | None:
    """The reason (None: clean) and source by which an image's verdict is known; None if it is not."""
    by_people = {name: each for name, each in reviews.items() if basis_of(each) == "explicit"}
    if source == "planted":
        is_clean = by_people and all(isinstance(each.verdict, Clean) for each in by_people.values())
        return (None, source) if is_clean else None
    if BOARD in reviews:
        return None
    published = {SCOOTER: by_people[SCOOTER]} if SCOOTER in by_people else {}
    settled = by_people if len(by_people) >= ENOUGH else {}
    sources = {"published": published, "settled": settled}
    for name in (source,) if source else sources:
        given = sources[name]
        verdicts = {"clean" if isinstance(each.verdict, Clean) else "flawed" for each in given.values()}
        if verdicts == {"flawed" if is_flawed else "clean"}:
            reasons = Counter[str](each.reason or "other" for each in given.values())
            return min(reasons, key=lambda reason: (-reasons[reason], reason)) if is_flawed else None, name
    return None


def _last_candidates(by_role: ByRole, among: Collection[str]) -> list[str]:
    """The third of a class's candidates that is least likely to be asked for; none if there are few."""
    ordered = list(by_image(by_role))
    last = ordered[max(2 * ENOUGH, len(ordered) * 2 // 3) :]
    return [image_id for image_id in last if image_id in among]


def _shuffled(key: tuple[int, str]) -> bytes:
    return hashlib.sha256(f"gold {key[0]} {key[1]}".encode()).digest()


def _make_again(item: GoldItem, folder: Path, read: Read) -> None:
    """Write the missing image of a listed item. Raises CleansetError unless its bytes are those listed."""
    path = gold_file(folder, item.image_id)
    _, data = _content(item, read)
    if sha256(data) != item.sha256:
        raise CleansetError(
            f"{path}: missing, and made again it has SHA-256 {sha256(data)}; expected {item.sha256}, as in "
            f"reviews/{GOLD_KEY}: copy the folder from whoever made it, or use their versions of cleanset and Pillow"
        )
    write_bytes(path, data)


def _content(item: GoldItem, read: Read) -> tuple[str | None, bytes]:
    """The reason and the bytes of an item; they depend on nothing but the image and the source."""
    data = read(item.image_id)
    if item.source != "planted":
        return item.reason, data[:2] + _COMMENT + data[2:]
    rng = Random(f"gold {item.image_id}")
    drawn = sorted(PLANTERS)[rng.randrange(len(PLANTERS))]
    image = decode(data).convert("RGB")
    image.info = {}
    out = io.BytesIO()
    PLANTERS[drawn](image, rng).save(out, format="JPEG", quality=95)
    return drawn, out.getvalue()
