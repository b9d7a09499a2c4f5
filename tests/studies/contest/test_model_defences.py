"""Defences that are models: their groups and confidences, and a real model of the sample."""

from pathlib import Path

import numpy as np
import pytest

from cleanset.classes import imagenet
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import NAMED, ResizeAndCrop
from cleanset.scoring.logits import Groups
from cleanset.studies.contest.drafts import draft_of
from cleanset.studies.contest.entries import ModelOfEdition
from cleanset.studies.contest.model_defences import ModelDefence, group_columns, pixels_seen
from cleanset.studies.contest.runs import recomputed, run_defence
from cleanset.studies.contest.standing import standing
from tests.studies.contest.made import day
from tests.studies.contest.on_disk import MODEL, OnDisk, png
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


def test_a_model_is_given_images_as_they_lie_there() -> None:
    """All of its time counts: only a command is given images that are made for it."""
    assert ModelDefence.preparation_seconds == 0


@pytest.mark.long
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
        given, confidence = defence({made.sha256: made.image()})
        assert given == {made.sha256: answer}
    # the threshold that `contest threshold` finds is the confidence of the last image that is answered
    model = {"role": "standard", "confidence": "softmax", "threshold": confidence[made.sha256]}
    defence = ModelDefence(Edition(tmp_path), ModelOfEdition.model_validate(model), groups)
    assert defence({made.sha256: made.image()})[0] == {made.sha256: expected}
    made.changed("defence", model=MODEL | {"threshold": 0.0, "pixels": 182, "crop": 160})
    run = run_defence(made.folder, made.state(), "gold/wall", day("2026-11-09"))
    assert run.answers == {made.sha256: expected}
    assert run.eligibility.images == 3
    made.story = [each for each in made.story if each[1] != "run"]
    content = run.model_dump(mode="json", exclude_none=True, exclude={"date"})
    made.add("2026-11-09T12:00:00Z", "run", content)
    assert recomputed(made.folder, made.state()) == [
        "gold/wall: 1 run with the answers and figures that were computed again"
    ]
    figures = content["eligibility"]
    for changed, message in (
        (
            {"answers": {made.sha256: "abstain"}},
            f": [0-9a-f]{{12}}… is abstain; expected {expected}, as computed",
        ),
        ({"eligibility": figures | {"correct": 1, "mistakes": 2}, "coverage": None}, ": eligibility is .*; expected"),
        ({"eligibility": figures | {"images": 1_000_000}, "coverage": None}, ": eligibility is .*'images': 1000000"),
        ({"coverage": [[figures["correct"] + figures["mistakes"], figures["mistakes"]]]}, ": coverage is .*; expected"),
        ({"signs": [{"sign": "invented", "text": "random answers"}]}, r": signs is \['invented'\]; expected"),
        ({"model": "0" * 64}, ": model is 0{64}; expected [0-9a-f]{64}, as computed: void the run"),
        ({"images_per_minute": 0.01}, ": 0.01 images a minute; expected at least 1, since this machine answers"),
    ):
        made.changed("run", **(content | changed))
        with pytest.raises(CleansetError, match=f"run of gold/wall on 2026-11-09{message}"):
            recomputed(made.folder, made.state())
    made.changed("defence", model=MODEL | {"threshold": 0.0, "pixels": 224, "crop": 160})
    with pytest.raises(CleansetError, match=r"gold/wall: sees {'pixels': 224, 'crop': 160}; expected {'pixels': 182, "):
        recomputed(made.folder, made.state())


def test_the_pixels_that_a_preprocessing_sees() -> None:
    """Of a callable nothing is known but what it returns."""
    from cleanset.evaluation import user_model

    for preprocessing, expected in (
        (ResizeAndCrop("name", 256, 224, "bilinear"), (256, 224)),
        (ResizeAndCrop("name", (224, 224), 224, "bilinear"), (224, 224)),
        (ResizeAndCrop("name", None, 224, "bilinear"), (224, 224)),
        (NAMED["keras256"], (256, 224)),
        (user_model.CheckedPreprocessing("name", lambda image: image, 96), (96, 96)),
    ):
        assert tuple(pixels_seen(preprocessing).values()) == expected


def test_the_clean_set_that_the_first_line_names(made: OnDisk) -> None:
    """Every default, the version of the rules, and the digests of the clean set and of the list are entered with it."""
    ready(made)
    path = made.yaml("contest.yaml", made.story[0][2])
    data = draft_of(path, Edition(made.edition)).data
    assert (data["version"], data["eligibility"]) == (2, "accuracy_80")
    limits, digests = data["limits"], (data["clean_set"], data["published"])
    assert isinstance(limits, dict)
    assert limits["appeal_days"] == 7
    made.changed("contest", clean_set=digests[0], published=digests[1])
    mail = made.mail("blue-1", {"x.png": png((1, 0, 0))})
    assert made.check(mail)
    for name, message in (("clean_set", "a clean set with the digest"), ("published", "a list with the digest")):
        made.changed("contest", **{name: "0" * 64})
        with pytest.raises(CleansetError, match=f"{message} [0-9a-f]{{12}}…; expected 0{{12}}…, as the contest's"):
            made.check(mail)
        made.changed("contest", **{name: digests[name == "published"]})


def test_the_defences_of_a_team_are_limited(made: OnDisk) -> None:
    made.changed("contest", limits={"defences": 1})
    second = {**made.story[2][2], "name": "gold/moat"}
    made.add("2026-11-09T12:00:00Z", "defence", second)
    with pytest.raises(CleansetError, match=r"2 defences of gold; expected at most 1, limits\.defences of the"):
        standing(made.state(), day("2026-11-10"))
    made.changed("contest", limits={"defences": 2})
    assert [each.name for each in standing(made.state(), day("2026-11-10")).defences] == ["gold/moat", "gold/wall"]
