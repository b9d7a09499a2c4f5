"""The comparability card of a family of changes: which images, changed how, against which reference."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from cleanset.dataset.ilsvrc import CLASSES
from cleanset.files import sha256
from cleanset.measure.comparability import (
    CardClasses,
    CardImages,
    CardInterval,
    CardModel,
    CardReference,
    ComparabilityCard,
    images_digest,
)
from cleanset.statistics.bootstrap import LEVEL, Bootstrap
from cleanset.studies.robustness.changed_images import ChangeName
from cleanset.studies.robustness.corruptions.measures import ALEXNET_CLEAN_ERROR, ALEXNET_ERRORS
from cleanset.studies.robustness.families import ChangePlan
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.image_sets import OpenedImages
from cleanset.studies.robustness.settings import StudyParams

_SHOWN_OTHERWISE = ("names", "severities", "max_images", "published")
"""Keys of families' sections that changes, images and the digests of files in the settings already show."""


def family_card(
    plan: ChangePlan,
    images: OpenedImages,
    params: StudyParams,
    digests: Mapping[str, str],
    models: Mapping[str, CardModel],
) -> ComparabilityCard:
    """The card of a family's measures; `digests`: of the pixels of each changed image, by name."""
    family, measured = plan.family, plan.images
    labels = family.labels(params)
    classes = dict(zip(measured["file"], measured["class_index"].tolist(), strict=True))
    # answers restricted to the classes of the edition are chosen from fewer
    restricted = labels.get("answers") == "restricted"
    return ComparabilityCard(
        measured=family.name,
        images=CardImages(
            count=len(measured),
            sha256=images_digest(zip(measured["class_index"].tolist(), measured["file_sha256"], strict=True)),
        ),
        classes=CardClasses(
            of_images=measured["class_index"].nunique(),
            of_predictions=len(images.classes) if restricted else CLASSES,
        ),
        changes=plan.as_record()["changes"],
        settings=_settings(plan, params),
        pixels_sha256=_pixels_digest(digests, classes),
        reference=_reference(family, params, models),
        interval=CardInterval(
            kind=f"bootstrap within classes, {Bootstrap().draws}, with pseudo-images",
            level=LEVEL,
            draws=params.bootstrap.draws,
            seed=f"{family.name} {params.seed}",
        ),
        models={name: _with_trained_on(model, name, family, params) for name, model in models.items()},
    )


def _settings(plan: ChangePlan, params: StudyParams) -> dict[str, JsonValue]:
    """Everything else that decides the changed images or the measures, such as the difficulty of perturbations."""
    family = plan.family
    section = params.section(family.section).model_dump(mode="json", exclude=set(_SHOWN_OTHERWISE))
    settings = {**section, **plan.changing.settings, "jpeg": params.jpeg, "seed": params.seed, **family.labels(params)}
    # through JSON, where tuples become lists
    found: dict[str, JsonValue] = json.loads(json.dumps(settings))
    return found


def _pixels_digest(digests: Mapping[str, str], classes: Mapping[str, int]) -> str:
    """A digest of all changed images by class, change and step; the names of the files do not matter."""
    names = {text: ChangeName.parsed(text) for text in digests}
    lines = sorted(f"{classes[name.file]} {name.change} {name.step} {digests[text]}" for text, name in names.items())
    return sha256("\n".join(lines).encode())


def _reference(family: Family, params: StudyParams, models: Mapping[str, CardModel]) -> CardReference | None:
    for each in family.named_models(params):
        if each.is_reference and each.name in models:
            model = models[each.name]
            facts = [model.weights_sha256, model.preprocessing_sha256, model.precision]
            return CardReference(name=each.name, sha256=sha256(json.dumps(facts).encode()))
        if each.is_reference:
            # the only table of a reference's errors that is published
            table = json.dumps([ALEXNET_CLEAN_ERROR, ALEXNET_ERRORS], sort_keys=True)
            return CardReference(name=f"{each.name}, published", sha256=sha256(table.encode()))
    return None


def _with_trained_on(model: CardModel, name: str, family: Family, params: StudyParams) -> CardModel:
    section = params.section(family.measures_section) if family.measures_section is not None else None
    trained_on = getattr(section, "trained_on", {}).get(name, [])
    return model.model_copy(update={"trained_on": sorted(trained_on)})
