"""The choice of a published set: which model's, and what becomes of images without a verdict.

The published files that decide the published set: lists, original labels, verdicts; they are part of the package.

`data` and `reviews` are links to the ImageNet edition's folders; a wheel holds the files themselves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from cleanset.dataset.ilsvrc import VALIDATION_IMAGES, class_indices, image_number
from cleanset.errors import CleansetError
from cleanset.files import md5, sha256
from cleanset.review.store import Votes, read_file, read_reviews
from cleanset.sets.description import SCOOTER, InputDigest

PUBLISHED_SET = "scooter"
"""The name by which `cleanset.load` knows the published set."""
PUBLISHED_MODEL = "norm_robust"
"""The model that the published set was made for."""
MODELS = (PUBLISHED_MODEL, "standard", "corruption_robust")
"""The models with published lists."""


@dataclass(frozen=True, slots=True)
class PublishedChoice:
    """A model with published lists, the way with unreviewed images, and the folders of further reviews."""

    model: str = PUBLISHED_MODEL
    unreviewed: str = "pending"
    reviews: tuple[Path, ...] = ()

    def check(self) -> None:
        """Raise CleansetError for an unknown model or an unknown way with unreviewed images."""
        if self.model not in MODELS:
            raise CleansetError(f"unknown model {self.model!r}; expected one of {', '.join(MODELS)}")
        if self.unreviewed not in ("pending", "clean"):
            raise CleansetError(f"unreviewed {self.unreviewed!r}; expected pending or clean")


HERE = Path(__file__).resolve().parent
_DATA = HERE / "data"
TOP5, BEYOND, LABELS, DIGESTS = (
    _DATA / name for name in ("top5.csv", "beyond.csv", "ilsvrc_labels.txt", "digests.csv")
)
VERDICTS = HERE / "reviews" / SCOOTER
MAX_TOP5_RANK = 5


@cache
def ilsvrc_classes() -> tuple[int, ...]:
    """The class index of each validation image's original label, image 1 first."""
    classes = tuple(map(int, LABELS.read_text(encoding="ascii").split()))
    if len(classes) != VALIDATION_IMAGES:
        raise CleansetError(
            f"{LABELS}: {len(classes):,} labels; expected {VALIDATION_IMAGES:,}: install cleanset again"
        )
    return classes


def ilsvrc_class(image_id: str) -> int:
    """The class index of an image's original label."""
    return ilsvrc_classes()[image_number(image_id) - 1]


def published_verdicts() -> Votes:
    """The published verdicts, by class index and image id."""
    # these files alone: in a checkout other reviewers' folders lie beside them
    votes = [vote for path in sorted(VERDICTS.glob("n*.yaml")) for vote in read_file(path)]
    return {(class_indices()[vote.wnid], vote.image_id): {SCOOTER: vote} for vote in votes}


def with_further_reviews(votes: Votes, folders: Iterable[Path]) -> Votes:
    """The votes, and those of further reviewers in `folders`, each laid out like an edition's `reviews/`.

    Raises CleansetError as `read_reviews` does, and for a reviewer who is in two folders with different verdicts.
    """
    joined = {key: dict(by_reviewer) for key, by_reviewer in votes.items()}
    for folder in folders:
        for key, by_reviewer in read_reviews(folder).items():
            for reviewer, vote in by_reviewer.items():
                known = joined.setdefault(key, {}).setdefault(reviewer, vote)
                if known.review != vote.review:
                    raise CleansetError(
                        f"{vote.where}: another verdict of {reviewer} than {known.where}; expected each reviewer once: "
                        "rename the folder, or remove one of the two"
                    )
    return joined


def published_candidates(model: str) -> pd.DataFrame:
    """The candidates of a model, in the order of its published list: image_id, class_index, tier, rank, confidence.

    The images from beyond its list follow those of their class, with confidence NaN. As published, the model's own
    images make up tier top5 (`protocol: as_published`).
    """
    # float, because pandas' own parser may be off by one digit
    top5 = pd.read_csv(TOP5, converters={"confidence": float}).astype({"confidence": "float32"})
    listed = top5.loc[top5["model"] == model, ["class_index", "image_id", "confidence"]]
    beyond = pd.read_csv(BEYOND)
    beyond = beyond.loc[beyond["model"] == model, ["class_index", "image_id"]]
    frame = pd.concat([listed, beyond], ignore_index=True)
    # stable: within a class the list's order, then the images from beyond it
    frame = frame.sort_values("class_index", kind="stable")
    rank = frame.groupby("class_index").cumcount() + 1
    return frame.assign(rank=rank, tier=rank.le(MAX_TOP5_RANK).map({True: "top5", False: "reserve"}))


def digests_of_inputs(votes: Votes) -> list[InputDigest]:
    """The digests of the published files, and of the reviews that were read beside them, by reviewer."""
    found = [_digest(f"imagenet/published/{path.name}", [path.read_bytes()]) for path in (LABELS, TOP5, BEYOND)]
    found.append(_digest("imagenet/reviews/scooter", [path.read_bytes() for path in sorted(VERDICTS.glob("n*.yaml"))]))
    others = sorted({reviewer for by_reviewer in votes.values() for reviewer in by_reviewer} - {SCOOTER})
    for reviewer in others:
        # of their content, whichever folder they lie in
        lines = [
            f"{key[0]} {key[1]} {by_reviewer[reviewer].review.model_dump_json(exclude={'seen'})}\n".encode()
            for key, by_reviewer in sorted(votes.items())
            if reviewer in by_reviewer
        ]
        found.append(_digest(f"reviews of {reviewer}", lines))
    return found


def _digest(name: str, blocks: Sequence[bytes]) -> InputDigest:
    return InputDigest(name, sha256(b"".join(blocks)), md5(blocks))
