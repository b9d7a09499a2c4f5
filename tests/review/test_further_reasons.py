"""Further reasons to reject an image, by `review.reasons` in params.yaml: the example of docs/extending.md."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.review.audit_files import read_plan
from cleanset.review.file_format import parse_review
from cleanset.review.guidelines import usual_guidelines
from cleanset.review.reasons import REASON_ENTRIES, with_further
from cleanset.tables import INDEX, REJECTED, read_table
from tests.documents import blocks
from tests.evaluation.compare.command import cleanset, says
from tests.own_edition import change_params, make, review, run
from tests.review.texts import save

FLARE = {"verdict": "reject", "reason": "lens_flare"}
PEARS = "ripe pears"


def example(repository: Path) -> dict[str, Any]:
    """The section of params.yaml in the docs."""
    *_, text = blocks(repository, "yaml", "docs/extending.md")
    found: dict[str, Any] = yaml.safe_load(text)["review"]
    return found


def counted(edition: Edition) -> object:
    """The metric of the example, by model."""
    return json.loads((edition.metrics / "totals" / "rejected_lens_flare.json").read_text())


@pytest.fixture
def edition(tmp_path: Path) -> Edition:
    """An edition in which one image is rejected for a lens flare."""
    edition = make(tmp_path)
    review(edition, "ada", {f"{PEARS}/000.png": FLARE})
    return edition


@pytest.mark.slow
def test_it_decides_and_is_counted(edition: Edition, repository: Path) -> None:
    change_params(edition, review=example(repository))
    run(edition, "crops", "score_crops", "review_apply", "export", "count")
    (role,) = read_params(edition.folder).models
    rejected = read_table(edition.rejected(role), REJECTED, edition.read_classes())
    assert rejected.set_index("image_id").at[f"{PEARS}/000.png", "reason"] == "lens_flare"
    assert counted(edition) == {role: 1}
    card = (edition.export(role) / "README.md").read_text()
    assert "lens_flare" in card
    # whoever has the set alone
    code, *said = says(cleanset("verify", str(edition.export(role)), cwd=edition.folder.parent))
    assert code == 0, said


@pytest.mark.slow
def test_a_reason_that_nobody_uses_is_counted_too(edition: Edition, repository: Path) -> None:
    change_params(edition, review=example(repository))
    review(edition, "ada")
    run(edition, "crops", "score_crops", "review_apply", "export", "count")
    (role,) = read_params(edition.folder).models
    assert counted(edition) == {role: 0}


@pytest.mark.slow
def test_an_unknown_reason_is_refused_before_it_decides(edition: Edition) -> None:
    run(edition, "crops", "score_crops")
    with pytest.raises(
        CleansetError,
        match=r"ripe pears\.yaml, line \d+, .*: reason 'lens_flare'; expected one of watermark, .*, other: correct it, "
        r"or add it to review\.reasons in params\.yaml",
    ):
        run(edition, "review_apply")


@pytest.mark.slow
def test_an_unknown_reason_of_an_auditor_is_refused(edition: Edition) -> None:
    review(edition, "ada")
    run(edition, "crops", "score_crops", "review_apply", "export", "count")
    (role,) = read_params(edition.folder).models
    code, *said = says(cleanset("review", "audit", "3", cwd=edition.folder))
    assert code == 0, said
    classes = edition.read_classes()
    plan = read_plan(edition.reviews, role, classes)
    assert plan is not None
    drawn = plan.images[0]
    index = read_table(edition.index, INDEX, classes).set_index("image_id")
    verdict = parse_review(FLARE | {"sha256": index.at[drawn.image_id, "sha256"]}, "here")
    folder = edition.reviews / "audit" / role
    save(folder, "cy", classes.keys[drawn.class_index], drawn.image_id, verdict, classes=classes)
    with pytest.raises(CleansetError, match=r"cy/.*: reason 'lens_flare'; expected one of watermark"):
        run(edition, "review_apply")


@pytest.mark.parametrize(
    ("reasons", "problem"),
    [
        ({"blur": {"key": "e", "rule": "Blurred."}}, "review.reasons: expected new names of small letters"),
        ({"unreviewed": {"key": "e", "rule": "."}}, "review.reasons: expected new names of small letters"),
        ({"Lens flare": {"key": "e", "rule": "."}}, "review.reasons: expected new names of small letters"),
        ({"lens_flare": {"key": "w", "rule": "."}}, "review.reasons.lens_flare.key: expected one of c, e, r, u"),
        ({"lens_flare": {"key": "e"}}, "missing key review.reasons.lens_flare.rule"),
        (
            {"lens_flare": {"key": "e", "rule": "."}, "rain": {"key": "e", "rule": "."}},
            "review.reasons: expected a key of its own for each reason",
        ),
    ],
)
def test_what_is_no_reason(tmp_path: Path, repository: Path, reasons: dict[str, Any], problem: str) -> None:
    params = yaml.safe_load((repository / "params.yaml").read_text())
    params["review"]["reasons"] = reasons
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    with pytest.raises(CleansetError, match=problem):
        read_params(tmp_path)


def test_the_guidelines_have_its_rule(repository: Path, tmp_path: Path) -> None:
    params = yaml.safe_load((repository / "params.yaml").read_text())
    params["review"] |= example(repository)
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    reasons = with_further(read_params(tmp_path).review.reasons)
    assert list(reasons) == [*REASON_ENTRIES, "lens_flare"]
    assert usual_guidelines(reasons).endswith(
        "\n## lens flare\nSpots or streaks of a lamp or the sun in the lens. Usually a crop.\n"
    )
