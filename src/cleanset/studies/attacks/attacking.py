"""The stages of a study that run a model: one attack on one model, and the signs that a model only looks strong.

attacks, further_attacks, wrapped_attacks: the candidates are searched for in any precision and judged in float64.
attack_warnings, further_warnings, wrapped_warnings: the signs are probed on some of the images.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pandas as pd
import torch

from cleanset.errors import CleansetError
from cleanset.files import replacing, sha256, write_text
from cleanset.progress import print_notice, tracked
from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.scoring.engine import settings_for
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom, code_of, library_versions
from cleanset.studies.attacks.base import Known, Search, globally_seeded, judged_seed, searched_seed
from cleanset.studies.attacks.changes import GUESSED
from cleanset.studies.attacks.gradient_attacks import Pgd, Spsa
from cleanset.studies.attacks.judged import Judge, Lpips
from cleanset.studies.attacks.results import ATTACKED, SHARD, attacked_rows, png_name
from cleanset.studies.attacks.study import AttackedFolder, AttackParams, AttackStudy, Budget
from cleanset.studies.attacks.targets import (
    AllParams,
    AttackedModel,
    Searching,
    check_scores,
    guess_of,
    open_target,
    other_models,
)
from cleanset.studies.attacks.warnings import WarningRecord, of_command, probe, write_warnings
from cleanset.studies.robustness.images import first_images
from cleanset.tables import Table, write_table


def run_attack(study: AttackStudy, model: str, name: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attacks/<name>/<model>/.

    `model` is a role of the edition or the name of a further or a wrapped model, `name` an attack's.
    `attack_params` default to the params.yaml of the attacks. Finished groups are kept beside the results until the
    end, so that an interrupted run is continued. Raises CleansetError, too, where a clean image does not get the stored
    scores, bit for bit.
    """
    params = AllParams.read(study, attack_params)
    settings = params.attacks
    check_attack(settings, name, model, list(params.edition.models))
    scoring = settings_for(params.edition.score)
    lpips = lpips_of(study.folder, settings, scoring.devices[0])
    judge, target = open_target(study, params, model, scoring, lpips)
    how = Searching(scoring.devices[0], settings.search_precision, scoring.batch_size)
    known = Known(
        settings.seed, target.others, partial(guess_of, study.robustness, params.robustness, target),
        lambda: target.sources(other_models(study, params, model), how),
    )  # fmt: skip
    images = first_images(target.images, settings.images_of(name, target.name))
    check_scores(study, params.edition, target, images)
    stored_facts = ""
    if settings.attack(name).reads_predictions:
        predictions = [study.robustness.predictions(family, target.name) for family in GUESSED]
        stored_facts = " ".join(sha256(path.read_bytes()) for path in predictions)
    places = Places(study.partial_results(name, model), study.results(name, model), stored_facts)
    attack_images(Attacking(settings, name, target, judge, how), known, images, places)


@dataclass(frozen=True, slots=True)
class Places:
    """Where finished groups and results are written; `facts`: what they depend on beside code and record.

    `table`: that of the results.
    """

    partial: Path
    results: AttackedFolder
    facts: str = ""
    table: Table = ATTACKED


@dataclass(frozen=True, slots=True)
class Attacking:
    """An attack, by its name in the params, on a model, and how it is judged."""

    params: AttackParams
    name: str
    target: AttackedModel
    judge: Judge
    how: Searching

    def record(self, images: pd.DataFrame) -> dict[str, Any]:
        """The record of what the results of some rows of STUDY_IMAGES depend on."""
        record = record_of(self.target, self.name, self.params, images, self.how.device)
        lpips = self.judge.lpips
        if lpips is None:
            return record
        weights = {"lpips_weights_sha256": lpips.weights_sha256}
        return record | weights | {"versions": record["versions"] | library_versions(["lpips"])}

    def made_from(self, images: pd.DataFrame, places: Places) -> MadeFrom:
        """The record, and what else the results depend on: the code, and facts of the place."""
        code = code_of("scoring", "studies/robustness", "studies/attacks")
        return MadeFrom(self.record(images) | {"code": code, "further": places.facts})


def attack_images(
    attacking: Attacking, known: Known, images: pd.DataFrame, places: Places, *, keep_facts: bool = False
) -> None:
    """Attack some rows of STUDY_IMAGES, and write the results; finished groups are kept until the end.

    `keep_facts`: write all that the results depend on into the record, by which they are known without DVC.
    """
    settings, name, target = attacking.params, attacking.name, attacking.target
    searched, record = settings.attack(name).search(known), attacking.record(images)
    made_from = attacking.made_from(images, places)
    label = made_from.fingerprint
    shards = shards_of(places.partial, label, searched, images)
    run_of = Run(name, settings.seed, target, searched, target.network(attacking.how), attacking.judge)
    count = run_search(run_of, shards, settings.budget)
    if count < len(images):
        print_notice(f"{name} {target.name}: the budget is spent after {count} of {len(images)} images")
    # anew: after a spent budget there are fewer images, and so fewer groups
    finished = shards_of(places.partial, label, searched, images.head(count))
    record |= {"attacked": count} | (dict(made_from.facts) if keep_facts else {})
    write_results(places, target, record, finished.table())
    shards.remove()


def lpips_of(folder: Path, settings: AttackParams, device: torch.device) -> Lpips | None:
    """LPIPS with the weights that the params name, relative to a folder; None where they name none."""
    if settings.lpips is None:
        return None
    return Lpips(folder / settings.lpips, device)


def check_attack(settings: AttackParams, name: str, model: str, roles: Sequence[str]) -> None:
    """Raise CleansetError for an unknown attack, and for one that is not run on a model; `roles`: of the edition."""
    settings.attack(name)
    if settings.is_left_out(name, model, roles):
        raise CleansetError(
            f"{name} {model}: {name} reads stored predictions, which only the edition's models have; expected another "
            f"attack, or one of {', '.join(roles)}"
        )


def record_of(
    target: AttackedModel, name: str, settings: AttackParams, images: pd.DataFrame, device: torch.device
) -> dict[str, Any]:
    """The record of what the results depend on; of the machine only what the search was computed with."""
    attack = settings.attack(name)
    searched_on = "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device)
    # scikit-image computes SSIM
    used = (*attack.libraries, "scikit-image")
    return {
        "attack": name,
        "role": target.name,
        **({} if target.wrapped is None else {"wrapped": target.wrapped.model_dump()}),
        "parameters": attack.model_dump(),
        "budget": settings.budget.model_dump(),
        "seed": settings.seed,
        "search_precision": settings.search_precision,
        "searched_on": searched_on,
        "weights_sha256": target.model.weights_sha256,
        "images": len(images),
        "images_sha256": sha256("\n".join(images["file"] + " " + images["file_sha256"]).encode()),
        "versions": library_versions() | library_versions(used),
    }


def shards_of(folder: Path, label: str, searched: Search, images: pd.DataFrame) -> Shards:
    """The finished groups in a folder, those of another fingerprint removed."""
    size = searched.group_size
    return Shards(folder, label, images["file"].tolist(), size, size, SHARD)


@dataclass(frozen=True, slots=True)
class Run:
    """The search of an attack, by its name in the params, on a model; `seed` is that of the params."""

    name: str
    seed: int
    target: AttackedModel
    search: Search
    network: PixelNetwork
    judge: Judge

    def rows_of(self, files: Sequence[str]) -> pd.DataFrame:
        """The rows of SHARD for a group of images; a random model draws the same for it whenever it is asked."""
        target = self.target
        group = [target.subject(file) for file in files]
        seed = searched_seed(self.seed, target.name, self.name, group)
        self.network.reseed(seed)
        # a random model of one's own draws from the global generators
        with searching(self.network.precision), globally_seeded(seed, self.network.device):
            results = self.search(self.network, group)
        verdicts = [
            self.judge.verdict(
                subject, result, self.search.ball, target.before(subject.name),
                judged_seed(self.seed, target.name, self.name, subject.name),
            )
            for subject, result in zip(group, results, strict=True)
        ]  # fmt: skip
        found = [
            {
                "image_id": subject.name,
                "content": verdict.png,
                **target.stored(subject.name),
                "png_sha256": sha256(verdict.png),
                "seed": result.seed,
                "queries": result.queries,
                # float32 halves the table; verdicts were taken in float64
                "logits_before": verdict.before.astype(np.float32).tolist(),
                "logits_after": verdict.after.astype(np.float32).tolist(),
                "was_correct": verdict.was_correct,
                "is_error": verdict.is_error,
                **asdict(verdict.distances),
                "from_center": verdict.from_center,
                "notices": list(result.notices),
            }
            for subject, result, verdict in zip(group, results, verdicts, strict=True)
        ]
        return pd.DataFrame(found, columns=SHARD.names)


def run_search(run: Run, shards: Shards, budget: Budget) -> int:
    """Attack the missing groups one after the other and return how many images from the first on are finished."""
    begin, spent, size = monotonic(), 0, run.search.group_size
    # the bar shows what is left to do, not what an earlier run did
    left = sum(len(shards.image_ids(number)) for number in shards.missing)
    # what was spent before an interruption counts
    if budget.queries is not None:
        spent = sum(int(table["queries"].sum()) for table in shards.finished())
    for number in tracked(shards.missing, left, f"{run.name} {run.target.name}", size):
        # at least one group is attacked, however little time is given
        late = budget.seconds is not None and number > 0 and monotonic() - begin >= budget.seconds
        if late or (budget.queries is not None and spent >= budget.queries):
            return number * size
        found = run.rows_of(shards.image_ids(number))
        shards.keep(number, found)
        spent += int(found["queries"].sum())
    return shards.total_images()


def write_results(places: Places, target: AttackedModel, record: dict[str, Any], shards: pd.DataFrame) -> None:
    """Write the table, the PNGs and the record: all or nothing."""
    ids = {file: each.image_id for file, each in target.files.items()}
    folder = places.results
    with replacing(folder.folder) as unfinished:
        for file, content in zip(shards["image_id"], shards["content"], strict=True):
            path = unfinished / png_name(file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        write_table(unfinished / folder.table.name, attacked_rows(shards, ids), places.table)
        write_text(unfinished / folder.record.name, json.dumps(record, indent=2) + "\n")


def run_warnings(study: AttackStudy, model: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attack_warnings/<model>.json.

    `model` is a role of the edition or the name of a further or a wrapped model.
    """
    params = AllParams.read(study, attack_params)
    scoring = settings_for(params.edition.score)
    _, target = open_target(study, params, model, scoring)
    check_scores(study, params.edition, target, first_images(target.images, params.attacks.probe.images))
    how = Searching(scoring.devices[0], params.attacks.search_precision, scoring.batch_size)
    others = target.sources(other_models(study, params, model), how)
    write_warnings(study.warnings(model), probed(target, params.attacks, others, how))


def probed(
    target: AttackedModel,
    settings: AttackParams,
    others: Mapping[str, PixelNetwork],
    how: Searching,
    *,
    is_command: bool = False,
) -> WarningRecord:
    """The signs on the first images of each class, with PGD and SPSA in one ball, and images made on other models.

    A command, which has neither logits nor gradients, is only asked the same again.
    """
    asked = settings.probe
    images = first_images(target.images, asked.images)
    subjects = [target.subject(file) for file in images["file"]]
    network = target.network(how)
    pgd = Pgd("Linf", asked.eps, asked.steps, asked.eps / 4, True, settings.seed, asked.group)
    spsa = Spsa(asked.eps, asked.spsa_steps, asked.spsa_samples, asked.eps / 4, 0.01, 1, settings.seed)
    seed = searched_seed(settings.seed, target.name, "warnings", subjects)
    network.reseed(seed)
    with searching(how.precision), globally_seeded(seed, how.device):
        found = of_command(network, subjects) if is_command else probe(network, subjects, pgd, [spsa], others)
    return WarningRecord.of(target.name, len(subjects), asked.model_dump(), found)
