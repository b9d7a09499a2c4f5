"""Stage report: what was found and what was kept, as pages that open without a server or a network."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from cleanset.edition import Edition
from cleanset.errors import CleansetError
from cleanset.files import replacing, write_text
from cleanset.images import Read
from cleanset.params import Params, read_params
from cleanset.pictures import VerifiedPictures
from cleanset.pipeline_file import check_roles
from cleanset.progress import tracked
from cleanset.report.figures import (
    Counts,
    by_size,
    class_states,
    funnel,
    histograms,
    overlaps,
    pairwise,
    rejects,
)
from cleanset.report.pages import Report, Shot, pages
from cleanset.report.plots import plots
from cleanset.report.sheets import kept_pictures, sheets
from cleanset.report.thumbnails import Thumbnail, before_and_after, thumbnail
from cleanset.review.agreement import VERDICTS, differences, of_verdicts, overall, pairs, verdict_counts, without_board
from cleanset.review.folder import Votes, read_reviews
from cleanset.selection import Filled
from cleanset.tables import INDEX, REJECTED, SELECTION, SHARED, read_table

EXAMPLES = 12
"""Pictures shown for each reason."""


def run(edition: Edition) -> None:
    """Read what the other stages wrote, and the pictures; write report/."""
    params = read_params(edition.folder)
    check_roles(edition.folder, "report", params.models, "selection")
    index = read_table(edition.index, INDEX)
    report = gathered(edition, params, index)
    read = VerifiedPictures(edition, params.dataset.images, index).read
    thumbnails = photographed(shots(report), read)
    written = pages(report, thumbnails)
    for name, text in plots(report.steps, report.states, report.histograms, report.roles).items():
        written[f"plots/{name}"] = text
    with replacing(edition.report) as folder:
        for name, text in written.items():
            write_text(folder / name, text)


def gathered(edition: Edition, params: Params, index: pd.DataFrame) -> Report:
    """The numbers, and which pictures go with them."""
    sets = {
        role: Filled(read_table(edition.selection(role), SELECTION), read_table(edition.rejected(role), REJECTED))
        for role in params.models
    }
    votes = read_reviews(edition.reviews)
    classes, per = params.dataset.class_list(), params.export.images_per_class
    said = list(without_board(votes).values())
    counts = verdict_counts(said)
    states, overlap = class_states(sets, classes, per), overlaps(sets)
    return Report(
        roles=tuple(sets),
        images_per_class=per,
        steps=tuple(funnel(index, read_table(edition.shared, SHARED), sets, votes)),
        states=tuple(states),
        by_size=by_size(states, sets, per),
        histograms=tuple(histograms(sets)),
        overlaps=tuple(overlap),
        pairwise=pairwise(overlap, list(sets)),
        rejects=tuple(rejects(sets, EXAMPLES)),
        totals=totals(edition),
        reviewers=by_reviewer(votes),
        agreement=overall(counts),
        verdicts=of_verdicts(counts),
        pairs=pairs(said),
        differences=len(differences(votes)),
        kept=kept_pictures(sets, votes),
        sheets=tuple(sheets(states)),
    )


def totals(edition: Edition) -> dict[str, dict[str, float]]:
    """What stage count wrote for each total, by its name: a number for each model that has one."""
    folder = edition.metrics / "totals"
    if not folder.is_dir():
        raise CleansetError(f"{folder}: missing; run dvc repro")
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def by_reviewer(votes: Votes) -> dict[str, Counts]:
    """How many verdicts of each kind every reviewer gave."""
    given: Counter[tuple[str, str]] = Counter(
        (name, vote.review.verdict) for by_name in votes.values() for name, vote in by_name.items()
    )
    names = sorted({name for name, _ in given})
    return {name: {verdict: given[name, verdict] for verdict in VERDICTS} for name in names}


def shots(report: Report) -> list[Shot]:
    """Every picture that the pages show, once, in the order of the archive."""
    kept = {(picture.image_id, picture.crop) for pictures in report.kept.values() for picture in pictures}
    examples = {(image_id, None) for rejects in report.rejects for _, image_id in rejects.examples}
    return sorted(kept | examples, key=lambda shot: (shot[0], shot[1] or ()))


def photographed(wanted: list[Shot], read: Read) -> dict[Shot, tuple[Thumbnail, ...]]:
    """The thumbnails of each: one of a whole picture, two of a cropped one."""
    # threads suffice: decoding, scaling and encoding release the lock
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made: Iterable[tuple[Thumbnail, ...]] = pool.map(lambda shot: _made(shot, read), wanted)
        return dict(zip(wanted, tracked(made, len(wanted), "report"), strict=True))


def _made(shot: Shot, read: Read) -> tuple[Thumbnail, ...]:
    image_id, crop = shot
    data = read(image_id)
    return (thumbnail(data),) if crop is None else before_and_after(data, crop)
