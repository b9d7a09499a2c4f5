"""Defences that are models: their groups and confidences, and a real model of the sample."""

from pathlib import Path

import numpy as np
import pytest

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.scoring.logits import Groups
from cleanset.studies.contest.files import ModelOfEdition
from cleanset.studies.contest.model_defences import ModelDefence, group_columns
from cleanset.studies.contest.runs import different_answers, run_defence
from tests.studies.contest.made import day
from tests.studies.contest.on_disk import MODEL, OnDisk
from tests.studies.contest.with_images import ready


def test_what_is_read_of_logits() -> None:
    logits = np.zeros((1, 1000))
    logits[0, 444], logits[0, 671], logits[0, 7] = 2, 2, 3
    groups = Groups.of({"bicycle": ["n02835271", "n03792782"], "bird": ["n01514668"]}, imagenet())
    found = group_columns(groups, logits)
    two = 2 + np.log(2)
    assert found["group"].tolist() == [1]
    assert [found["largest_logit"][0], found["second_logit"][0]] == pytest.approx([3, two])
    assert found["log_odds"][0] == pytest.approx(3 - two)


@pytest.mark.slow
def test_a_model_of_the_sample(tmp_path: Path, repository: Path, made: OnDisk) -> None:
    """Below its threshold it abstains; without one it gives what its logits, added up by hand, are for.

    A run with another answer is found when it is computed again.
    """
    from cleanset.edition.params import read_params
    from cleanset.images.codec import decode
    from cleanset.scoring.engine import score_few, settings_for
    from cleanset.scoring.models import load_model

    ready(made)
    (tmp_path / "sample").symlink_to(repository / "sample")
    params = read_params(tmp_path)
    found = score_few(
        load_model(params.model("standard"), tmp_path),
        lambda _: decode(made.image().read_bytes(), ("PNG",)),
        settings_for(params.score), ["x"], read_off=lambda logits, _: {f"logit {n}": logits[:, n] for n in range(1000)},
    )  # fmt: skip
    groups = made.state().rules.groups()
    first, second = (float(found[f"logit {members[0]}"].iloc[0]) for members in groups.classes)
    expected = groups.names[int(second > first)]
    sure = 1 / (1 + np.exp(-abs(second - first)))
    for threshold, answer in ((sure - 1e-6, expected), (sure + 1e-6, "abstain")):
        model = {"role": "standard", "confidence": "softmax", "threshold": float(threshold)}
        defence = ModelDefence(Edition(tmp_path), ModelOfEdition.model_validate(model), groups)
        assert defence({made.sha256: made.image()})[0] == {made.sha256: answer}
    made.changed("defence", model=MODEL | {"threshold": 0.0})
    run = run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    assert run.answers == {made.sha256: expected}
    assert run.eligibility.images == 3
    made.story = [each for each in made.story if each[1] != "run"]
    made.add("2026-11-09T12:00:00Z", "run", made.run_of(run.answers))
    assert different_answers(made.folder, made.state()) == [
        "gold/wall: 1 runs with the answers that were computed again"
    ]
    made.add("2026-11-10T12:00:00Z", "run", made.run_of({made.sha256: "abstain"}))
    with pytest.raises(CleansetError, match=f"run of gold/wall on 2026-11-10: .* is abstain; expected {expected}, as"):
        different_answers(made.folder, made.state())
