"""The stage of each family, and stage further: one model's answers to changed images. No measure is taken here."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from cleanset.edition.params import read_params
from cleanset.evaluation.user_model import NetworkError
from cleanset.files import write_text
from cleanset.images.preprocessing import ResizeAndCrop
from cleanset.progress import print_notice, rate_bar
from cleanset.scoring.comparison import SEED, compare_scores, sample_size
from cleanset.scoring.engine import Settings, score_few, score_shards, settings_for
from cleanset.scoring.models import LoadedModel, load_model
from cleanset.scoring.provenance import below_float64, library_versions, scoring_code
from cleanset.scoring.shards import Shards, fingerprint
from cleanset.studies.robustness.answers import NAMED_ANSWERS, ReadAnswers, StoredScores, predictions_table, with_keys
from cleanset.studies.robustness.changed_images import ChangedImages, ChangeName, SetImages, StudyFile
from cleanset.studies.robustness.families import FAMILIES, ChangePlan, change_plan, family_named
from cleanset.studies.robustness.images import Sources, images_for
from cleanset.studies.robustness.names import CLEAN
from cleanset.studies.robustness.provenance import changing_code, installed_versions
from cleanset.studies.robustness.settings import StudyParams, read_study_params
from cleanset.studies.robustness.shown_pixels import RecordedImages
from cleanset.studies.robustness.study import AnswerFiles, Study
from cleanset.studies.robustness.trained_models import load_further
from cleanset.tables import write_table

CheckClean = Callable[[pd.DataFrame, pd.DataFrame], None]
"""Takes rows of STUDY_IMAGES and the answers to them, clean, in the same order; raises CleansetError if these differ
from stored ones."""


@dataclass(frozen=True, slots=True, eq=False)
class AnsweringModel:
    """A model, how it is run, and where its answers are kept.

    `classes` are the class indices that an answer may be restricted to. `check`: what clean answers are compared with,
    where there are stored ones. `identity`: what the answers depend on beside the weights, for a model of one's own.
    `stem`: that of the files' names, where it is not the model's name. `digests`: a file that takes the digest of each
    changed image that the model is shown.
    """

    name: str
    model: LoadedModel
    settings: Settings
    classes: Sequence[int]
    answers: AnswerFiles
    check: CheckClean | None = None
    identity: str = ""
    stem: str = ""
    digests: Path | None = None

    def record(self, wanted: StudyParams, plan: ChangePlan) -> dict[str, Any]:
        """Everything that the answers depend on; nothing in it depends on the machine."""
        return {
            "role": self.name,
            "weights_sha256": self.model.weights_sha256,
            "parameters": sum(each.numel() for each in self.model.network.parameters()),
            **({"identity": self.identity} if self.identity else {}),
            "precision": self.settings.precision,
            **plan.as_record(),
            "jpeg": wanted.jpeg,
            "seed": wanted.seed,
            "versions": library_versions(),
            "code": scoring_code(),
        }

    def label(self, record: Mapping[str, Any]) -> str:
        """A digest of the record and of what else the answers depend on: what changes images, how models are run."""
        facts = changing_code(), json.dumps(installed_versions()), below_float64(self.settings)
        return fingerprint(json.dumps(record), *facts)


def predict(target: AnsweringModel, wanted: StudyParams, plan: ChangePlan, files: Mapping[str, StudyFile]) -> None:
    """Write the model's answers to the images of a family, and what they were computed with.

    `files`: where these images lie, by file. Finished shards are kept beside the answers until the end, so that an
    interrupted run is continued. Below float64 the record says how far the answers are from it, on a sample. Raises
    CleansetError, too, where a clean image does not get the stored scores.
    """
    read_off = ReadAnswers(target.classes)
    clean = pd.DataFrame(columns=NAMED_ANSWERS.names)
    if files:
        clean = score_few(target.model, SetImages(files), target.settings, list(files), read_off=read_off)
    # first, since a wrong model or preprocessing shows here within seconds
    if target.check is not None:
        target.check(plan.images, clean)
    # making changed images holds Python's lock
    settings = replace(target.settings, in_processes=True)
    names, record, stem = plan.names(), target.record(wanted, plan), target.stem or target.name
    folder, texts = target.answers.partial(plan.name, stem), list(map(str, names))
    shards = Shards(folder, target.label(record), texts, settings.batch_size, table=NAMED_ANSWERS)
    changed = plan.changed_images(files, wanted)
    shown = changed if target.digests is None else RecordedImages(changed, target.digests)
    with rate_bar(len(names), f"{plan.name} {target.name}") as done:
        done(shards.finished_images(), 0.0)
        score_shards(_of_squares(target.model), shown, settings, shards, done, print_notice, read_off)
    if settings.precision != "float64" and names:
        record["against_float64"] = _against_float64(target, changed, settings, shards.table(), read_off)
        against = record["against_float64"] or "not compared, as the network does not run in it"
        print_notice(f"{plan.name} {target.name}: {settings.precision} against float64: {against}")
    table = predictions_table(plan.family)
    clean_names = [ChangeName(file, CLEAN, 0) for file in clean["image_id"]]
    by_text, scored = dict(zip(texts, names, strict=True)), shards.table()
    # shards are sorted by text, whatever order they ran in
    scored_names = [by_text[text] for text in scored["image_id"]]
    answers = with_keys(pd.concat([clean, scored]), [*clean_names, *scored_names], table)
    write_table(target.answers.predictions(plan.name, stem), answers, table)
    write_text(target.answers.record(plan.name, stem), json.dumps(record, indent=2) + "\n")
    shards.remove()


def _against_float64(
    target: AnsweringModel, changed: ChangedImages, settings: Settings, answers: pd.DataFrame, read_off: ReadAnswers
) -> dict[str, Any] | None:
    """The differences of answers to changed images from float64, on a sample drawn with a fixed seed.

    None for a network that does not run in float64, as it has a constant of float32 outside its parameters and buffers.
    """
    names = answers["image_id"].tolist()
    # a fixed seed, so that two precisions are compared with float64 on the same images
    drawn = sorted(random.Random(SEED).sample(names, min(len(names), sample_size(len(names)))))
    exact_settings = replace(settings, precision="float64")
    try:
        exact = score_few(_of_squares(target.model), changed, exact_settings, drawn, read_off=read_off)
    except NetworkError:
        return None
    found = compare_scores(exact, answers[answers["image_id"].isin(drawn)])
    return {
        "images": found.images,
        "top1_agreement": round(1 - found.top1_changed / max(1, found.images), 6),
        "largest_difference": float(f"{found.largest_difference:.3g}"),
    }


def _of_squares(model: LoadedModel) -> LoadedModel:
    """The model with a preprocessing that crops nothing of a square image, and leaves one of its size as it is."""
    size = model.preprocessing.size
    return replace(model, preprocessing=ResizeAndCrop(f"Res{size}", size, size, "bilinear"))


def run(study: Study, role: str, family: str | None = None) -> None:
    """Read images and the model's weights, write data/<family>/<role>.parquet and .json; None: of every family.

    The model is one of the edition, or a further one of the study, whose clean answers are compared with nothing.
    Raises CleansetError for neither, and as `predict` and `change_plan` do.
    """
    edition = study.edition
    params = read_params(edition.folder)
    wanted = read_study_params(study.params_yaml, list(params.models))
    is_further = role in wanted.further_models
    settings = settings_for(params.score)
    is_compared = settings.precision == "float64" and not is_further
    if is_further:
        model, identity = _further(study, wanted, role, settings)
    else:
        model, identity = load_model(params.network(role), edition.folder), ""
    target = AnsweringModel(
        role,
        model,
        settings,
        params.dataset.class_list(),
        study.answers,
        StoredScores(edition, role) if is_compared else None,
        identity,
    )
    sources = Sources.read(study)
    for each in FAMILIES if family is None else [family_named(family)]:
        of_all = change_plan(each, sources, wanted)
        # with images: own a model sees its own set alone
        of_role = replace(of_all, images=images_for(of_all.images, wanted.images, role, wanted.classes_of(role)))
        predict(target, wanted, of_role, sources.files_in(of_role.images))


def _further(study: Study, wanted: StudyParams, role: str, settings: Settings) -> tuple[LoadedModel, str]:
    """A further model; its identity where it is one of one's own, whose weights do not tell all."""
    entry = wanted.further_models[role]
    found = load_further(entry, study.folder, study.edition.folder, role, settings)
    return found.loaded, found.identity if isinstance(entry, str) else ""
