"""`cleanset publish` of an edition: one release with the sets of all models and everything that determines them.

Besides the sets it holds the scores, the verdicts with the board's notes, the results of gold items and audits, and the
program `from_verdicts.py`, which recomputes the sets from these. `cleanset verify --from-verdicts` runs the program.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleanset.classes import CLASSES_FILE, ClassTable
from cleanset.edition.params import Params, read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.images.boxes import known_box
from cleanset.plumbing.csv_files import csv_text
from cleanset.plumbing.files import check_regular, is_there, new_folder, sha256
from cleanset.review.audit_files import all_gold_answers, verdicts_folder
from cleanset.review.calibration import calibrations
from cleanset.review.calibration_report import calibration_as_json
from cleanset.review.gold_files import GOLD_KEY
from cleanset.review.guidelines import GUIDELINES
from cleanset.review.store import AUDIT, NOTE_ON_REVIEWS, basis_of, read_votes, reviewer_folders
from cleanset.sets import from_verdicts
from cleanset.sets.archive import SignatureError, signer, unpack
from cleanset.sets.catalogues import deposit_json
from cleanset.sets.description import limits_of, summary_of
from cleanset.sets.folder import CARD, CHECKSUMS, SIGNATURE, check_outside, checksums, read_regular_file, released_texts
from cleanset.sets.publish import Publication, finish, publishable, write_set

PROGRAM = Path(from_verdicts.__file__)
_DECIDING: dict[str, Any] = {
    "dataset": {"label"},
    "models": {"__all__": {"source", "name", "threat_model", "sha256", "beyond_sha256"}},
    "select": True,
    "review": {
        "policy", "min_reviewers", "min_crop_pixels", "box_tolerance", "unreviewed", "wrong_after_crop", "crops",
        "unknown_boxes", "accept",
    },
    "export": {"images_per_class", "version", "date"},
}  # fmt: skip
"""The parameters that selection needs, and the release's version and date."""

_OF_MODELS = """`scores/` and `crop_scores/`,
what each model says of every image and crop; `candidates/`, the images that may be in a class;"""
_OF_RANDOM_ORDERS = """`scores/`,
the numbers that put the images of a class in a random order (no model was used, and `crop_scores/` is empty);
`candidates/`, the images that may be in a class, in that order;"""

_README = """# {name}

The finished sets of an edition ({roles}), {images}, and everything that they follow from: {scores} `reviews/`, every
verdict, those of `board/` with the note on why it overrules; `verdicts.csv`, the same in one table; `gold.json` and
`audit/`, how many known flaws the reviewers found, and what audits of the sets say; `index.parquet`, the digest, size
and labels of every image; `classes.tsv`, the classes; `params.json`, the parameters of selection.

`python from_verdicts.py .` recomputes from scores and verdicts which image is in which set and at which place. It needs
pyarrow and no image, shares no code with what chose the images, and can be read in one sitting.
"""


def run(edition: Edition, out: Path, with_images: bool, key: Path | None) -> Publication:
    """Write the release of an edition into the new folder `out`: a folder, and a tar of it.

    The same edition gives the same bytes. Raises CleansetError for a set that cannot be published, that is of another
    version than params.yaml, or that does not follow from the edition's scores and verdicts.
    """
    params = read_params(edition.folder)
    check_label(edition, params)
    classes = edition.read_classes()
    name = f"cleanset-{params.export.version}"
    wanted = (params.export.version, params.export.date)
    sets = {role: publishable(edition.export(role)) for role in params.models}
    for role, (_, found) in sets.items():
        check_outside(out, edition.export(role))
        if (found.version, found.date) != wanted:
            raise CleansetError(
                f"{edition.export(role)}: version {found.version} of {found.date}; expected {' of '.join(wanted)}, as "
                "in params.yaml: run dvc repro"
            )
    with new_folder(out) as partial:
        folder = partial / name
        for role, (entries, found) in sets.items():
            write_set(folder / "sets" / role, edition.export(role), entries, found, with_images=with_images)
        reviewers = sorted({reviewer for _, each in sets.values() for reviewer in each.reviewers})
        released = replace(found, reviewers=tuple(reviewers))
        summaries = [f"The set of {role}: {summary_of(entries, released.texts)}" for role, (entries, _) in sets.items()]
        limits = {each: None for entries, of_set in sets.values() for each in limits_of(entries, of_set)}
        images = "with their images" if with_images else "without their images, which `cleanset rebuild` makes"
        texts = {
            CARD: _README.format(
                name=name,
                roles=", ".join(sets),
                images=images,
                scores=_OF_RANDOM_ORDERS if all(model.is_random for model in params.models.values()) else _OF_MODELS,
            ),
            **released_texts(
                deposit_json(name, summaries, list(limits), released, with_images=with_images),
                released,
                with_images=with_images,
            ),
            CLASSES_FILE: classes.text,
            "params.json": _params_json(edition, params, classes),
            "verdicts.csv": _verdicts_csv(edition.reviews, params, classes),
            "gold.json": calibration_as_json(calibrations(all_gold_answers(edition.reviews, list(sets), classes)))
            + "\n",
        }
        for file, data in (*_files(edition, params), *((file, text.encode()) for file, text in texts.items())):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(data)
        paths = [path for path in folder.rglob("*") if path.is_file()]
        digests = {path.relative_to(folder).as_posix(): sha256(path.read_bytes()) for path in paths}
        (folder / CHECKSUMS).write_text(checksums(digests), "utf-8")
        if problems := from_verdicts.problems(folder):
            first = problems[0].replace(f"{folder}/", "")
            raise CleansetError(f"{edition.folder}: problems: {len(problems)}, the first: {first}: run dvc repro")
        count = sum(len(entries) for entries, _ in sets.values())
        return finish(folder, out, count, released, with_images=with_images, key=key)


def check_label(edition: Edition, params: Params) -> None:
    """Raise CleansetError where dataset.label is a study, without whose file nobody could recompute the sets."""
    if params.dataset.label_is_study:
        raise CleansetError(
            f"{edition.params_yaml}: dataset.label: {params.dataset.label}; expected real or both: a release of an "
            "edition is recomputed from its own files, and the study's is not passed on; publish its sets one by one"
        )


def _files(edition: Edition, params: Params) -> Iterator[tuple[str, bytes]]:
    """Name and content of the edition's files that go into its release unchanged."""
    reviews = edition.reviews
    paths = {"index.parquet": edition.index, PROGRAM.name: PROGRAM}
    for of_role in (edition.scores, edition.scored_with, edition.crop_scores, edition.candidates, edition.audit):
        paths |= {"/".join(of_role(role).parts[-2:]): of_role(role) for role in params.models}
    found = [path for folder in reviewer_folders(reviews) for path in folder.glob("[!.]*.yaml")]
    found += [path for path in (reviews / AUDIT).rglob("[!.]*") if path.suffix in (".yaml", ".csv")]
    found += [reviews / name for name in (GOLD_KEY, GUIDELINES, NOTE_ON_REVIEWS) if is_there(reviews / name)]
    paths |= {f"reviews/{path.relative_to(reviews).as_posix()}": path for path in found}
    for name, path in paths.items():
        yield name, read_regular_file(path)


def _params_json(edition: Edition, params: Params, classes: ClassTable) -> str:
    """The parameters that selection needs as JSON, those that params.yaml leaves out among them."""
    found = params.model_dump(mode="json", include=_DECIDING)
    found["dataset"]["classes"] = [classes.keys[index] for index in params.dataset.class_list(classes)]
    found["official_images"] = images_are_official(edition, params.dataset.images)
    return json.dumps(found, indent=2) + "\n"


def _verdicts_csv(reviews: Path, params: Params, classes: ClassTable) -> str:
    """Every verdict of reviewers and auditors as CSV, answers to gold items among them."""
    folders = {"": reviews} | {f"{AUDIT}/{role}/": verdicts_folder(reviews, role) for role in params.models}
    rows = [
        (
            f"{prefix}{name}/{classes.keys[index]}.yaml", image_id, vote.review.verdict.kind, vote.review.reason,
            " ".join(map(str, known_box(vote.review.box) or ())), basis_of(vote.review), vote.review.sha256,
        )
        for prefix, folder in folders.items()
        for (index, image_id), by_name in (read_votes(folder, classes) if is_there(folder) else {}).items()
        for name, vote in by_name.items()
    ]  # fmt: skip
    return csv_text(("file", "image_id", "verdict", "reason", "box", "basis", "sha256"), sorted(rows))


def verify(path: Path, signers: Path | None) -> list[str]:
    """A line for each problem of a release, a folder or its tar: contents that do not follow, and a bad signature.

    With `signers`, a public key or allowed signers, it must be signed by one of them.
    """
    with ExitStack() as stack:
        folder, same_bytes = stack.enter_context(unpack(path)) if path.suffix == ".tar" else (path, True)
        for each in folder.rglob("*"):
            # the program, which has to be self-contained, would wait for a pipe
            if not each.is_dir() or each.is_symlink():
                check_regular(each)
        found = [problem.replace(f"{folder}/", "") for problem in from_verdicts.problems(folder)]
        if not same_bytes:
            found.append(f"{path.name}: other bytes than publish gives for its files")
        try:
            if signers is not None:
                signer(read_regular_file(folder / CHECKSUMS), read_regular_file(folder / SIGNATURE), signers)
        except (SignatureError, FileNotFoundError) as error:
            found.append(f"{SIGNATURE}: {error}; expected a signature of {CHECKSUMS} by a key in {signers}")
    return found
