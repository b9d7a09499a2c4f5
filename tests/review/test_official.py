"""Reviews that name an image by its id in the official archive, and binding them to SHA-256."""

import re
from pathlib import Path

import pytest

from cleanset.classes import imagenet
from cleanset.dataset.archives import are_official
from cleanset.dataset.ilsvrc import OFFICIAL_IMAGES_MD5
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, images_are_official
from cleanset.errors import CleansetError
from cleanset.review import agreement_report
from cleanset.review import status as review_status
from cleanset.review.bind import bind_reviews, bound_text
from cleanset.review.page.library import open_library
from cleanset.review.page.server import open_session
from cleanset.review.store import read_reviews
from cleanset.stages import crops, review_apply
from cleanset.tables import LOCATIONS
from tests.evaluation.compare.command import cleanset, says
from tests.stages.test_stages import PARAMS, edition_in, put, sha, val

TAR = "data/raw/ILSVRC2012_img_val.tar"
TENCH = "n01440764"


@pytest.mark.parametrize(
    ("images", "digests", "expected"),
    [
        (TAR, {TAR: OFFICIAL_IMAGES_MD5}, True),
        ("/srv/val.tar", {"/srv/val.tar": OFFICIAL_IMAGES_MD5, TAR: "0" * 32}, True),
        (TAR, {TAR: "0" * 32}, False),
        (TAR, {}, False),
        (TAR, {"data/raw/other.tar": OFFICIAL_IMAGES_MD5}, False),
        ("data/raw/val", {TAR: OFFICIAL_IMAGES_MD5}, False),
        ("data/raw/val", {"data/raw/val": OFFICIAL_IMAGES_MD5}, False),
    ],
)
def test_the_official_archive(images: str, digests: dict[str, str], expected: bool) -> None:
    assert are_official(images, digests) is expected


def test_both_projects_digests(repository: Path) -> None:
    """The sample's archive of the same name is another; the ImageNet edition's is the official one."""
    assert not images_are_official(Edition(repository), TAR)
    assert images_are_official(Edition(repository / "imagenet"), TAR)
    published = Edition(repository / "imagenet-published")
    assert images_are_official(published, read_params(published.folder).dataset.images)


def test_a_folder_of_the_archives_name(tmp_path: Path) -> None:
    edition = Edition(tmp_path)
    assert not images_are_official(edition, TAR)  # no raw.md5
    edition.raw_md5.write_text(f"{OFFICIAL_IMAGES_MD5}  {TAR}\n")
    assert images_are_official(edition, TAR)
    (tmp_path / TAR).mkdir(parents=True)
    assert not images_are_official(edition, TAR)


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """The tiny edition of the stages' tests, of the official archive, with two reviews that name only ids."""
    edition = edition_in(tmp_path / "edition")
    edition.params_yaml.write_text(PARAMS.replace("images: data/raw/images", f"images: {TAR}"))
    edition.raw_md5.write_text(f"{OFFICIAL_IMAGES_MD5}  {TAR}\n")
    put(edition.locations, [], LOCATIONS)  # no test here looks at an image
    for number in (1, 4):
        path = edition.reviews / "ann" / f"{TENCH}.yaml"
        path.write_text(path.read_text().replace(repr(sha(number)), "official"))
    return edition


def test_they_count_in_an_edition_of_the_official_archive(edition: Edition) -> None:
    """For every stage and command that reads reviews, with the result that the SHA-256 has."""
    before = review_status.as_json(review_status.run(edition))
    crops.run(edition)
    review_apply.run(edition, "standard")
    selected, rejected = edition.selection("standard").read_bytes(), edition.rejected("standard").read_bytes()
    agreement_report.run_agreement(edition)
    assert open_session(edition, open_library(edition), "ada").statuses[0].broken is None
    assert bind_reviews(edition, None) == 2
    edition.raw_md5.unlink()
    crops.run(edition)
    review_apply.run(edition, "standard")
    assert (selected, rejected) == (
        edition.selection("standard").read_bytes(),
        edition.rejected("standard").read_bytes(),
    )
    assert review_status.as_json(review_status.run(edition)) == before


def test_they_are_refused_anywhere_else(edition: Edition) -> None:
    edition.raw_md5.write_text(f"{'0' * 32}  {TAR}\n")
    expected = (
        f"{TENCH}.yaml, line 2, {val(1)}: sha256 official, but dataset.images is not a tar with the MD5 of the "
        "official archive in raw.md5: run cleanset review bind in an edition of that archive, which writes the SHA-256"
    )
    for run in (
        crops.run,
        lambda edition: review_apply.run(edition, "standard"),
        review_status.run,
        agreement_report.run_agreement,
    ):
        with pytest.raises(CleansetError, match=re.escape(expected)):
            run(edition)
    broken = open_session(edition, open_library(edition), "ada").statuses[0].broken
    assert broken is not None
    assert expected in broken
    before = {path: path.read_bytes() for path in edition.reviews.rglob("*.yaml")}
    code, shown, errors = says(cleanset("review", "bind", cwd=edition.folder))
    assert (code, shown) == (1, "")
    assert errors.startswith(f"error: params.yaml: dataset.images {TAR} is not a tar with the MD5 of the official")
    assert {path: path.read_bytes() for path in edition.reviews.rglob("*.yaml")} == before


def test_bind_from_the_command_line(edition: Edition) -> None:
    path = edition.reviews / "ann" / f"{TENCH}.yaml"
    before = path.read_text()
    code, shown, _ = says(cleanset("review", "bind", "--reviewer", "bob", cwd=edition.folder))
    assert (code, shown) == (0, "0 reviews now have the SHA-256 of their images\n")
    assert path.read_text() == before
    code, shown, _ = says(cleanset("review", "bind", "--reviewer", "ann", cwd=edition.folder))
    assert (code, shown) == (0, "2 reviews now have the SHA-256 of their images\n")
    assert "official" not in path.read_text()
    assert {
        vote["ann"].review.sha256
        for (_, name), vote in read_reviews(edition.reviews, imagenet()).items()
        if name == val(4)
    } == {sha(4)}
    code, _, errors = says(cleanset("review", "bind", "--reviewer", "eve", cwd=edition.folder))
    assert code == 1
    assert errors.startswith("error: reviews/eve: missing; expected the folder of a reviewer")


def test_bind_checks_every_review_before_the_first_file_is_written(edition: Edition) -> None:
    """A review of other bytes in another file: nothing is bound."""
    other = edition.reviews / "bob" / f"{TENCH}.yaml"
    other.write_text(other.read_text().replace(sha(6), "f" * 64))
    before = (edition.reviews / "ann" / f"{TENCH}.yaml").read_bytes()
    with pytest.raises(CleansetError, match="other bytes were reviewed"):
        bind_reviews(edition, "ann")
    assert (edition.reviews / "ann" / f"{TENCH}.yaml").read_bytes() == before


def test_binding_keeps_every_other_byte() -> None:
    text = f"""\
# by hand
{TENCH}:   # the tenches
  {val(1)}:
    verdict: crop
    reason: other     # which?
    crop: unknown
    object_fully_visible: true
    basis: implied
    sha256: official  # to be bound
    note: reason not stated

  # the second
  {val(2)}:
    verdict: clean
    sha256: {"b" * 64}
  {val(3)}:
    verdict: clean
    sha256: official
"""
    digests = dict(zip(map(val, (1, 2, 3)), ("a" * 64, "f" * 64, "c" * 64), strict=True))
    bound, count = bound_text(text, TENCH, digests, "f", classes=imagenet())
    assert count == 2
    assert bound == text.replace("sha256: official  #", f"sha256: {'a' * 64}  #").replace(
        "sha256: official\n", f"sha256: {'c' * 64}\n"
    )
    assert bound_text(bound, TENCH, digests, "f", classes=imagenet()) == (bound, 0)


def test_a_note_on_the_reviews_may_lie_next_to_them(edition: Edition) -> None:
    before = read_reviews(edition.reviews, imagenet())
    (edition.reviews / "README.md").write_text("Whose reviews these are.\n")
    assert read_reviews(edition.reviews, imagenet()) == before
    (edition.reviews / "ann" / "README.md").write_text("not here\n")
    with pytest.raises(CleansetError, match="not of a class of ILSVRC2012"):
        read_reviews(edition.reviews, imagenet())
