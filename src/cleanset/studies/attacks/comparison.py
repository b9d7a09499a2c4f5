"""Which robust accuracies may stand beside one another: comparability cards, notes of tables, paired tests.

A threat model is one measurement: only accuracies under the same attacks with the same settings on the same images
belong into one table.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from cleanset.measure.comparability import CardClasses, CardImages, CardInterval, CardModel, ComparabilityCard
from cleanset.measure.comparability import images_digest as digest_of
from cleanset.measure.notes import MeasuredSet, Note, joined_notes, table_notes
from cleanset.measure.pairs import Pair, compare_pairwise
from cleanset.statistics.basics import LEVEL
from cleanset.studies.attacks.base import Parameters
from cleanset.studies.attacks.results import Attacked, tried_in, worst_case
from cleanset.studies.attacks.study import AttackParams
from cleanset.studies.attacks.threats import ThreatModel, ball_text

MEASURED = "attacks in"
"""The beginning of a measurement's name, before that of its threat model."""
ON_PIXELS = "attacked on pixels"


def attack_card(
    images: pd.DataFrame, params: AttackParams, threat: ThreatModel, models: Sequence[str], *, predicted: int
) -> ComparabilityCard:
    """The card of the robust accuracies in a threat model; `images`: rows of STUDY_IMAGES.

    `predicted`: the number of classes that a prediction is chosen from.
    """
    settings = {f"attack {name}": attack_text(params.attack(name)) for name in threat.attacks}
    return ComparabilityCard(
        measured=f"{MEASURED} {threat.name}",
        images=CardImages(
            count=len(images),
            sha256=digest_of(zip(images["class_index"].tolist(), images["file_sha256"], strict=True)),
        ),
        classes=CardClasses(of_images=int(images["class_index"].nunique()), of_predictions=predicted),
        settings={**settings, "seed": params.seed, "search precision": params.search_precision},
        pixels_sha256=None,
        interval=CardInterval(kind="Wilson", level=LEVEL),
        models={model: CardModel(preprocessing=ON_PIXELS) for model in models},
    )


def attack_text(attack: Parameters) -> str:
    """An attack's norm and radius, and all of its other settings, such as steps."""
    fields = attack.model_dump(mode="json", exclude={"norm", "eps", "kind"}, exclude_none=True)
    shown = [f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in fields.items()]
    ball = [] if attack.ball is None else [ball_text(attack.ball)]
    return ", ".join([attack.kind, *ball, *shown])


def misses_of(threat: ThreatModel, attacked: Attacked, images: pd.DataFrame) -> Counter[str] | None:
    """The images that a model misclassifies, before or after an attack, as `class index` and digest.

    None unless every attack was tried on all images, and for a model with a sign of gradient masking, whose images that
    withstood are not known.
    """
    tried = tried_in(threat, attacked)
    if not tried or not attacked.is_trusted:
        return None
    found = worst_case(tried)
    if len(found) < len(images):
        return None
    names = dict(zip(images["file"], zip(images["class_index"], images["file_sha256"], strict=True), strict=True))
    broken = (names[file] for file in found["file"][~found["is_robust"]])
    return Counter(f"{index} {digest[:16]}" for index, digest in broken)


def robust_pairs(
    threat: ThreatModel, attacked: Mapping[str, Attacked], images: pd.DataFrame, chosen_by: str | None
) -> list[Pair]:
    """Every two models in a threat model, the more robust one first, but for one that chose the images."""
    misses = {model: misses_of(threat, of, images) for model, of in attacked.items() if model != chosen_by}
    known = [(model, found) for model, found in misses.items() if found is not None]
    return compare_pairwise(sorted(known, key=lambda each: each[1].total()), len(images))


def attack_notes(
    cards: Mapping[str, ComparabilityCard], images: MeasuredSet, tests: Mapping[str, str], limits: Sequence[str]
) -> list[Note]:
    """The notes of a table of robust accuracies; `cards` and `tests`: by the name of the threat model."""
    return joined_notes(
        {name: table_notes(card, images, tests=tests[name], limits=limits) for name, card in cards.items()}
    )
