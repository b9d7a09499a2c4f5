"""Stage report: candidates, sets and reviews as pages that open without a server or a network."""

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

from cleanset.edition.images import verified_images
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition
from cleanset.edition.readings import readings
from cleanset.edition.roles import check_roles
from cleanset.errors import CleansetError
from cleanset.exports.confidence import delivered_confidences
from cleanset.files import read_text, replacing, write_text
from cleanset.images.codec import Read
from cleanset.machine import available_cores
from cleanset.parsing import parse_json
from cleanset.progress import tracked
from cleanset.report.figures import (
    Counts,
    Key,
    by_size,
    class_states,
    distinct_images,
    funnel,
    histograms,
    overlaps,
    pairwise,
    rejects,
)
from cleanset.report.pages import ReportData, ShownImage, pages
from cleanset.report.plots import plots
from cleanset.report.sheets import kept_images, sheets
from cleanset.report.thumbnails import Thumbnail, before_and_after, thumbnail
from cleanset.review.agreement import differences, overall, pairs, verdict_agreements, verdict_counts, without_board
from cleanset.review.store import Votes, basis_of, read_reviews
from cleanset.selection.fill import Filled
from cleanset.tables import CROP_SCORES, INDEX, REJECTED, SELECTION, SHARED, read_table
from cleanset.validation import shown
from cleanset.vocabulary import BASES, VERDICTS

EXAMPLES_PER_REASON = 12


def run(edition: Edition) -> None:
    """Read what the other stages wrote, and the images; write report/."""
    params = read_params(edition.folder)
    check_roles(edition, params.models)
    index = read_table(edition.index, INDEX)
    report = report_data(edition, params, index)
    read = verified_images(edition, params.dataset.images, index).read
    thumbnails = make_thumbnails(shown_images(report), read)
    written = pages(report, thumbnails)
    for name, text in plots(report.steps, report.states, report.histograms, report.roles).items():
        written[f"plots/{name}"] = text
    with replacing(edition.report) as folder:
        for name, text in written.items():
            write_text(folder / name, text)


def report_data(edition: Edition, params: Params, index: pd.DataFrame) -> ReportData:
    """The numbers, and which images go with them."""
    sets = {
        role: Filled(read_table(edition.selection(role), SELECTION), read_table(edition.rejected(role), REJECTED))
        for role in params.models
    }
    delivered = {
        role: delivered_confidences(filled.selection, read_table(edition.crop_scores(role), CROP_SCORES))
        for role, filled in sets.items()
    }
    votes = read_reviews(edition.reviews)
    classes, per_class = params.dataset.class_list(), params.export.images_per_class
    verdicts = list(without_board(votes).values())
    counts = verdict_counts(verdicts)
    states, overlap = class_states(sets, classes, per_class), overlaps(sets)
    return ReportData(
        roles=tuple(sets),
        images_per_class=per_class,
        readings=tuple(readings(params)),
        steps=tuple(funnel(index, read_table(edition.shared, SHARED), sets, votes)),
        states=tuple(states),
        by_size=by_size(states, sets, per_class),
        histograms=tuple(histograms(sets)),
        distinct_images=distinct_images(sets),
        overlaps=tuple(overlap),
        pairwise=pairwise(overlap, list(sets)),
        rejects=tuple(rejects(sets, EXAMPLES_PER_REASON)),
        totals=totals(edition),
        reviewers=by_reviewer(votes),
        agreement=overall(counts),
        verdicts=verdict_agreements(counts),
        pairs=pairs(verdicts),
        differences=len(differences(votes)),
        kept=kept_images(sets, delivered, firmest_bases(votes)),
        sheets=tuple(sheets(states)),
        bases=by_basis(votes),
    )


def totals(edition: Edition) -> dict[str, dict[str, float]]:
    """The totals that stage count wrote, by name: a number for each model that has one."""
    folder = edition.metrics / "totals"
    if not folder.is_dir():
        raise CleansetError(f"{folder}: missing; run dvc repro")
    return {path.stem: _numbers(path) for path in sorted(folder.glob("*.json"))}


def _numbers(path: Path) -> dict[str, float]:
    text = read_text(path, "run dvc checkout to restore it, or dvc repro")
    numbers = parse_json(text, str(path), "what stage count writes: run dvc repro")
    if not isinstance(numbers, dict) or not all(type(number) in (int, float) for number in numbers.values()):
        raise CleansetError(f"{path}: {shown(numbers)}; expected a number for each model: run dvc repro")
    return numbers


def by_reviewer(votes: Votes) -> dict[str, Counts]:
    """How many verdicts of each kind every reviewer gave."""
    given: Counter[tuple[str, str]] = Counter(
        (name, vote.review.verdict) for by_name in votes.values() for name, vote in by_name.items()
    )
    names = sorted({name for name, _ in given})
    return {name: {verdict: given[name, verdict] for verdict in VERDICTS} for name in names}


def by_basis(votes: Votes) -> dict[str, Counts]:
    """How many verdicts of each basis the reviewers gave who have any that is not explicit."""
    given = Counter((name, basis_of(vote.review)) for by_name in votes.values() for name, vote in by_name.items())
    names = sorted({name for name, basis in given if basis != "explicit"})
    return {name: {basis: given[name, basis] for basis in BASES} for name in names}


def firmest_bases(votes: Votes) -> dict[Key, str]:
    """By class index and image id, the firmest basis that a review of the image has."""
    return {
        key: min((basis_of(vote.review) for vote in by_name.values()), key=BASES.index)
        for key, by_name in votes.items()
    }


def shown_images(report: ReportData) -> list[ShownImage]:
    """Every image that the pages show, once, in the order of the archive."""
    kept = {(image.image_id, image.crop) for images in report.kept.values() for image in images}
    examples = {(image_id, None) for rejects in report.rejects for _, image_id in rejects.examples}
    return sorted(kept | examples, key=lambda image: (image[0], image[1] or ()))


def make_thumbnails(wanted: list[ShownImage], read: Read) -> dict[ShownImage, tuple[Thumbnail, ...]]:
    """The thumbnails of each: one of a whole image, two of a cropped one."""
    # threads suffice: decoding, scaling and encoding release the lock
    with ThreadPoolExecutor(available_cores()) as pool:
        thumbnails: Iterable[tuple[Thumbnail, ...]] = pool.map(lambda image: _thumbnails(image, read), wanted)
        return dict(zip(wanted, tracked(thumbnails, len(wanted), "report"), strict=True))


def _thumbnails(image: ShownImage, read: Read) -> tuple[Thumbnail, ...]:
    image_id, crop = image
    data = read(image_id)
    return (thumbnail(data),) if crop is None else before_and_after(data, crop)
