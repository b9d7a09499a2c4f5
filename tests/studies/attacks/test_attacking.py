"""The stages on a small study: what they store, and that an interrupted run is continued."""

import csv
import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torchvision.models import alexnet

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.images.preprocessing import Pixels, Resized, base_image
from cleanset.scoring.devices import choose_devices
from cleanset.scoring.models import load_model
from cleanset.studies.attacks.attack_stage import run_attack
from cleanset.studies.attacks.base import Result, Subject
from cleanset.studies.attacks.candidate_files import pixels_of_png
from cleanset.studies.attacks.changes import RandomSpatialAttack
from cleanset.studies.attacks.judge import Judge
from cleanset.studies.attacks.page import attacks_data, write_measures
from cleanset.studies.attacks.results import ATTACKED
from cleanset.studies.attacks.study import AttackParams, AttackStudy
from cleanset.studies.attacks.warning_stage import run_warnings
from cleanset.studies.robustness.answers import ANSWER_TABLES
from cleanset.studies.robustness.corruptions.changes import corrupted_images
from cleanset.studies.robustness.images import MASKS
from cleanset.tables import SCORES, read_table, write_table
from tests.studies.attacks.conftest import contents, copied
from tests.studies.attacks.study import ROLE
from tests.ten_images import FORK_SERVER

pytestmark = pytest.mark.slow

SETTINGS = AttackParams.model_validate(
    {
        "search_precision": "float64",
        "attacks": {
            "none": {}, "random_spatial": {}, "pgd": {"steps": 2, "group": 3, "images": 3},
            "boundary": {"queries": 6, "group": 2}, "spsa": {"steps": 2, "samples": 4},
        },
        "probe": {"images": 2, "steps": 2, "group": 2, "spsa_steps": 2, "spsa_samples": 4},
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def attacked(made: AttackStudy, tmp_path_factory: pytest.TempPathFactory) -> AttackStudy:
    """A study on which all of SETTINGS have run; not to be changed."""
    study = copied(made, tmp_path_factory.mktemp("attacked") / "edition")
    for name in SETTINGS.names:
        run_attack(study, ROLE, name, SETTINGS)
    run_warnings(study, ROLE, SETTINGS)
    write_measures(study, SETTINGS)
    return study


def results(study: AttackStudy, name: str) -> pd.DataFrame:
    return read_table(study.results(name, ROLE).table, ATTACKED, imagenet())


def judge_of(study: AttackStudy) -> Judge:
    params = read_params(study.edition.folder)
    return Judge(load_model(params.model(ROLE), study.edition.folder), choose_devices("cpu")[0].torch)


def test_none_gives_the_stored_scores_bit_for_bit(attacked: AttackStudy) -> None:
    scores = read_table(attacked.edition.scores(ROLE), SCORES, imagenet()).set_index("image_id")
    for _, row in results(attacked, "none").iterrows():
        stored = scores.loc[row["image_id"]]
        assert np.array_equal(row["logits_after"], row["logits_before"])
        logits = judge_of(attacked).logits(pixels_of_png((folder_of(attacked, "none") / row["png"]).read_bytes()))
        order = np.argsort(-logits, kind="stable")[:5]
        shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        assert np.array_equal(order, stored["top5_class"])
        assert np.array_equal(shares[order].astype(np.float32), stored["top5_probability"])


def folder_of(study: AttackStudy, name: str) -> Path:
    return study.results(name, ROLE).folder


@pytest.mark.parametrize("name", ["random_spatial", "pgd", "boundary", "spsa", "guess"])
def test_every_file_gives_its_stored_logits_again(name: str, attacked: AttackStudy) -> None:
    judge = judge_of(attacked)
    for _, row in results(attacked, name).iterrows():
        data = (folder_of(attacked, name) / row["png"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == row["png_sha256"]
        logits = judge.logits(pixels_of_png(data))
        assert np.array_equal(logits.astype(np.float32), row["logits_after"])
        assert row["is_error"] == (int(logits.argmax()) != row["class_index"])


def test_what_is_stored(attacked: AttackStudy) -> None:
    found = {name: results(attacked, name) for name in SETTINGS.names}
    assert {name: len(table) for name, table in found.items()} == {
        "none": 4, "random_spatial": 4, "pgd": 3, "boundary": 4, "spsa": 4, "guess": 4,
    }  # fmt: skip
    assert found["none"]["was_correct"].sum() == 2
    assert found["pgd"]["queries"].tolist() == [8, 6, 6]
    assert found["pgd"]["linf"].max() == pytest.approx(4 / 255)
    assert found["none"]["seed"].isna().all()
    assert found["spsa"]["seed"].nunique() == 4
    assert found["boundary"]["from_center"].max() <= 10
    source = found["none"].iloc[0]
    file = attacked.edition.export(ROLE) / source["file"]
    assert hashlib.sha256(file.read_bytes()).hexdigest() == source["source_sha256"]


@pytest.mark.long
def test_lpips_is_measured_where_there_are_weights(study: AttackStudy) -> None:
    torch.manual_seed(0)
    weights = study.folder / "alexnet.safetensors"
    save_file(alexnet(weights=None).state_dict(), weights)
    settings = SETTINGS.model_copy(update={"lpips": weights.name})
    run_attack(study, ROLE, "pgd", settings)
    assert (results(study, "pgd")["lpips"] > 0).all()
    record = json.loads((folder_of(study, "pgd") / "record.json").read_text())
    assert record["lpips_weights_sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert record["versions"]["lpips"] == "0.1.4"
    weights.unlink()
    with pytest.raises(CleansetError, match=r"^lpips: .*alexnet\.safetensors not found; expected"):
        run_attack(study, ROLE, "none", settings)


def test_the_record(attacked: AttackStudy) -> None:
    record = json.loads((folder_of(attacked, "pgd") / "record.json").read_text())
    assert record["parameters"]["eps"] == 4 / 255
    assert (record["images"], record["attacked"], record["search_precision"]) == (3, 3, "float64")
    assert record["searched_on"] == "cpu"
    assert "foolbox" in json.loads((folder_of(attacked, "boundary") / "record.json").read_text())["versions"]
    assert str(attacked.folder) not in json.dumps(record)


def test_a_guess_is_a_mistake_that_is_known(attacked: AttackStudy) -> None:
    """Only the clean answers are stored: a class has a mistake if one of its images is misclassified."""
    found = results(attacked, "guess")
    mistaken = set(found["class_index"][~found["was_correct"]])
    assert found["is_error"].tolist() == [index in mistaken for index in found["class_index"]]
    assert 0 < found["is_error"].sum() < 4


def test_a_guess_has_the_severity_of_its_mistake(study: AttackStudy) -> None:
    path = study.robustness.answers.predictions("corruptions", ROLE)
    clean = read_table(path, ANSWER_TABLES["corruptions"], imagenet())
    mistaken = clean.assign(change="contrast", severity=4, log_odds=np.float32(50))
    mistaken["top5_class"] = [(classes + 1) % 1000 for classes in clean["top5_class"]]
    both = pd.concat([clean, mistaken]).sort_values(["file", "change", "severity"], ignore_index=True)
    write_table(path, both, ANSWER_TABLES["corruptions"], imagenet())
    masks = clean[["file"]].assign(mask=None, mask_sha256=None, mask_format=None, origin=None, left_out="no_mask")
    write_table(study.robustness.masks_table, masks, MASKS, imagenet())
    run_attack(study, ROLE, "guess", SETTINGS)
    row = results(study, "guess").iloc[0]
    found = pixels_of_png((folder_of(study, "guess") / row["png"]).read_bytes())
    base = base_image(Image.open(study.edition.export(ROLE) / row["file"]))
    (changed,) = corrupted_images(base, "contrast", [4])
    assert np.array_equal(found, Resized(found.shape[-1])(Image.fromarray(changed)))


def test_the_table_of_all(attacked: AttackStudy) -> None:
    with (attacked.folder / "data" / "attack_measures.csv").open() as file:
        rows = {(row["attack"], row["measure"]): row for row in csv.DictReader(file)}
    assert float(rows["none", "error"]["value"]) == 0.5
    assert float(rows["none", "success"]["value"]) == 0
    assert rows["pgd", "queries"]["value"] == "6.66666667"
    metric = json.loads((attacked.folder / "attack_metrics" / "none" / "error.json").read_text())
    assert metric == {ROLE: 0.5}


def test_what_the_page_shows_of_it(attacked: AttackStudy, tmp_path: Path) -> None:
    """Warnings, sizes, what confidences are read from, and small copies: all but those of the attack none."""
    study = copied(attacked, tmp_path / "edition")
    study.params_yaml.write_text(json.dumps(SETTINGS.model_dump(exclude_none=True)))
    found = attacks_data(study, tmp_path)
    assert (found.models, found.sizes) == ([ROLE], {ROLE: 160})
    assert found.warnings[0].images == 2
    assert {name for name, _ in found.sheets} == {"random_spatial", "pgd", "boundary", "spsa", "guess"}
    for name in SETTINGS.names:
        stored, answers = results(study, name), found.answers[name, ROLE]
        for suffix, column in (("", "logits_before"), ("_after", "logits_after")):
            top = np.sort(np.stack(stored[column].tolist()).astype(np.float64), axis=1)
            assert answers[f"largest_logit{suffix}"].tolist() == top[:, -1].tolist()
            others = np.log(np.exp(top[:, :-1]).sum(axis=1))
            assert answers[f"log_odds{suffix}"].tolist() == pytest.approx((top[:, -1] - others).tolist(), abs=1e-4)
    row = found.sheets["pgd", ROLE][0]
    assert (row["factor"], row["success"]) == (16, True)  # 4 of 255 levels
    clean, after = (np.asarray(Image.open(tmp_path / file), np.float64) for file in row["files"][:2])
    assert np.abs(clean - after).mean() < 8
    assert clean.shape == (112, 112, 3)


@pytest.mark.long
def test_a_second_run_writes_the_same_bytes(attacked: AttackStudy, study: AttackStudy) -> None:
    for name in ("boundary", "spsa"):
        run_attack(study, ROLE, name, SETTINGS)
        one, other = (contents(folder_of(each, name)) for each in (attacked, study))
        assert one == other
        assert len(one) == 6


def run_fatally(folder: Path) -> None:
    """Kill this process at the third image."""
    asked, result = [], RandomSpatialAttack.result

    def fatal(attack: RandomSpatialAttack, *given: Any) -> Result:
        asked.append(given)
        if len(asked) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return result(attack, *given)

    RandomSpatialAttack.result = fatal  # type: ignore[method-assign, assignment]
    run_attack(AttackStudy(folder), ROLE, "random_spatial", SETTINGS)


@pytest.mark.long
def test_a_kill_loses_one_group(study: AttackStudy, attacked: AttackStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    process = FORK_SERVER.Process(target=run_fatally, args=(study.folder,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not folder_of(study, "random_spatial").exists()
    assert len(list(study.results("random_spatial", ROLE).partial.rglob("0*.parquet"))) == 2
    asked, changed = [], RandomSpatialAttack.changed

    def watched(attack: RandomSpatialAttack, one: Subject, seed: int, name: str) -> Pixels:
        asked.append(one.name)
        return changed(attack, one, seed, name)

    monkeypatch.setattr(RandomSpatialAttack, "changed", watched)
    run_attack(study, ROLE, "random_spatial", SETTINGS)
    assert len(asked) == 2
    assert contents(folder_of(study, "random_spatial")) == contents(folder_of(attacked, "random_spatial"))
    assert not study.results("random_spatial", ROLE).partial.exists()


def with_budget(**budget: Any) -> AttackParams:
    return SETTINGS.model_copy(update={"budget": SETTINGS.budget.model_copy(update=budget)})


def test_a_budget(study: AttackStudy, capsys: pytest.CaptureFixture[str]) -> None:
    run_attack(study, ROLE, "spsa", with_budget(queries=11))
    assert len(results(study, "spsa")) == 2
    assert "spsa standard: budget exhausted after 2 of 4 images" in capsys.readouterr().err
    assert json.loads((folder_of(study, "spsa") / "record.json").read_text())["attacked"] == 2
    run_attack(study, ROLE, "none", with_budget(seconds=1e-9))
    assert len(results(study, "none")) == 1


def test_other_scores_than_those_stored(study: AttackStudy) -> None:
    scores = read_table(study.edition.scores(ROLE), SCORES, imagenet())
    scores["log_odds"] = (scores["log_odds"] + 0.5).astype("float32")
    write_table(study.edition.scores(ROLE), scores, SCORES, imagenet())
    with pytest.raises(CleansetError, match="expected the same bits"):
        run_attack(study, ROLE, "none", SETTINGS)
