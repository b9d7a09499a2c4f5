"""The comparability card of a result: the facts that must agree before two numbers may be in one table.

Its digest covers exactly these fields. Facts about a model (weights, preprocessing, precision, versions) are on the
card, too, and outside the digest: models differ in it, and are compared nevertheless.
"""

import json
from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, FiniteFloat, JsonValue
from pydantic.main import IncEx

from cleanset.errors import CleansetError, cut
from cleanset.plumbing.files import sha256
from cleanset.plumbing.json_files import JsonMapping, JsonObject
from cleanset.plumbing.validation import SHA256_FORM, Section, Sha256

if TYPE_CHECKING:
    import pandas as pd

# number of the card's form; raised when its fields change
FORM = 1
RESULTS_FORMAT = 2
"""Number of the form of a result file, which has cards and facts of models; raised when a reader needs another one."""
SHOWN_DIGITS = 12
"""Hexadecimal digits of a digest that people are shown."""
MAX_VALUE_SHOWN = 80
"""Characters of a value that people are shown."""
CLEAN_ACCURACY = "accuracy"
"""The measurement on images as delivered."""

PIXELS = "pixels"
REFERENCE = "reference"

_Text = Annotated[str, Field(min_length=1, max_length=500)]
_Count = Annotated[int, Field(ge=0)]


class CardImages(Section):
    """The images: their number, and a digest of the class index and SHA-256 of each file, whatever its name.

    `manifest_sha256`: the digest of the manifest, which has more than decides a result; None for a plain folder.
    """

    count: _Count
    sha256: Sha256
    manifest_sha256: Sha256 | None = None

    @classmethod
    def of_rows(cls, rows: "pd.DataFrame") -> Self:
        """The images in rows of STUDY_IMAGES."""
        pairs = zip(rows["class_index"].tolist(), rows["file_sha256"], strict=True)
        return cls(count=len(rows), sha256=images_digest(pairs))


class CardClasses(Section):
    """The number of classes that the images are of, and of those that a prediction is chosen from."""

    of_images: _Count
    of_predictions: _Count


class CardReference(Section):
    """The reference that errors are divided by: its name, and a digest of its errors, or of its weights and pixels."""

    name: _Text
    sha256: Sha256


class CardInterval(Section):
    """The kind of interval; `draws` and `seed` belong to a bootstrap."""

    kind: _Text
    level: FiniteFloat
    draws: _Count | None = None
    seed: str | None = None

    @property
    def text(self) -> str:
        """The interval in words: `95 %, Wilson`."""
        draws = "" if self.draws is None else f", {self.draws:,} draws"
        kind = self.kind.replace("one_fewer", "one fewer drawn than there are")
        return f"{100 * self.level:g} %, {kind}{draws}"


class CardModel(Section):
    """The part of a card that belongs to one model; None: not known, since the predictions were made elsewhere.

    `preprocessing_sha256`: the digest of a fixed image after the preprocessing, which shows a change that
    kept the name. `trained_on`: the corruptions that are left out of its `mce_unseen`.
    """

    weights_sha256: Sha256 | None = None
    preprocessing: _Text | None = None
    preprocessing_sha256: Sha256 | None = None
    precision: _Text | None = None
    versions: dict[str, _Text] = Field(default_factory=dict)
    trained_on: list[_Text] = Field(default_factory=list)


class ComparabilityCard(Section):
    """The card of one kind of measurement, such as accuracy, or the errors on corrupted images.

    `changes`: the steps of each change, such as severities. `settings`: further facts that decide pixels or measures.
    `pixels_sha256`: a digest of the images shown to models, before their preprocessing; None if that is not known.
    """

    measured: _Text
    images: CardImages
    classes: CardClasses
    changes: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    pixels_sha256: Sha256 | None
    reference: CardReference | None = None
    interval: CardInterval
    models: dict[str, CardModel]

    @property
    def digest(self) -> str:
        """SHA-256 of the fields that must be equal, in hexadecimal.

        For accuracies, without the pixels, which are unknown for predictions made elsewhere: files fix them but for the
        decoder, and where both cards have them they are compared.
        """
        excluded: dict[str, IncEx | bool] = {"models": True, "images": {"manifest_sha256"}}
        if self.measured == CLEAN_ACCURACY:
            excluded["pixels_sha256"] = True
        fields = self.model_dump(mode="json", exclude=excluded)
        # two names of one reference are one reference
        if fields["reference"] is not None:
            del fields["reference"]["name"]
        return _digest({"form": FORM, **fields})

    @property
    def short_digest(self) -> str:
        """The digest as people are shown it."""
        return self.digest[:SHOWN_DIGITS]

    @property
    def line(self) -> str:
        """The digest in a sentence, for the end of a table."""
        return f"Card {self.short_digest}: comparable with results of the same card (cleanset compare)."

    def fields(self) -> JsonObject:
        """The values that must be equal, by name; explanations of a difference come before the pixels."""
        return {
            "measured": self.measured,
            "number of images": self.images.count,
            "images": self.images.sha256,
            "classes of the images": self.classes.of_images,
            "classes of predictions": self.classes.of_predictions,
            **{f"changes.{name}": steps for name, steps in sorted(self.changes.items())},
            **{f"settings.{name}": value for name, value in sorted(self.settings.items())},
            PIXELS: self.pixels_sha256,
            REFERENCE: self.reference and self.reference.sha256,
            **{f"interval.{name}": value for name, value in self.interval},
        }

    def shown(self, name: str) -> str:
        """A field as people are shown it: a value as JSON, a text unchanged, a digest by its first digits."""
        value = self.fields().get(name)
        if value is None:
            return "none"
        text = value if isinstance(value, str) else json.dumps(value)
        text = f"{text[:SHOWN_DIGITS]}…" if SHA256_FORM.fullmatch(text) else cut(text, MAX_VALUE_SHOWN)
        return f"{self.reference.name} ({text})" if name == REFERENCE and self.reference else text

    def as_json(self) -> JsonObject:
        """The card for a result file, with its digest and a checksum of all of it."""
        content = {"form": FORM, "digest": self.digest, **self.model_dump(mode="json")}
        return content | {"checksum": _digest(content)}

    @classmethod
    def from_json(cls, content: object) -> Self:
        """The inverse of `as_json`.

        Raises ValidationError for other fields or values, and CleansetError for another form and for a card whose
        fields have changed since it was written.
        """
        fields = dict(content) if isinstance(content, dict) else {}
        form, checksum, digest = (fields.pop(key, None) for key in ("form", "checksum", "digest"))
        if form != FORM and isinstance(content, dict):
            raise CleansetError(f"form {form!r}; expected {FORM}, the form of this version of cleanset")
        card = cls.model_validate(fields if isinstance(content, dict) else content)
        try:
            expected = card.as_json()
        except ValueError:  # an infinite number in the settings
            raise CleansetError("a number that is not finite; expected finite ones") from None
        for key, found in (("digest", digest), ("checksum", checksum)):
            if found != expected[key]:
                raise CleansetError(
                    f"{key} {str(found)[:SHOWN_DIGITS]}…; expected {expected[key][:SHOWN_DIGITS]}… of its fields: it "
                    "has been edited since it was written"
                )
        return card


def first_difference(a: ComparabilityCard, b: ComparabilityCard) -> tuple[str, str, str] | None:
    """The name of the first field that differs, and its two values for people; None if both are comparable.

    Pixels that are not known, because predictions were made elsewhere, do not count as a difference.
    """
    of_a = a.fields()
    of_b = b.fields()
    names = list(of_a)
    place = names.index(PIXELS)
    # a change or setting of b alone, too, explains other pixels
    for name in (*names[:place], *(name for name in of_b if name not in of_a), *names[place:]):
        values = of_a.get(name), of_b.get(name)
        if values[0] != values[1] and not (name == PIXELS and None in values):
            return name, a.shown(name), b.shown(name)
    return None


def images_digest(images: Iterable[tuple[int, str]]) -> str:
    """A digest of images by class index and SHA-256 of each; neither names nor order matter."""
    return sha256("\n".join(f"{index} {digest}" for index, digest in sorted(images)).encode())


def card_model(record: JsonMapping) -> CardModel:
    """A model's part of the card, from the record of its predictions; keys that it lacks are not known."""
    versions = {**(record.get("versions") or {}), "cleanset": version("cleanset")}
    fields: JsonObject = {key: record.get(key) for key in CardModel.model_fields.keys() - {"trained_on"}}
    return CardModel(**fields | {"versions": dict(sorted(versions.items()))})


def _digest(content: JsonMapping) -> str:
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
