"""All hints at any images, without an edition: each with its measure and limit, the most severe first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from PIL import Image

from cleanset.classes import ClassTable
from cleanset.dataset.duplicates import equal_pairs
from cleanset.dataset.near_duplicates import MAX_HASH_DISTANCE, CroppedDuplicates, NearDuplicates, hash_distance
from cleanset.dataset.shared_parts import MIN_CORRELATION, shared_parts
from cleanset.images.codec import pixels_sha256
from cleanset.images.fingerprints import PackedFingerprint, can_fingerprint, packed_fingerprint
from cleanset.images.local_features import LocalFeatures, can_find_features, local_features
from cleanset.plumbing.validation import first_names
from cleanset.review.hints.hints import ImageMeasures, Measuring, measures_of, signs_of_image
from cleanset.review.hints.kinds import MEASURED_HINTS, Duplicate, HintKind, Sign
from cleanset.review.hints.measures import prepared
from cleanset.review.hints.text import TextLine

MAX_COMPARED_PARTS = 2_000
"""Images of one folder whose parts are compared by hashes: 200 comparisons a pair, a minute for as many."""
MAX_SHARED_PARTS = 20_000
"""Images that are compared by local features: 35 KB of memory each."""
GREY = (128, 128, 128, 255)
"""The ground of transparent images, opaque."""


@dataclass(frozen=True, slots=True)
class ImageLook:
    """What the hints at an image are found with."""

    measures: ImageMeasures
    pixels_sha256: str
    fingerprint: PackedFingerprint | None
    """None without PDQ, or with too little to see."""

    features: LocalFeatures | None
    """None without OpenCV."""

    lines: tuple[TextLine, ...] = ()
    """The lines of text; none where text is not read."""


@dataclass(frozen=True, slots=True)
class FoundHint:
    """A hint at an image, with its measure."""

    kind: HintKind
    sign: Sign
    other: str = ""
    """The id of the image that it compares with."""


@dataclass(frozen=True, slots=True)
class HintedImage:
    """An image with its hints, the most severe first."""

    image_id: str
    hints: tuple[FoundHint, ...]

    @property
    def severity(self) -> float:
        """That of its most severe hint, 0 to 1."""
        return self.hints[0].sign.severity


def look_at(image: Image.Image, lines: tuple[TextLine, ...] = (), hints: Measuring = MEASURED_HINTS) -> ImageLook:
    """Measure a decoded image of any mode and size; `lines`: the text that was read in it."""
    image = _on_grey(image)
    ready = prepared(image)
    return ImageLook(
        measures=measures_of(ready, hints),
        pixels_sha256=pixels_sha256(image),
        # the reduced image has the fingerprint of the whole one
        fingerprint=packed_fingerprint(ready.small) if can_fingerprint() else None,
        features=local_features(ready.small) if can_find_features() else None,
        lines=lines,
    )


def _on_grey(image: Image.Image) -> Image.Image:
    """An image with transparency on a grey background, on which black and white drawings both show."""
    if not image.has_transparency_data:
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, GREY), image.convert("RGBA")).convert("RGB")


def hinted_images(looks: Mapping[str, ImageLook], classes: ClassTable) -> list[HintedImage]:
    """The images with a hint, by severity, then by id; `looks`: by image id, a path whose folder is its class."""
    of_pairs = duplicate_hints(looks)
    found = []
    for image_id, look in looks.items():
        alone = [FoundHint(kind, sign) for kind, sign in signs_of_image(look.measures, classes, look.lines)]
        if hints := [*alone, *of_pairs.get(image_id, ())]:
            hints.sort(key=lambda each: -each.sign.severity)
            found.append(HintedImage(image_id, tuple(hints)))
    return sorted(found, key=lambda each: (-each.severity, each.image_id))


def duplicate_hints(looks: Mapping[str, ImageLook]) -> dict[str, list[FoundHint]]:
    """The hint at a duplicate of each image that has one, by image id: the most similar other image, and their number.

    Equal pixels; hashes that are near, in any orientation, among all images and in a folder also of their parts; and
    parts that two images share by their local features.
    """
    names = list(looks)
    signs: dict[tuple[str, str], Sign] = {}
    equal = equal_pairs((name, name, look.pixels_sha256) for name, look in looks.items())
    for pair in equal:
        signs[pair.duplicate_of, pair.image_id] = _sign_of_hashes(0, "the same as")
    prints = {name: look.fingerprint for name, look in looks.items() if look.fingerprint is not None}
    for first, second in _near_by_hashes(prints):
        signs.setdefault((first, second), _sign_of_hashes(hash_distance(prints[first], prints[second])))
    features = [look.features for look in looks.values() if look.features is not None]
    if len(features) == len(names) <= MAX_SHARED_PARTS:
        for place, other, correlation in shared_parts(features):
            signs.setdefault((names[place], names[other]), _sign_of_part(correlation))
    others: dict[str, list[tuple[float, str, Sign]]] = {}
    for (first, second), sign in signs.items():
        others.setdefault(first, []).append((-sign.severity, second, sign))
        others.setdefault(second, []).append((-sign.severity, first, sign))
    return {name: [_hint(sorted(found, key=lambda each: each[:2]))] for name, found in others.items()}


def _hint(found: Sequence[tuple[float, str, Sign]]) -> FoundHint:
    """The hint from an image's duplicates, the most similar first."""
    _, nearest, sign = found[0]
    text = f"{sign.text} {first_names([name for _, name, _ in found], 1)}"
    return FoundHint(
        Duplicate.kind,
        Sign(text=text, measure=sign.measure, value=sign.value, limit=sign.limit, strongest=sign.strongest),
        nearest,
    )


def _near_by_hashes(prints: Mapping[str, PackedFingerprint]) -> list[tuple[str, str]]:
    """The pairs of near-duplicates by their hashes, each once, the earlier image first."""
    found = set()
    compared = NearDuplicates[str](len(prints))
    for name, each in prints.items():
        found |= {(other, name) for other in compared.add(name, each.hashes)}
    by_folder = sorted(prints, key=_folder)
    for _, group in groupby(by_folder, key=_folder):
        members = list(group)
        if len(members) <= MAX_COMPARED_PARTS:
            within = CroppedDuplicates[str](len(members))
            for name in members:
                found |= {(other, name) for other in within.add(name, prints[name])}
    return sorted(found)


def _folder(image_id: str) -> str:
    return str(PurePosixPath(image_id).parent)


def not_compared_parts(image_ids: Sequence[str]) -> list[str]:
    """The folders with too many images for their parts to be compared by hashes."""
    groups = groupby(sorted(image_ids, key=_folder), key=_folder)
    return [folder for folder, group in groups if sum(1 for _ in group) > MAX_COMPARED_PARTS]


def _sign_of_hashes(distance: int, text: str = "nearly the same as") -> Sign:
    return Sign(
        text=text,
        measure="differing bits of 256",
        value=distance,
        limit=MAX_HASH_DISTANCE,
        strongest=0,
    )


def _sign_of_part(correlation: float) -> Sign:
    return Sign(
        text="shares a part with",
        measure="correlation of the brightness in the part",
        value=correlation,
        limit=MIN_CORRELATION,
        strongest=1.0,
    )
