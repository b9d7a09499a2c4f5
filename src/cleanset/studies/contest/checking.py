"""`cleanset contest check`: a submission, a defence, or everything, on the disk and against the other files."""

import datetime
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path

from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError, install_command
from cleanset.files import sha256
from cleanset.images.codec import pixels_sha256
from cleanset.studies.contest.consistency import check_submissions
from cleanset.studies.contest.defending import clean_images, unpublished_yaml
from cleanset.studies.contest.files import (
    ContestFiles,
    Submission,
    SubmissionManifest,
    SubmittedImage,
    counted,
    dated,
    last_day,
    repeats,
    submitted_images,
)
from cleanset.studies.contest.history import (
    History,
    check_history,
    check_log,
    check_submission_unchanged,
    first_commits,
    open_history,
)
from cleanset.studies.contest.images import KnownImage, can_hash, copied, decode_submitted, known_images, lookalikes
from cleanset.studies.contest.judges import JudgeRecords
from cleanset.studies.contest.judging import points_outside
from cleanset.studies.contest.reading import (
    DEFENCE_YAML,
    IMAGES,
    MANIFEST_YAML,
    MASKS,
    check_defence,
    check_groups,
    image_path,
    image_paths,
    own_digests,
    read_checked_examples,
    read_contest,
    refuse_link,
    visible,
)
from cleanset.studies.contest.rules import ContestRules
from cleanset.studies.contest.standing import standing
from cleanset.validation import validate


def run(contest: Path, path: Path | None, on: datetime.date | None) -> str:
    """Check, and return a line on what was checked. Raises CleansetError for the first problem."""
    files = read_contest(contest)
    if path is None:
        with open_history(contest) as history:
            return "\n".join(_check_all(contest, files, history, on))
    path = path.resolve()
    name = f"{path.parent.name}/{path.name}"
    if (path / DEFENCE_YAML).is_file() and name in files.defences and path == (contest / "defences" / name).resolve():
        check_defence(contest / "defences" / name, files.defences[name])
        return f"{name}: {len(files.defences[name].files)} files as named"
    for submission in files.submissions:
        if path == (contest / str(submission)).resolve():
            check_submissions(files)
            for repeat in repeats(files.submissions):
                if repeat.submission == submission:
                    raise CleansetError(f"{repeat}; expected a new image")
            with open_history(contest) as history:
                lines = _check_images(contest, [submission], files, history, on)
            return "\n".join([f"{submission}: {len(submission.manifest.images)} images", *lines])
    if all((path / group).is_dir() for group in files.rules.classes):
        return unpublished_yaml(files.rules, path)
    raise CleansetError(
        f"{path}: neither a submission nor a defence of this contest, nor an unpublished list; expected a folder with "
        f"{MANIFEST_YAML}, {DEFENCE_YAML}, or a folder for each of the two groups"
    )


def _check_all(contest: Path, files: ContestFiles, history: History, on: datetime.date | None) -> list[str]:
    submissions = sorted(files.submissions, key=str)
    for submission in submissions:
        _check_date(submission, on)
    for where, date in sorted(dated(files)):
        if on is not None and date > on:
            raise CleansetError(f"{where}: dated {date}; expected no day after {on}")
    if files.defences or files.submissions:
        # computing the standing checks the files against each other
        standing(files, last_day(files))
    signed = check_history(contest, files, history, on)
    _check_judges(files)
    check_log(contest, files)
    check_judges_folder(contest, files)
    for name in sorted(files.defences):
        check_defence(contest / "defences" / name, files.defences[name])
    images = sum(len(each.manifest.images) for each in submissions)
    summary = f"{len(files.defences)} defences, {len(submissions)} submissions with {images} images"
    left = [f"left out: {each}" for each in repeats(submissions)]
    return [summary, *signed, *left, *_check_images(contest, submissions, files, history, on)]


def _check_images(
    contest: Path, submissions: Sequence[Submission], files: ContestFiles, history: History, on: datetime.date | None
) -> list[str]:
    """The lines for the board on images of submissions, and one where git knows nothing of the contest."""
    lines = []
    is_unknown = files.rules.history == "git" and not history.is_committed
    if submissions:
        clean = clean_pixels(Edition(contest / ".." / ".."))
        known = _Known(contest, files, {} if files.rules.history == "made_up" else first_commits(history))
        for submission in submissions:
            _check_date(submission, on)
            check_submission(contest / str(submission), submission, files.rules, clean, known.before(submission))
            if files.rules.history == "git":
                history.require_whole()
                check_submission_unchanged(contest, history, submission, on or last_day(files))
        lines = _lookalikes(contest, submissions, known)
    if is_unknown and files.defences:
        lines.append("git has no commit of this contest: what may have changed after its day was not looked for")
    return lines


class _Known:
    """The images that may not be submitted as copies: clean ones, the judges' own, and those of earlier weeks.

    `committed`: by the path of a file, when it was first committed, where git knows it. What was committed later than
    an image cannot be what this is a copy of, whatever date it bears.
    """

    def __init__(self, contest: Path, files: ContestFiles, committed: Mapping[str, datetime.datetime]) -> None:
        self._contest, self._submissions, self._committed = contest, files.submissions, committed
        clean = clean_images(Edition(contest / ".." / ".."))
        self._clean = known_images({f"clean image {path.parent.name}/{path.name}": path for path, _ in clean})
        self._own = known_images({f"the judges' {path.name}": path for path in visible(contest / "judges" / IMAGES)})
        self._of_week = cache(self._images_of_week)

    def before(self, submission: Submission) -> list[KnownImage]:
        """The images that are known on the day of a submission."""
        weeks = sorted({each.week for each in self._submissions if each.week < submission.day})
        first = self._committed.get(f"{submission}/{MANIFEST_YAML}")
        added = [self._committed.get(f"judges/{IMAGES}/{each.path.name}") for each in self._own]
        own = [each for each, at in zip(self._own, added, strict=True) if not first or not at or at <= first]
        return [*self._clean, *own, *(one for week in weeks for one in self._of_week(week))]

    def beside(self, submission: Submission) -> list[KnownImage]:
        """The images of other teams that were submitted earlier in the same week."""
        others = [
            f"{each}/"
            for each in self._submissions
            if each.week == submission.week and each.team != submission.team and self._at(each) <= self._at(submission)
        ]
        return [one for one in self._of_week(submission.week) if one.name.startswith(tuple(others))] if others else []

    def _at(self, submission: Submission) -> tuple[datetime.datetime, datetime.datetime]:
        # the time in a manifest is what its team says, the first commit is what others saw
        never = datetime.datetime.max.replace(tzinfo=datetime.UTC)
        submitted = submission.manifest.submitted
        return self._committed.get(f"{submission}/{MANIFEST_YAML}", never), submitted

    def _images_of_week(self, week: datetime.date) -> list[KnownImage]:
        submissions = [each for each in counted(self._submissions) if each.week == week]
        paths = {
            f"{each}/{image.file}": image_path(self._contest, each, image)
            for each, image in submitted_images(submissions)
        }
        return known_images(paths)


def _lookalikes(contest: Path, submissions: Sequence[Submission], known: _Known) -> list[str]:
    """A line for the board on each image that looks like a known one."""
    if not can_hash():
        return [f"images that look alike are not looked for without PDQ: {install_command('review')}"]
    found = []
    for each in submissions:
        for image in each.manifest.images:
            others = [*known.before(each), *known.beside(each)]
            near = lookalikes(image_path(contest, each, image), others)[:1]
            found += [f"for the board: {each}/{image.file} looks like {one}, PDQ distance {bits}" for bits, one in near]
    return found


def _check_date(submission: Submission, on: datetime.date | None) -> None:
    if on is not None and submission.day > on:
        raise CleansetError(f"{submission}: submitted on {submission.day}; expected no day after {on}")


def _check_judges(files: ContestFiles) -> None:
    """Raise CleansetError for an image with some answers, but fewer judges than the rules ask for."""
    records, minimum = JudgeRecords(files), files.rules.judges.minimum
    count = Counter(digest for each in files.answers for digest, _ in records.counted(each.judge, each.answers))
    # control images are shown to some judges only, by the share that the rules ask for
    for digest in sorted({digest for each in files.answers for digest in each.answers} - files.controls.keys()):
        if count[digest] < minimum:
            raise CleansetError(
                f"answers: {digest[:12]}…: {count[digest]} judges; expected at least {minimum}: ask another"
            )


MAX_IMAGE_BYTES = 100_000_000


def clean_pixels(edition: Edition) -> frozenset[str]:
    """The SHA-256 of the pixels of every image in the edition's finished sets. Raises CleansetError without a set."""
    found = frozenset(entry.pixels_sha256 for _, entry in clean_images(edition))
    if not found:
        raise CleansetError(
            f"{edition.folder / 'data' / 'export'}: no finished set to compare submitted images with; "
            "run dvc pull or dvc repro in the edition"
        )
    return found


def check_submission(
    folder: Path, submission: Submission, rules: ContestRules, clean: Collection[str], known: Sequence[KnownImage]
) -> None:
    """Check a submission's folder: all images of the manifest and no others, decodable, and new.

    `clean`: digests of the clean set's pixels. `known`: images whose copies are refused. Raises CleansetError for the
    first problem.
    """
    named = {image.file for image in submission.manifest.images}
    if len(named) < len(submission.manifest.images):
        raise CleansetError(f"{folder / MANIFEST_YAML}: a file named twice; expected each image once")
    for path in visible(folder):
        if path.name not in (MANIFEST_YAML, IMAGES, f"{IMAGES}.dvc"):
            raise CleansetError(f"{path}: not in the manifest; expected {MANIFEST_YAML} and {IMAGES}/ only: remove it")
    for path in visible(folder / IMAGES):
        if path.name not in named:
            raise CleansetError(f"{path}: not in the manifest; expected the images that it names only: remove it")
    for image in submission.manifest.images:
        _check_image(folder / IMAGES / image.file, image, rules.limits.max_side, clean)
        copy = copied(folder / IMAGES / image.file, known)
        if copy is not None:
            raise CleansetError(f"{folder / IMAGES / image.file}: a copy of {copy}; expected a new image")


def _check_image(path: Path, image: SubmittedImage, max_side: int, clean: Collection[str]) -> None:
    refuse_link(path)
    if not path.is_file():
        raise CleansetError(f"{path}: missing; expected every image that the manifest names: add it, or dvc pull")
    if path.stat().st_size > MAX_IMAGE_BYTES:
        raise CleansetError(f"{path}: {path.stat().st_size:,} bytes; expected at most {MAX_IMAGE_BYTES:,}")
    data = path.read_bytes()
    if sha256(data) != image.sha256:
        raise CleansetError(f"{path}: SHA-256 {sha256(data)}; expected {image.sha256} of the manifest")
    found = decode_submitted(path, data)
    if max(found.size) > max_side:
        raise CleansetError(f"{path}: {found.width} x {found.height} pixels; expected at most {max_side} a side")
    if found.size != (image.width, image.height):
        raise CleansetError(
            f"{path}: {found.width} x {found.height} pixels; expected {image.width} x {image.height} of the manifest"
        )
    digest = pixels_sha256(found)
    if digest != image.pixels_sha256:
        raise CleansetError(f"{path}: pixels_sha256 {digest}; expected {image.pixels_sha256} of the manifest")
    # by pixels: an image of the clean set that was only saved again is not a new one
    if digest in clean:
        raise CleansetError(f"{path}: an image of the clean set; expected another: only new images are submitted")


def manifest_entry(path: Path) -> dict[str, str | int]:
    """The entry of an image in a manifest. Raises CleansetError for an image that cannot be submitted."""
    data = path.read_bytes()
    found = decode_submitted(path, data)
    digests = {"sha256": sha256(data), "pixels_sha256": pixels_sha256(found)}
    return {"file": path.name, **digests, "width": found.width, "height": found.height}


def manifest_yaml(target: str, submitted: str, images: Sequence[Path]) -> str:
    """The manifest of a submission as YAML. Raises CleansetError for images that no contest accepts."""
    for path in images:
        if not path.is_file():
            raise CleansetError(f"{path}: no such file; expected a PNG or JPEG")
    entries = [manifest_entry(path) for path in images]
    validate(SubmissionManifest, {"submitted": submitted, "target": target, "images": entries}, "manifest")
    lines = [f'submitted: "{submitted}"', f"target: {target}", "images:"]
    for entry in entries:
        # text in quotes, since a digest may look like a number
        first, *others = (f"{key}: {json.dumps(value)}" for key, value in entry.items())
        lines += [f"  - {first}", *(f"    {each}" for each in others)]
    return "\n".join(lines) + "\n"


def check_judges_folder(contest: Path, files: ContestFiles) -> None:
    """Check that controls and examples answer for both groups, and that their images exist and masks fit.

    Outlines of examples and in answers to controls must be inside their images.

    Raises CleansetError for the first problem.
    """
    folder = contest / "judges"
    for digest, control in sorted(files.controls.items()):
        check_groups(f"{folder / 'controls.yaml'}: {digest[:12]}…", control.contains, files.rules.classes)
    examples = read_checked_examples(contest, files)
    wanted = files.controls.keys() | examples.keys()
    digests = own_digests(contest)
    paths = image_paths(contest, files, wanted, digests)
    sizes = {digest: decode_submitted(paths[digest], paths[digest].read_bytes()).size for digest in sorted(wanted)}
    given = [(f"{each}: ", *entry) for each in files.answers for entry in each.answers.items()]
    for where, digest, answer in [*given, *((f"{folder / 'examples.yaml'}: ", *entry) for entry in examples.items())]:
        if digest in sizes and answer.outline is not None:
            for problem in points_outside(answer.outline, *sizes[digest]):
                raise CleansetError(f"{where}{digest[:12]}…: {problem}")
    for path in visible(folder / IMAGES):
        if digests.get(path) not in wanted:
            raise CleansetError(
                f"{path}: neither a control nor an example; expected a line in controls.yaml or examples.yaml"
            )
    for path in visible(folder / MASKS):
        # that those of controls have the size of their images was seen when they were read
        if path.suffix != ".png" or path.stem not in files.controls:
            raise CleansetError(
                f"{path}: a mask without a control; expected <SHA-256 of a control's image>.png: remove it"
            )
