"""Stage report: candidates, sets and reviews as pages that open without a server or a network."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import PIL
from pydantic import StrictFloat, StrictInt

from cleanset.classes import ClassTable
from cleanset.dataset.archives import VerifiedImages
from cleanset.edition.lists import unknown_confidences
from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.edition.pipeline import check_roles
from cleanset.edition.readings import readings
from cleanset.errors import CleansetError
from cleanset.plumbing.cache import PACKAGE
from cleanset.plumbing.folder_updates import FolderUpdate, updating
from cleanset.plumbing.json_files import read_json
from cleanset.plumbing.kept_files import KeptFiles, kept_files
from cleanset.plumbing.machine import keep_freed_memory
from cleanset.plumbing.progress import found_in_threads
from cleanset.plumbing.waiting import announced
from cleanset.report import figures
from cleanset.report.fates import candidates_by_class, hardest_classes, images_rejected_by_all
from cleanset.report.pages import Page, PageImages, ReportData, ShownImage, pages, sheets
from cleanset.report.thumbnails import (
    PageImage,
    file_names,
    kept_thumbnails,
    page_image,
    thumbnail_source,
    usual_thumbnail_files,
)
from cleanset.review.agreement import (
    differences,
    overall,
    pairs,
    verdict_agreements,
    verdict_counts,
    without_board,
)
from cleanset.review.store import Votes, basis_of, read_reviews
from cleanset.review.verdicts import Review
from cleanset.selection.fill import Filled
from cleanset.selection.selected import selected_images
from cleanset.sets.delivered import delivered_confidences, with_known_confidences
from cleanset.sets.description import limits
from cleanset.tables import CROP_SCORES, INDEX, REJECTED, SELECTION, SHARED, read_table
from cleanset.vocabulary import BASES, VERDICTS

EXAMPLES_PER_REASON = 1000
"""Rejected images on one page; the pages of their classes show them all."""

HARDEST_CLASSES = 10
REPORT_IMAGES = "images"


def run(edition: Edition) -> None:
    """Read the other stages' outputs and the images; write report/."""
    params = read_params(edition.folder)
    check_roles(edition, params.models)
    classes = edition.read_classes()
    index = read_table(edition.index, INDEX, classes)
    report = report_data(edition, params, index, classes)
    verified = verified_images(edition, params.dataset.images, index, classes)
    with updating(edition.report, usual_report_notes()) as update:
        images = save_images(shown_images(report), verified, update, enlarged=not classes.is_imagenet)
        with announced("writing the pages of the report"):
            for name, page in pages(report, images).items():
                save_page(page, name, update)
            plots = figures.plots(report.steps, report.states, report.histograms, roles=report.roles, classes=classes)
            for name, text in plots.items():
                update.write_text(f"plots/{name}", text)


@announced("collecting the numbers of the report")
def report_data(edition: Edition, params: Params, index: pd.DataFrame, table: ClassTable) -> ReportData:
    """The numbers, and which images go with them."""
    unknown = unknown_confidences(edition.folder, params)
    sets = {
        role: Filled(
            with_known_confidences(read_table(edition.selection(role), SELECTION, table), unknown[role]),
            with_known_confidences(read_table(edition.rejected(role), REJECTED, table), unknown[role]),
        )
        for role in params.models
    }
    delivered = {
        role: delivered_confidences(
            selected_images(filled.selection),
            None if params.models[role].is_list else read_table(path, CROP_SCORES, table),
            str(path),
        )
        for role, filled in sets.items()
        for path in [edition.crop_scores(role)]
    }
    votes = read_reviews(edition.reviews, table)
    classes = params.dataset.class_list(table)
    per_class = params.export.images_per_class
    verdicts = list(without_board(votes).values())
    counts = verdict_counts(verdicts)
    by_basis = by_reviewer(votes, BASES, basis_of)
    states = figures.class_states(sets, classes, per_class)
    overlap = figures.overlaps(sets)
    candidates = candidates_by_class(sets, delivered, votes)
    is_scored = any(not model.is_random for model in params.models.values())
    shared = read_table(edition.shared, SHARED, table) if is_scored and params.select.pool == "ensemble" else None
    notices = (*limits(table, images=len(index)), *limits(table, unreviewed=params.review.unreviewed == "clean"))
    return ReportData(
        classes=table,
        roles=tuple(sets),
        networks={role: network(model) for role, model in params.models.items()},
        notices=notices,
        images_per_class=per_class,
        candidates_of={role: len(filled.selection) + len(filled.rejected) for role, filled in sets.items()},
        readings=tuple(readings(params)),
        steps=tuple(figures.funnel(index, shared, sets, votes)),
        states=tuple(states),
        by_size=figures.by_size(states, sets, per_class),
        histograms=tuple(figures.histograms(sets)),
        distinct_images=figures.distinct_images(sets),
        overlaps=tuple(overlap),
        pairwise=figures.pairwise(overlap, list(sets)),
        rejects=tuple(figures.rejects(sets, EXAMPLES_PER_REASON)),
        rejected=len(images_rejected_by_all(candidates)),
        reviewed=len({image_id for _, image_id in votes}),
        hardest=tuple(hardest_classes(states, candidates, HARDEST_CLASSES)),
        totals=totals(edition),
        reviewers=by_reviewer(votes, VERDICTS, lambda review: review.verdict.kind),
        agreement=overall(counts),
        verdicts=verdict_agreements(counts),
        pairs=pairs(verdicts),
        differences=len(differences(votes)),
        candidates=candidates,
        is_scored=is_scored,
        has_networks=not all(model.is_list for model in params.models.values()),
        sheets=tuple(sheets(states)),
        # those with any verdict that is not explicit
        bases={name: given for name, given in by_basis.items() if sum(given.values()) > given["explicit"]},
    )


def network(model: Model) -> str:
    """The network of a model: its source and its name there; or the source of scores without one."""
    if model.is_list:
        names = {"lists": f"published list of {model.name}", "scores": f"table of scores of {model.name}"}
        return names.get(model.source, "none: a random order")
    if model.source == "robustbench":
        return f"RobustBench {model.threat_model}/{model.name}"
    return f"{model.source} {model.name}" + (" (own weights)" if model.weights else "")


def totals(edition: Edition) -> dict[str, dict[str, float]]:
    """The totals that stage count wrote, by name: a number for each model that has one."""
    folder = edition.metrics / "totals"
    if not folder.is_dir():
        raise CleansetError(f"{folder}: missing; run dvc repro")
    kind = dict[str, StrictInt | StrictFloat]
    what = "a number for each model"
    return {path.stem: read_json(path, kind, what, "run dvc repro") for path in sorted(folder.glob("*.json"))}


def by_reviewer(
    votes: Votes, kinds: Iterable[str], kind_of: Callable[[Review], str]
) -> dict[str, figures.CountsByName]:
    """Number of verdicts of each kind, by reviewer."""
    given = Counter((name, kind_of(vote.review)) for by_name in votes.values() for name, vote in by_name.items())
    names = sorted({name for name, _ in given})
    return {name: {kind: given[name, kind] for kind in kinds} for name in names}


def shown_images(report: ReportData) -> list[ShownImage]:
    """Every image that the pages show, once, in the order of the archive."""
    shown = {
        (each.image_id, each.crop)
        for candidates in report.candidates.values()
        for each in candidates
        if not each.is_left_over
    }
    return sorted(shown, key=lambda image: (image[0], image[1] or ()))


def save_images(
    wanted: list[ShownImage], verified: VerifiedImages, update: FolderUpdate, *, enlarged: bool
) -> PageImages:
    """Write the thumbnails of each image below the folder of the report: one of a whole image, two of a cropped one.

    `enlarged`: images smaller than a thumbnail are, by a whole factor. An image is read only if one of its thumbnails
    is not in the cache, and a thumbnail only if it was changed in the report since it was written.
    """
    keep_freed_memory()  # a fifth of the time, where many images of one size are decoded
    noted = partial(_noted, verified, update, enlarged=enlarged)
    save = partial(_saved, verified, update, usual_thumbnail_files(), enlarged=enlarged)
    return dict(zip(wanted, found_in_threads(save, wanted, "report", noted), strict=True))


def _noted(
    verified: VerifiedImages, update: FolderUpdate, image: ShownImage, *, enlarged: bool
) -> tuple[PageImage, ...] | None:
    """The thumbnails that are in the report, by their notes; None if one of them has to be written."""
    source = thumbnail_source(verified.digest(image[0]), image[1], enlarged=enlarged)
    notes = {name: update.note(name) for name in _thumbnail_files(image)}
    if any(note.partition(" ")[0] != source for note in notes.values()):
        return None
    for name, note in notes.items():
        update.keep(name, note)
    return tuple(page_image(name, *map(int, note.split()[1:])) for name, note in notes.items())


def _thumbnail_files(image: ShownImage) -> list[str]:
    # an image id may have folders
    return [f"{REPORT_IMAGES}/{name}" for name in file_names(*image)]


def _saved(
    verified: VerifiedImages, update: FolderUpdate, kept: KeptFiles, image: ShownImage, *, enlarged: bool
) -> tuple[PageImage, ...]:
    image_id, crop = image
    digest = verified.digest(image_id)
    made = kept_thumbnails(kept, digest, partial(verified.read, image_id), crop, enlarged=enlarged)
    source = thumbnail_source(digest, crop, enlarged=enlarged)
    names = _thumbnail_files(image)
    for name, each in zip(names, made, strict=True):
        update.write(name, each.jpeg, f"{source} {each.width} {each.height}")
    return tuple(page_image(name, each.width, each.height) for name, each in zip(names, made, strict=True))


def usual_report_notes(package: Path = PACKAGE) -> KeptFiles:
    """The notes on the files of reports, by which pages and thumbnails are known: one verdict changes few of them.

    Their folder is named after all code and templates of the package, since most of it may appear on a page.
    """
    files = sorted(path for pattern in ("*.py", "*/templates/*") for path in package.rglob(pattern) if path.is_file())
    libraries = f"{PIL.__version__} {version('jinja2')} {version('markupsafe')}"
    return kept_files("reports", [path.relative_to(package).as_posix() for path in files], libraries, package)


def save_page(page: Page, name: str, update: FolderUpdate) -> None:
    """Draw a page, unless it is in the report and made from the same."""
    if page.made_from and update.note(name) == page.made_from:
        update.keep(name, page.made_from)
    else:
        update.write_text(name, page.draw(), page.made_from)
