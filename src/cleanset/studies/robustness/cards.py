"""Comparability cards of the measures of a family, and the notes of its tables.

Stage measure, which sees no changed image, makes the card without their pixels; `robustness evaluate` adds them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pandas as pd
from pydantic import JsonValue

from cleanset.classes import ClassTable
from cleanset.evaluation.comparability import (
    CardClasses,
    CardImages,
    CardInterval,
    CardModel,
    CardReference,
    ComparabilityCard,
)
from cleanset.evaluation.measures import Measure, images_text
from cleanset.evaluation.notes import MeasuredSet, Note, table_notes
from cleanset.plumbing.files import sha256
from cleanset.statistics.basics import LEVEL
from cleanset.studies.robustness.corruptions.measures import (
    ALEXNET_CLEAN_ERROR,
    ALEXNET_ERRORS,
    ALEXNET_ERRORS_3DCC,
)
from cleanset.studies.robustness.families import ChangePlan, StudyParams, steps_by_change
from cleanset.studies.robustness.family import Family
from cleanset.studies.robustness.images import ChangeName, units_of
from cleanset.studies.robustness.results import ALL

SELECTION_TEXTS = {
    "union": "the sets of all models, each chosen among the images that its model classifies correctly",
    "own": "of each model its own set, chosen among the images that it classifies correctly",
    "common": "the images that are in the sets of all models, so that each classifies them correctly",
}
"""How the images of a study's selection were chosen."""

MEANING_OF_P = "p: exact sign test over images, corrected by Holm's method for several pairs"

_SHOWN_OTHERWISE = ("names", "severities", "max_images", "published")
"""Keys of families' sections that changes, images and the digests of files in the settings already show."""


def study_card(
    family: Family,
    images: pd.DataFrame,
    params: StudyParams,
    *,
    classes: ClassTable,
    edition_classes: int,
    models: Mapping[str, CardModel],
    of_files: Mapping[str, object] = MappingProxyType({}),
    pixels_sha256: str | None = None,
) -> ComparabilityCard:
    """The card of a family's measures; `images`: the rows of STUDY_IMAGES that it is measured on.

    `edition_classes`: the number of classes of the edition. `of_files`: what changes depend on next to the params.
    `pixels_sha256`: digest of all changed images; None: not known.
    """
    labels = family.labels(params)
    units = units_of(images)
    drawn = "bootstrap" if units is None else f"bootstrap of {units.count:,} groups"
    # answers restricted to the classes of the edition are chosen from fewer
    restricted = labels.get("answers") == "restricted"
    return ComparabilityCard(
        measured=family.name,
        images=CardImages.of_rows(images),
        classes=CardClasses(
            of_images=images["class_index"].nunique(),
            of_predictions=edition_classes if restricted else len(classes),
        ),
        changes=steps_by_change(family.section_in(params).changes()),
        settings=_settings(family, params, of_files),
        pixels_sha256=pixels_sha256,
        reference=_reference(family, params, models, classes),
        interval=CardInterval(
            kind=f"{drawn} within classes, one_fewer, with pseudo-images",
            level=LEVEL,
            draws=params.bootstrap.draws,
            seed=f"{family.name} {params.seed}",
        ),
        models={name: _with_trained_on(model, name, family, params) for name, model in models.items()},
    )


def family_card(
    plan: ChangePlan, *, edition_classes: int, digests: Mapping[ChangeName, str], models: Mapping[str, CardModel]
) -> ComparabilityCard:
    """The card of a family's measures; `digests`: those of the pixels of each changed image, by name."""
    return study_card(
        plan.family,
        plan.images,
        plan.params,
        classes=plan.classes,
        edition_classes=edition_classes,
        models=models,
        of_files=plan.changing.settings,
        pixels_sha256=_pixels_digest(digests, plan.class_of),
    )


def family_notes(
    card: ComparabilityCard,
    images: MeasuredSet,
    lines: Iterable[Measure],
    selection: str,
    limits: Sequence[str],
) -> list[Note]:
    """The notes of a table of a family's measures on a selection; `lines`: all of the family's."""
    counts = {line.model: line.images for line in lines if line.selection == selection}
    chosen = images if selection == ALL else replace(images, selection=SELECTION_TEXTS[selection])
    return table_notes(card, chosen, count=images_text(counts), limits=limits)


def _settings(family: Family, params: StudyParams, of_files: Mapping[str, object]) -> dict[str, JsonValue]:
    """Everything else that decides the changed images or the measures, such as the difficulty of perturbations."""
    section = params.section(family.section).model_dump(mode="json", exclude=set(_SHOWN_OTHERWISE))
    settings = {**section, **of_files, **family.labels(params)}
    settings |= {"jpeg": family.jpeg(params), "seed": params.seed}
    # through JSON, where tuples become lists
    found: dict[str, JsonValue] = json.loads(json.dumps(settings))
    return found


def _pixels_digest(digests: Mapping[ChangeName, str], classes: Mapping[str, int]) -> str:
    """A digest of all changed images by class, change and step; the names of the files do not matter."""
    lines = sorted(f"{classes[name.file]} {name.change} {name.step} {digest}" for name, digest in digests.items())
    return sha256("\n".join(lines).encode())


def _reference(
    family: Family, params: StudyParams, models: Mapping[str, CardModel], classes: ClassTable
) -> CardReference | None:
    for each in family.named_models(params):
        if each.is_reference and each.name in models:
            model = models[each.name]
            facts = [model.weights_sha256, model.preprocessing_sha256, model.precision]
            return CardReference(name=each.name, sha256=sha256(json.dumps(facts).encode()))
        if each.is_reference and classes.is_imagenet:
            # the only reference whose errors are published
            errors = [ALEXNET_CLEAN_ERROR, ALEXNET_ERRORS]
            if {name for name, _ in family.section_in(params).changes()} & set(ALEXNET_ERRORS_3DCC):
                errors.append(ALEXNET_ERRORS_3DCC)
            digest = sha256(json.dumps(errors, sort_keys=True).encode())
            return CardReference(name=f"{each.name}, published", sha256=digest)
    return None


def _with_trained_on(model: CardModel, name: str, family: Family, params: StudyParams) -> CardModel:
    section = params.section(family.measures_section) if family.measures_section is not None else None
    trained_on = getattr(section, "trained_on", {}).get(name, [])
    return model.model_copy(update={"trained_on": sorted(trained_on)})
