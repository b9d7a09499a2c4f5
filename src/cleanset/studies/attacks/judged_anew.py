"""The files of finished attacks judged once more, by the model loaded again in a fresh process, in another order.

A model that remembers earlier queries starts with an empty memory there, so the verdicts of the fresh process count and
replace the first ones: everyone else will get the same answers to these files. The process itself is in `fresh`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from cleanset.plumbing.files import read_text
from cleanset.scoring.models import LoadedModel
from cleanset.studies.attacks.attacking import Attacking
from cleanset.studies.attacks.base import seed_of
from cleanset.studies.attacks.fresh import ITSELF, Asked, FreshModel, StoredLogits
from cleanset.studies.attacks.signs import SeenSign, other_answer

SETTLED = "judged_anew"
"""Key of a record: the sign that was seen when the files were judged in a fresh process, or null."""


def _other_answers(stored: StoredLogits, anew: StoredLogits, verdicts: int) -> SeenSign | None:
    """The sign that files get another answer from the model loaded again; `verdicts`: how many another verdict, too."""
    answers = [np.stack([each[key] for key in stored]) for each in (stored, anew)]
    when = f"from the model loaded again, {verdicts} of them another verdict, which counts"
    return other_answer("depends_on_others", answers, when, "files")


def settle(attacks: Sequence[Attacking], opened: Callable[[], LoadedModel], *, is_custom: bool) -> SeenSign | None:
    """Judge the files of all attacks on a model once more, in a fresh process; write its verdicts into the results.

    Returns the sign that answers depend on more than the image. Files judged so before are not judged again. The
    code of a custom model may remember anything: one whose answers differ gets a process for each attack, and one for
    the images themselves.
    """
    every = [(each, json.loads(read_text(each.folder.record, "run the attack again"))) for each in attacks]
    before = next((SeenSign(**record[SETTLED]) for _, record in every if record.get(SETTLED)), None)
    attacks = [each for each, record in every if SETTLED not in record]
    records = [record for _, record in every if SETTLED not in record]
    if not attacks:
        return before
    target = attacks[0].target
    seed = attacks[0].params.seed
    tables = [each.results() for each in attacks]
    parts = [each.asked() for each in attacks]
    files = list(dict.fromkeys(each.file for part in parts for each in part))
    parts.append([Asked(ITSELF, each, Path(), seed_of(seed, "judged", f"{target.name} ", each)) for each in files])
    fresh = FreshModel(
        load=opened,
        how=replace(target.how, precision=target.judge.precision),
        files=target.files,
        # the code of others may write what it has seen to the disk
        attacked_at=_attacked_at(attacks) if is_custom else None,
    )
    stored = {
        (name, file): np.asarray(logits, np.float64)
        for attack, table in zip(attacks, tables, strict=True)
        for name, column in ((ITSELF, "logits_before"), (attack.name, "logits_after"))
        for file, logits in zip(table["file"], table[column], strict=True)
    }
    anew, seen = fresh.answers([[each for part in parts for each in part]])
    if is_custom and (seen or _other_answers(stored, anew, 0)):
        # what the process has seen of one attack may decide its answers to the next
        anew, seen = fresh.answers(parts)
    verdicts = 0
    for attack, table in zip(attacks, tables, strict=True):
        labels = np.array([target.label(each) for each in table["class_index"].tolist()])
        for column, flag, name in (
            ("logits_before", "was_correct", ITSELF),
            ("logits_after", "is_error", attack.name),
        ):
            logits = [anew[name, file] for file in table["file"]]
            flags = (np.stack(logits).argmax(axis=1) == labels) == (name == ITSELF)
            verdicts += int((flags != table[flag].to_numpy(bool)).sum())
            table[column], table[flag] = [each.astype(np.float32).tolist() for each in logits], flags
    # the fresh verdicts are reported first: they are what changes numbers
    seen = _other_answers(stored, anew, verdicts) or seen or before
    for attack, table, record in zip(attacks, tables, records, strict=True):
        attack.save(table, record | {SETTLED: None if seen is None else asdict(seen)})
    return seen


def _attacked_at(attacks: Sequence[Attacking]) -> float:
    """When the first query of some attacks may have been asked, in seconds since 1970; for a continued run, an earlier
    one's.
    """
    results = (path for each in attacks for path in each.folder.folder.rglob("*"))
    return min((attacks[0].target.opened_at, *(path.stat().st_ctime for path in results)))
