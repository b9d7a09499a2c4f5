"""Stage attacks: one attack on one model. The candidates are searched for in any precision and judged in float64."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import torch

from cleanset.attacks import (
    autoattack,
    base,
    boundary,
    common_corruptions,
    guess,
    judged,
    libraries,
    making,
    null,
    pgd,
    spatial,
    spsa,
)
from cleanset.attacks.base import Attack, Pixels, Subject
from cleanset.attacks.boundary import Other
from cleanset.attacks.guess import Guess, most_confident_mistakes
from cleanset.attacks.judged import Judge, Logits
from cleanset.attacks.making import Known, made
from cleanset.attacks.results import (
    ATTACKED,
    SHARD,
    attacked,
    attacked_folder,
    partial_folder,
    png_name,
    rows,
)
from cleanset.attacks.settings import AttackSettings, Budget, read_attack_settings
from cleanset.edition.params import Params, read_params
from cleanset.files import replacing, sha256, write_text
from cleanset.images.base import Resized
from cleanset.progress import print_notice, tracked
from cleanset.robustness.answers import PREDICTIONS, ReadAnswers
from cleanset.robustness.changed_images import ChangedImages, ChangeName, SetImages, StudyFile, files_of
from cleanset.robustness.clean import check_clean
from cleanset.robustness.families import Sources, family_of
from cleanset.robustness.images import STUDY_IMAGES, first_images, images_for
from cleanset.robustness.names import CLEAN, UNCHANGED
from cleanset.robustness.settings import StudyParams, read_study_params
from cleanset.robustness.study import Study
from cleanset.scoring import differentiable
from cleanset.scoring.decoding import pixels_of
from cleanset.scoring.differentiable import PixelNetwork, pixel_network, searching
from cleanset.scoring.engine import settings_for
from cleanset.scoring.models import LoadedModel, load_model
from cleanset.scoring.provenance import library_versions, scoring_code
from cleanset.scoring.shards import Shards, fingerprint, source_code
from cleanset.tables import CROP_SCORES, SCORES, read_table, write_table

LIBRARIES = {
    "boundary": ("foolbox",),
    "autoattack": ("pyautoattack",),
    "common_corruptions": ("imagecorruptions-imaug",),
    "guess": ("imagecorruptions-imaug",),
}
"""By kind: what else decides the candidates; scikit-image decides SSIM."""
GUESSED = ("corruptions", "scenarios")
"""The families of stored predictions that guess looks into."""
SEARCHING = (
    autoattack, base, boundary, common_corruptions, differentiable, guess, judged, libraries, making, null, pgd,
    spatial, spsa,
)  # fmt: skip
"""The modules whose change makes finished groups useless."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model, the images that it is attacked on, and how it classifies them."""

    role: str
    model: LoadedModel
    images: pd.DataFrame
    files: Mapping[str, StudyFile]
    before: Mapping[str, Logits]

    def subject(self, file: str) -> Subject:
        """An image as it is attacked."""
        row = self.images[self.images["file"] == file].iloc[0]
        return Subject(file, row["image_id"], int(row["class_index"]), self.pixels(file))

    def pixels(self, file: str) -> Pixels:
        """What the model sees of an image."""
        return pixels_of(file, SetImages(self.files), self.model.preprocessing)

    def others(self) -> dict[str, Other]:
        """The images that the model classifies correctly, by file."""
        labels = zip(self.images["file"], self.images["class_index"].tolist(), strict=True)
        return {
            file: Other(label, lambda file=file: self.pixels(file))  # type: ignore[misc]
            for file, label in labels
            if int(self.before[file].argmax()) == label
        }


def run(study: Study, role: str, name: str, settings: AttackSettings | None = None) -> None:
    """Read the images and the model's weights, write data/attacks/<name>/<role>/.

    `settings` default to those of the study's params.yaml. Finished groups are kept beside the results until the end,
    so that an interrupted run is continued. Raises CleansetError, too, where a clean image does not get the stored
    scores, bit for bit.
    """
    params = read_params(study.edition.folder)
    wanted = read_study_params(study.params_yaml, list(params.models))
    settings = read_attack_settings(study.params_yaml) if settings is None else settings
    settings.attack(name)
    device, batch_size = (found := settings_for(params.score)).devices[0], found.batch_size
    judge_of, target = opened(study, params, wanted, role, device)
    known = Known(wanted.seed, target.others, lambda: guess_of(study, wanted, target))
    attack = made(settings.attack(name), known)
    attacked_images = first_images(target.images, settings.images_of(name))
    record = record_of(target, name, settings, wanted, attacked_images, device)
    shards = shards_of(study, target, name, record, attack, attacked_images)
    network = pixel_network(target.model, device, settings.search_precision, batch_size)
    count = search(target, attack, network, judge_of, shards, settings.budget, f"{name} {role}")
    if count < len(attacked_images):
        print_notice(f"{name} {role}: the budget is spent after {count} of {len(attacked_images)} images")
        attacked_images = attacked_images.head(count)
    finished = shards_of(study, target, name, record, attack, attacked_images)
    write_results(study, target, name, record | {"attacked": count}, finished.table())
    shards.remove()


def opened(study: Study, params: Params, wanted: StudyParams, role: str, device: torch.device) -> tuple[Judge, Target]:
    """The model and its images; their logits are compared with the stored scores."""
    edition = study.edition
    model = load_model(params.model(role), edition.folder)
    images = images_for(read_table(study.images, STUDY_IMAGES), wanted.images, role)
    files = files_of(edition, images)
    judge, source = Judge(model, device), SetImages(files)
    before = {file: judge.logits([pixels_of(file, source, model.preprocessing)])[0] for file in images["file"]}
    if params.score.precision == "float64":
        clean = ReadAnswers(params.dataset.class_list())(np.stack([before[file] for file in images["file"]]))
        frame = pd.DataFrame({column: list(values) for column, values in clean.items()})
        stored = read_table(edition.scores(role), SCORES), read_table(edition.crop_scores(role), CROP_SCORES)
        check_clean(role, images, frame, *stored)
    return judge, Target(role, model, images, files, before)


def guess_of(study: Study, wanted: StudyParams, target: Target) -> Guess:
    """The attack that knows the stored predictions."""
    corruptions, scenarios = (
        read_table(study.predictions(family, target.role), PREDICTIONS[family]) for family in GUESSED
    )
    mistakes = most_confident_mistakes(target.images, pd.concat((corruptions, scenarios.assign(severity=0))))
    whole = Resized(target.model.preprocessing.size)

    @cache
    def changed(family: str) -> ChangedImages:
        return family_of(family, Sources.read(study), wanted).changed_images(target.files, wanted)

    def pixels(file: str, name: str, severity: int) -> Pixels:
        if name == CLEAN:
            return target.pixels(file)
        # of all families the unchanged images are the same; severities begin with 1
        family = "corruptions" if severity or name == UNCHANGED else "scenarios"
        return whole(changed(family)(str(ChangeName(file, name, severity))))

    return Guess(mistakes, pixels)


def record_of(
    target: Target, name: str, settings: AttackSettings, wanted: StudyParams, images: pd.DataFrame, device: torch.device
) -> dict[str, Any]:
    """What the results depend on; of the machine only what the search was computed with."""
    attack = settings.attack(name)
    searched_on = "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device)
    used = (*LIBRARIES.get(attack.kind, ()), "scikit-image")
    return {
        "attack": name,
        "role": target.role,
        "parameters": attack.model_dump(),
        "budget": settings.budget.model_dump(),
        "seed": wanted.seed,
        "search_precision": settings.search_precision,
        "searched_on": searched_on,
        "weights_sha256": target.model.weights_sha256,
        "images": len(images),
        "images_sha256": sha256("\n".join(images["file"] + " " + images["file_sha256"]).encode()),
        "versions": library_versions() | {library: version(library) for library in used},
    }


def shards_of(
    study: Study, target: Target, name: str, record: dict[str, Any], attack: Attack, images: pd.DataFrame
) -> Shards:
    """The finished groups, those of other code, parameters or predictions removed."""
    predictions = [study.predictions(family, target.role) for family in GUESSED]
    known = " ".join(sha256(path.read_bytes()) for path in predictions) if isinstance(attack, Guess) else ""
    facts = json.dumps(record), scoring_code(), source_code(SEARCHING), known
    folder, size = partial_folder(study.folder, name, target.role), attack.group_size
    return Shards(folder, fingerprint(*facts), images["file"].tolist(), size, size, SHARD)


def search(
    target: Target, attack: Attack, network: PixelNetwork, judge: Judge, shards: Shards, budget: Budget, text: str
) -> int:
    """Attack the missing groups one after the other and return how many images from the first on are finished."""
    begin, spent = monotonic(), 0
    digests = dict(zip(target.images["file"], target.images["file_sha256"], strict=True))
    left = sum(len(shards.image_ids(number)) for number in shards.missing)
    if budget.queries is not None:  # what was spent before an interruption counts
        spent = sum(int(table["queries"].sum()) for table in shards.finished())
    for number in tracked(shards.missing, left, text, attack.group_size):
        names = shards.image_ids(number)
        late = budget.seconds is not None and number > 0 and monotonic() - begin >= budget.seconds
        if late or (budget.queries is not None and spent >= budget.queries):
            return number * attack.group_size
        group = [target.subject(name) for name in names]
        with searching(network.precision):
            results = attack(network, group)
        verdicts = [
            judge.verdict(subject, result, attack.ball, target.before[subject.name])
            for subject, result in zip(group, results, strict=True)
        ]
        shards.keep(number, rows(group, [digests[name] for name in names], results, verdicts))
        spent += sum(result.queries for result in results)
    return shards.total_images()


def write_results(study: Study, target: Target, name: str, record: dict[str, Any], shards: pd.DataFrame) -> None:
    """Write the table, the PNGs and the record: all or nothing."""
    folder = attacked_folder(study.folder, name, target.role)
    ids = {file: each.image_id for file, each in target.files.items()}
    with replacing(folder.folder) as partial:
        for file, content in zip(shards["image_id"], shards["content"], strict=True):
            path = partial / png_name(file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        write_table(partial / folder.table.name, attacked(shards, ids), ATTACKED)
        write_text(partial / folder.record.name, json.dumps(record, indent=2) + "\n")
