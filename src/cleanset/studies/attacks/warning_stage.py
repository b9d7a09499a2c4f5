"""The search for signs of gradient masking on some images of a model, and the verdicts on what it finds.

Stages attack_warnings, further_warnings and wrapped_warnings run it on a model of a study; `attacks evaluate` on any.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from cleanset.evaluation.specs import is_custom
from cleanset.scoring.differentiable import PixelNetwork, searching
from cleanset.scoring.models import LoadedModel
from cleanset.studies.attacks.attacking import Attacking, stored_row
from cleanset.studies.attacks.base import Ball, Known, Result, Subject, globally_seeded, logits_of, seed_of, to_unit
from cleanset.studies.attacks.candidate_files import candidate_file
from cleanset.studies.attacks.evaluated_models import EvaluatedModel
from cleanset.studies.attacks.gradient_attacks import PgdAttack, SpsaAttack
from cleanset.studies.attacks.judge import unwritten
from cleanset.studies.attacks.judged_anew import settle
from cleanset.studies.attacks.probing import of_command, probe
from cleanset.studies.attacks.results import SHARD
from cleanset.studies.attacks.signs import SeenSign, precision_changes_answers
from cleanset.studies.attacks.study import AllParams, AttackedFolder, AttackParams, AttackStudy
from cleanset.studies.attacks.targets import scores_check
from cleanset.studies.attacks.threats import PROBE
from cleanset.studies.attacks.tries import Tries
from cleanset.studies.attacks.warnings import Candidate, WarningRecord, write_warnings
from cleanset.studies.robustness.images import first_images


def run_warnings(study: AttackStudy, model: str, attack_params: AttackParams | None = None) -> None:
    """Read the images and the model's weights, write data/attack_warnings/<model>.json.

    `model` is a role of the edition or the name of a further or a wrapped model.
    """
    params = AllParams.read(study, attack_params)
    evaluated = EvaluatedModel.of_study(study, params, model)
    target = evaluated.target(evaluated.open(), evaluated.settings.devices[0], is_measured=False)
    asked = first_images(target.images, params.attacks.probe.images)
    scores_check(study, params.edition, target)(asked["file"].tolist())
    with TemporaryDirectory() as folder:
        kept = Attacking(params.attacks, PROBE, target, AttackedFolder(Path(folder) / PROBE))
        record = probed(kept, evaluated.sources(target))
        if record.candidates and is_custom(evaluated.spec):
            record = _with_sign(settle([kept], evaluated.anew(), is_custom=True), record)
        if record.candidates:
            record = record.model_copy(update={"candidates": _probe_candidates(kept, with_png=True)})
    write_warnings(study.warnings(model), record)


def probed(kept: Attacking, others: Mapping[str, PixelNetwork], *, is_command: bool = False) -> WarningRecord:
    """The signs on the first images of each class, with PGD and SPSA in one ball, and images made on other models.

    What they find is judged and written by `kept`. A command, which has neither logits nor gradients, is only asked the
    same again.
    """
    target = kept.target
    settings = kept.params
    asked = settings.probe
    images = first_images(target.images, asked.images)
    subjects = [target.subject(file) for file in images["file"]]
    network = target.network()
    pgd = PgdAttack(eps=asked.eps, steps=asked.steps, group=asked.group)
    spsa = SpsaAttack(
        eps=asked.eps, steps=asked.spsa_steps, samples=asked.spsa_samples, learning_rate=asked.eps / 4, after=None
    )
    seed = seed_of(settings.seed, "searched", f"{target.name} warnings", *images["file"])
    network.reseed(seed)
    known = Known(settings.seed, sources=lambda: others)
    with searching(network.precision), globally_seeded(seed, network.device):
        found = of_command(network, subjects) if is_command else probe(network, subjects, known, pgd, [spsa])
        if not {"random_answers", "depends_on_others"} & {each.sign for each in found.seen}:
            logits = logits_of(network, to_unit([subject.pixels for subject in subjects], network))
            judged = np.stack([target.before(subject.name) for subject in subjects])
            names = [subject.name for subject in subjects]
            sign = precision_changes_answers(logits, judged, network.precision, names)
            found.seen.extend([] if sign is None else [sign])
    if found.searches:
        _keep_probe(kept, subjects, found.searches)
    return WarningRecord(
        role=target.name,
        images=len(subjects),
        files=tuple(subject.name for subject in subjects),
        parameters=asked.model_dump(),
        warnings=tuple(found.seen),
        not_told=tuple(found.not_told),
        candidates=_probe_candidates(kept, with_png=False) if found.searches else (),
        baselines=found.baselines,
    )


def _keep_probe(kept: Attacking, subjects: Sequence[Subject], searches: Mapping[str, Tries]) -> None:
    """Judge what the probe found near each image, and write it as the results of an attack.

    The first candidate that is misclassified both in its search and when judged is kept; otherwise that of the first
    search. The remark of a row is the name of the search.
    """
    target = kept.target
    ball = Ball("Linf", kept.params.probe.eps)
    words = f"{target.name} {kept.name}"
    rows = []
    for place, subject in enumerate(subjects):
        names = [name for name, each in searches.items() if each.success[place]] or [*searches][:1]
        queries = sum(each.queries[place] for each in searches.values())
        results = [Result(searches[name].candidates[place], queries, notices=(name,)) for name in names]
        before = target.before(subject.name)
        seed = seed_of(kept.params.seed, "judged", words, subject.name)
        files = [partial(candidate_file, unwritten(subject, each, ball)) for each in results]
        row = target.judge.verdict(subject, results[0], before, files[0], seed)
        for each, file in zip(results[1:], files[1:], strict=True):
            if row["is_error"]:
                break
            another = target.judge.verdict(subject, each, before, file, seed)
            row = another if another["is_error"] else row
        rows.append(stored_row(target, subject.name, row))
    images = target.images.set_index("file").loc[[subject.name for subject in subjects]].reset_index()
    kept.write(pd.DataFrame(rows, columns=SHARD.names), kept.record(images))


def _probe_candidates(kept: Attacking, *, with_png: bool) -> tuple[Candidate, ...]:
    """What the probe found, from its results; `with_png`: with the images that break a correct one."""
    return tuple(
        Candidate(
            file=row["file"],
            search=row["notices"][0],
            was_correct=row["was_correct"],
            is_error=row["is_error"],
            l2=row["l2"],
            linf=row["linf"],
            png_sha256=row["png_sha256"],
            png=_base64(kept.folder.folder / row["png"])
            if with_png and row["was_correct"] and row["is_error"]
            else None,
        )
        for row in kept.results().to_dict("records")
    )


def _base64(png: Path) -> str:
    return b64encode(png.read_bytes()).decode("ascii")


def settled_with_probe(
    finished: Sequence[Attacking],
    kept: Attacking,
    record: WarningRecord | None,
    opened: Callable[[], LoadedModel],
    *,
    is_custom: bool,
) -> WarningRecord | None:
    """Judge the files of all attacks and of the probe, which `kept` has, in a fresh process; the record after that.

    None without a probe, unless verdicts changed.
    """
    if record is None:
        sign = settle(finished, opened, is_custom=is_custom)
        # the sign says why verdicts changed
        empty = WarningRecord(role=kept.target.name, images=0, parameters={}, warnings=())
        return None if sign is None else _with_sign(sign, empty)
    has_searched = bool(record.candidates)
    sign = settle([*finished, *([kept] if has_searched else [])], opened, is_custom=is_custom)
    judged = _probe_candidates(kept, with_png=False) if has_searched else ()
    return _with_sign(sign, record.model_copy(update={"candidates": judged}))


def _with_sign(sign: SeenSign | None, record: WarningRecord) -> WarningRecord:
    """The record with a sign before the others."""
    signs = () if sign is None else (sign,)
    return record.model_copy(update={"warnings": (*signs, *(each for each in record.warnings if each not in signs))})
