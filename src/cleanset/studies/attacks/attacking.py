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
from cleanset.measure.run import load
from cleanset.measure.specs import CommandModel, Spec
from cleanset.progress import print_notice, tracked
from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.scoring.engine import Settings, settings_for
from cleanset.scoring.shards import Shards
from cleanset.scoring.validity import MadeFrom, code_of, library_versions, read_finished
from cleanset.studies.attacks.base import Ball, Known, Search, globally_seeded, judged_seed, searched_seed
from cleanset.studies.attacks.changes import GUESSED
from cleanset.studies.attacks.gradient_attacks import Pgd, Spsa
from cleanset.studies.attacks.judged import Judge, Lpips
from cleanset.studies.attacks.results import ATTACKED, NAMED_ATTACKED, SHARD, attacked_rows, png_name
from cleanset.studies.attacks.study import GUESS, AttackedFolder, AttackParams, AttackStudy
from cleanset.studies.attacks.targets import (
    AllParams,
    AttackedModel,
    Searching,
    check_scores,
    guess_of,
    logits_before,
    open_target,
    other_models,
    with_straight_through,
)
from cleanset.studies.attacks.warnings import WarningRecord, of_command, probe, write_warnings
from cleanset.studies.robustness.image_sets import OpenedImages
from cleanset.studies.robustness.images import first_images
from cleanset.tables import Table, read_table, write_table


def run_attack(study: AttackStudy, model: str, name: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attacks/<name>/<model>/.

    `model` is a role of the edition or the name of a further or a wrapped model, `name` an attack's.
    `attack_params` default to the params.yaml of the attacks. Finished groups are kept beside the results until the
    end, so that an interrupted run is continued. Raises CleansetError, too, where a clean image does not get the stored
    scores, bit for bit.
    """
    params = AllParams.read(study, attack_params)
    settings, roles = params.attacks, list(params.edition.models)
    if settings.is_left_out(name, model, roles):
        raise CleansetError(
            f"{name} {model}: {name} reads stored predictions, which only the edition's models have; expected another "
            f"attack, or one of {', '.join(roles)}"
        )
    scoring = settings_for(params.edition.score)
    lpips = lpips_of(study.folder, settings, scoring.devices[0])
    judge, target = open_target(study, params, model, scoring, lpips)
    how = Searching(scoring.devices[0], settings.search_precision, scoring.batch_size)
    guess = partial(guess_of, study.robustness, params.robustness, target)
    known = Known(settings.seed, target.others, guess, lambda: target.sources(other_models(study, params, model), how))
    images = first_images(target.images, settings.images_of(name, target.name))
    check_scores(study, params.edition, target, images)
    stored_facts = ""
    if settings.attack(name).reads_predictions:
        predictions = [study.robustness.predictions(family, target.name) for family in GUESSED]
        stored_facts = " ".join(sha256(path.read_bytes()) for path in predictions)
    places = Places(study.partial_results(name, model), study.results(name, model), stored_facts)
    Attacking(settings, name, target, judge, how).run(known, images, places)


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
        """The record of what the results of some rows of STUDY_IMAGES depend on.

        Of the machine it has only what the search was computed with.
        """
        params, target, lpips = self.params, self.target, self.judge.lpips
        attack, device = params.attack(self.name), self.how.device
        # scikit-image computes SSIM
        libraries = [*attack.libraries, "scikit-image", *([] if lpips is None else ["lpips"])]
        return {
            "attack": self.name,
            "role": target.name,
            **({} if target.wrapped is None else {"wrapped": target.wrapped.model_dump()}),
            "parameters": attack.model_dump(),
            "budget": params.budget.model_dump(),
            "seed": params.seed,
            "search_precision": params.search_precision,
            "searched_on": "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
            "weights_sha256": target.model.weights_sha256,
            "images": len(images),
            "images_sha256": sha256("\n".join(images["file"] + " " + images["file_sha256"]).encode()),
            "versions": library_versions() | library_versions(libraries),
            **({} if lpips is None else {"lpips_weights_sha256": lpips.weights_sha256}),
        }

    def made_from(self, images: pd.DataFrame, places: Places) -> MadeFrom:
        """The record, and what else the results depend on: the code, and facts of the place."""
        code = code_of("scoring", "studies/robustness", "studies/attacks")
        return MadeFrom(self.record(images) | {"code": code, "further": places.facts})

    def run(self, known: Known, images: pd.DataFrame, places: Places, *, keep_facts: bool = False) -> None:
        """Attack some rows of STUDY_IMAGES, and write the results; finished groups are kept until the end.

        `keep_facts`: write all that the results depend on into the record, by which they are known without DVC.
        """
        search, made_from = self.params.attack(self.name).search(known), self.made_from(images, places)
        size, files = search.group_size, images["file"].tolist()
        shards = Shards(places.partial, made_from.fingerprint, files, size, size, SHARD)
        count = self._search_missing(search, shards)
        if count < len(images):
            print_notice(f"{self.name} {self.target.name}: the budget is spent after {count} of {len(images)} images")
        # anew: after a spent budget there are fewer images, and so fewer groups
        finished = Shards(places.partial, made_from.fingerprint, files[:count], size, size, SHARD)
        facts = made_from.facts if keep_facts else {}
        record = self.record(images) | {"attacked": count, **facts}
        write_results(places, self.target, record, finished.table())
        shards.remove()

    def _search_missing(self, search: Search, shards: Shards) -> int:
        """Attack the missing groups one after the other; return how many images from the first are finished."""
        network, budget = self.target.network(self.how), self.params.budget
        begin, spent, size = monotonic(), 0, search.group_size
        # the bar shows what is left to do, not what an earlier run did
        left = sum(len(shards.image_ids(number)) for number in shards.missing)
        # what was spent before an interruption counts
        if budget.queries is not None:
            spent = sum(int(table["queries"].sum()) for table in shards.finished())
        for number in tracked(shards.missing, left, f"{self.name} {self.target.name}", size):
            # at least one group is attacked, however little time is given
            late = budget.seconds is not None and number > 0 and monotonic() - begin >= budget.seconds
            if late or (budget.queries is not None and spent >= budget.queries):
                return number * size
            found = self._rows(search, network, shards.image_ids(number))
            shards.keep(number, found)
            spent += int(found["queries"].sum())
        return shards.total_images()

    def _rows(self, search: Search, network: PixelNetwork, files: Sequence[str]) -> pd.DataFrame:
        """The rows of SHARD for a group of images; a random model draws the same for it whenever it is asked."""
        target, seed = self.target, self.params.seed
        group = [target.subject(file) for file in files]
        group_seed = searched_seed(seed, target.name, self.name, group)
        network.reseed(group_seed)
        # a custom random model draws from the global generators
        with searching(network.precision), globally_seeded(group_seed, network.device):
            results = search(network, group)
        found = []
        for subject, result in zip(group, results, strict=True):
            own_seed = judged_seed(seed, target.name, self.name, subject.name)
            verdict = self.judge.verdict(subject, result, search.ball, target.before(subject.name), own_seed)
            row = {
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
            found.append(row)
        return pd.DataFrame(found, columns=SHARD.names)


def lpips_of(folder: Path, settings: AttackParams, device: torch.device) -> Lpips | None:
    """LPIPS with the weights that the params name, relative to a folder; None where they name none."""
    return None if settings.lpips is None else Lpips(folder / settings.lpips, device)


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
    pgd = Pgd(Ball("Linf", asked.eps), asked.steps, asked.eps / 4, True, settings.seed, asked.group)
    spsa = Spsa(asked.eps, asked.spsa_steps, asked.spsa_samples, asked.eps / 4, 0.01, 1, settings.seed)
    seed = searched_seed(settings.seed, target.name, "warnings", subjects)
    network.reseed(seed)
    with searching(how.precision), globally_seeded(seed, how.device):
        found = of_command(network, subjects) if is_command else probe(network, subjects, pgd, [spsa], others)
    return WarningRecord.of(target.name, len(subjects), asked.model_dump(), found)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedAttacks:
    """Attacks on any models outside DVC, whose results are kept below the folder `out`.

    `others`: the models that images are made on. `straight_through`: steps of the networks that gradients pass straight
    through. `lpips_folder`: the folder that the params name LPIPS's weights from.
    """

    images: OpenedImages
    params: AttackParams
    settings: Settings
    out: Path
    others: Sequence[Spec]
    straight_through: Sequence[str]
    lpips_folder: Path

    def model(self, spec: Spec) -> "EvaluatedModel":
        """A model, loaded. Raises CleansetError if that fails."""
        settings, params, files = self.settings, self.params, self.images.files
        named, device = load(spec, settings), settings.devices[0]
        loaded = named.loaded
        judge = Judge(loaded, device, lpips_of(self.lpips_folder, params, device), settings.precision)
        before = logits_before(judge, named.name, loaded, files, params.seed)
        searched = with_straight_through(loaded.network, self.straight_through)
        target = AttackedModel(named.name, loaded, self.images.images, files, before, searched=searched)
        how = Searching(device, params.search_precision, settings.batch_size)
        return EvaluatedModel(self, spec, named.identity, judge, target, how)


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedModel:
    """A model of EvaluatedAttacks; `identity`: a digest of all that its answers depend on."""

    request: EvaluatedAttacks
    spec: Spec
    identity: str
    judge: Judge
    target: AttackedModel
    how: Searching

    def results(self, name: str, stem: str) -> pd.DataFrame:
        """The rows of NAMED_ATTACKED of an attack, computed unless the folder `stem` has them."""
        request, params, target = self.request, self.request.params, self.target
        facts = [self.identity, request.settings.precision, *request.straight_through]
        if params.attacks[name].kind == "transfer":  # type: ignore[attr-defined]
            facts += [other.text for other in request.others]
        of_attack = request.out / "attacks" / name
        folder = AttackedFolder(of_attack / stem)
        places = Places(of_attack / f"{stem}.partial-shards", folder, json.dumps(facts), NAMED_ATTACKED)
        images = first_images(target.images, params.images_of(name, target.name))
        attacking = Attacking(params, name, target, self.judge, self.how)
        if read_finished(folder.record, attacking.made_from(images, places)) is None:
            known = Known(params.seed, target.others, _no_guess, self._sources)
            attacking.run(known, images, places, keep_facts=True)
        return read_table(folder.table, NAMED_ATTACKED)

    def warnings(self) -> WarningRecord:
        """The signs that the model only looks strong."""
        is_command = isinstance(self.spec, CommandModel)
        return probed(self.target, self.request.params, self._sources(), self.how, is_command=is_command)

    def _sources(self) -> dict[str, PixelNetwork]:
        request = self.request
        others = [other for other in request.others if other.text != self.spec.text]
        return self.target.sources({other.text: load(other, request.settings).loaded for other in others}, self.how)


def _no_guess() -> Search:
    raise CleansetError(f"{GUESS}: reads the stored predictions of a study; expected another attack")
