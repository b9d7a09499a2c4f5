"""Robust accuracies side by side: tables that keep norm, radius, attacks and steps, paired tests, cleanset compare."""

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pytest
from PIL import Image

from cleanset.classes import imagenet
from cleanset.edition.params import Score
from cleanset.evaluation.compare.compared_tables import ranking_for_paper
from cleanset.evaluation.compare.result_files import are_results
from cleanset.evaluation.compare.results import ComparedResults, run
from cleanset.evaluation.pairs import image_key
from cleanset.evaluation.sets import EvaluationImage, EvaluationSet
from cleanset.evaluation.specs import CommandModel
from cleanset.plumbing.json_files import with_digest
from cleanset.studies.attacks.evaluation_results import AttackedModels, content_of
from cleanset.studies.attacks.evaluation_tables import as_text, paper_table
from cleanset.studies.attacks.request import AttackRequest
from cleanset.studies.attacks.results import Attacked, Trust, measure_lines
from cleanset.studies.attacks.study import AttackParams
from tests.evaluation.notes_read import FORMS, notes_read

FILES = [f"n01440764/{number}.png" for number in range(8)]
IMAGES = EvaluationSet(
    name="set_1",
    kind="export",
    items=[EvaluationImage(file, 0, None, f"{number}" * 64) for number, file in enumerate(FILES)],
    read=Image.open,
    checked="the manifest",
    classes=imagenet(),
    version="1.2.0",
    selection="chosen among the images that easy classifies correctly",
    selected_by="easy",
    limits=["A trial."],
)
PARAMS = AttackParams.model_validate(
    {"attacks": {"pgd": {"eps": "4/255", "steps": 7}, "far": {"kind": "pgd", "norm": "L2", "eps": 0.5, "steps": 3}}}
)


def broken(*numbers: int, misclassified: tuple[int, ...] = ()) -> pd.DataFrame:
    """The results of an attack, as far as robust accuracy needs them."""
    return pd.DataFrame(
        {
            "file": FILES,
            "class_index": 0,
            "was_correct": [number not in misclassified for number in range(8)],
            "is_error": [number in (*numbers, *misclassified) for number in range(8)],
            "from_center": 0.01,
            "is_converged": True,
            **dict.fromkeys(("queries", "l0", "l2", "linf", "ssim", "lpips"), 1.0),
        }
    )


def asked(
    models: Iterable[str], params: AttackParams, *, images: EvaluationSet = IMAGES, warnings: bool = True
) -> AttackRequest:
    specs = [CommandModel(model, ("true",)) for model in models]
    return AttackRequest.of_command(specs, images, score=Score(), params=params, out=Path("out"), warnings=warnings)


def attacked(**models: tuple[int, ...]) -> AttackedModels:
    """Models by the images that pgd breaks; the other attack breaks none."""
    found = {model: Attacked({"pgd": broken(*numbers), "far": broken()}) for model, numbers in models.items()}
    lines = measure_lines(found, PARAMS.threats, PARAMS.resampling)
    problems = {("far", "weak"): "too slow"} if "weak" in models else {}
    return AttackedModels(
        request=asked(models, PARAMS),
        attacked=found,
        lines=lines,
        warnings={},
        problems=problems,
    )


ALL = {"strong": (), "weak": (0, 1, 2, 3, 4, 5), "middle": (0, 1), "easy": (7,)}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_keeps_norm_radius_attack_and_steps(form: str) -> None:
    found = notes_read(paper_table(attacked(**ALL)).in_form(form), form)
    assert found["set"] == "set_1"
    assert found["version"] == "1.2.0"
    assert found["digest"].startswith("images ")
    assert found["number of images"] == "8 of 1 class"
    assert found["selection"] == "chosen among the images that easy classifies correctly"
    assert found["limits"] == (
        "A trial. far did not run on weak. easy chose these images by its own correct predictions: nothing is tested "
        "against it."
    )
    near, far = found["settings"].split("; L2 0.5: ")
    assert near.startswith("Linf 4/255: attack pgd: pgd, Linf 4/255, steps 7, ")
    assert far.startswith("attack far: pgd, L2 0.5, steps 3, ")
    assert found["intervals"] == "95 %, Wilson; differences: Newcombe's for pairs"
    assert found["tests"] == (
        "p of McNemar's exact test, two-sided, against strong, corrected by Holm's method, over 3 pairs"
    )
    assert "card" not in found


def test_models_are_tested_but_the_one_that_chose_the_images() -> None:
    """By hand: 6 broken against 0 has p 2 / 64, times 3 by Holm; 2 against 0 has 1 / 2."""
    rows = list(csv.DictReader(StringIO(paper_table(attacked(**ALL)).in_form("csv"))))
    near = [row for row in rows if row["threat model"] == "Linf 4/255"]
    assert [(row["model"], row["robust"], row["difference"], row["p"]) for row in near] == [
        ("strong", "100.0", "", ""),
        ("weak", "25.0", "-75.00", "0.0938"),
        ("middle", "75.0", "-25.00", "0.5000"),
        ("easy", "87.5", "", ""),
    ]


def test_a_model_with_signs_of_masking_is_not_tested() -> None:
    evaluated = attacked(strong=(), weak=(0,))
    assert "p" in paper_table(evaluated).titles
    masked = replace(evaluated.attacked["strong"], trust=Trust(checked=frozenset(), untrusted=None))
    hidden = replace(evaluated, attacked={**evaluated.attacked, "strong": masked})
    assert "p" not in paper_table(hidden).titles


def compared(folder: Path, *evaluated: AttackedModels) -> ComparedResults:
    paths = []
    for number, each in enumerate(evaluated):
        path = folder / str(number) / "attack_results.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(with_digest(content_of(each))))
        paths.append(path.parent)
    assert are_results(paths)
    return run(paths)


def test_compare_reads_results_of_attacks(tmp_path: Path) -> None:
    found = compared(tmp_path, attacked(strong=(), weak=(0, 1, 2)), attacked(middle=(5,)))
    assert found.left_out == []
    assert [row.model for row in found.rows] == ["strong", "middle", "weak"]
    near = "attacks in Linf 4/255"
    assert [row.values[near, "robust_accuracy"].value for row in found.rows] == [1, 0.875, 0.625]
    assert list(found.cards) == [near, "attacks in L2 0.5"]
    # two threat models in one table: whose misclassified images would be tested?
    assert found.pairs == []
    notes = notes_read(ranking_for_paper(found).in_form("csv"), "csv")
    assert notes["settings"].startswith(f"{near}: attack pgd: pgd, Linf 4/255, steps 7, ")
    assert "predictions made elsewhere" not in notes["limits"]


def families_of(evaluated: AttackedModels) -> dict[str, Any]:
    return cast(dict[str, Any], content_of(evaluated)["families"])


def test_results_have_the_groups_of_the_images() -> None:
    groups = ["ann", "ann", "ben", "ben", "", "", "", ""]
    items = [replace(item, group=group) for item, group in zip(IMAGES.items, groups, strict=True)]
    evaluated = attacked(strong=())
    grouped = replace(evaluated, request=asked(["strong"], PARAMS, images=replace(IMAGES, items=items)))
    family = families_of(grouped)["Linf 4/255"]
    assert family["groups"] == {image_key(0, f"{number}" * 64): group for number, group in enumerate(groups)}
    assert "groups" not in families_of(evaluated)["Linf 4/255"]


def test_other_attacks_are_not_comparable(tmp_path: Path) -> None:
    one = attacked(strong=())
    params = AttackParams.model_validate({"attacks": {"pgd": {"eps": "4/255", "steps": 8}}})
    found = {"weak": Attacked({"pgd": broken(0)})}
    lines = measure_lines(found, params.threats, params.resampling)
    other = replace(one, request=asked(["weak"], params), attacked=found, lines=lines)
    (left_out,) = compared(tmp_path, one, other).left_out
    assert (left_out.measured, left_out.field) == ("attacks in Linf 4/255", "settings.attack pgd")


def limited(number: int, *, warnings: bool = False, **models: tuple[int, ...]) -> AttackedModels:
    """Models that pgd alone was tried on, on the first images."""
    params = AttackParams.model_validate({"images": number, "attacks": {"pgd": {"eps": "4/255", "steps": 7}}})
    found = {model: Attacked({"pgd": broken(*numbers)[:number]}) for model, numbers in models.items()}
    return AttackedModels(
        request=asked(models, params, warnings=warnings),
        attacked=found,
        lines=measure_lines(found, params.threats, params.resampling),
        warnings={},
        problems={},
    )


def test_the_card_has_the_images_that_were_attacked(tmp_path: Path) -> None:
    """By hand: one model loses none of the first four images and the other three; 2 * (1 / 2) ** 3 = 1 / 4."""
    four = limited(4, strong=(), weak=(0, 1, 2, 6))
    (row,) = [row for row in csv.DictReader(StringIO(paper_table(four).in_form("csv"))) if row["p"]]
    assert (row["model"], row["images"], row["difference"], row["p"]) == ("weak", "4", "-75.00", "0.2500")
    assert row["number of images"] == "4 of 1 class"
    assert "probe none" in row["settings"]
    assert "Signs of gradient masking were not looked for" in row["limits"]
    assert compared(tmp_path / "same", four, limited(4, other=(3,))).pairs[0].images == 4
    (left_out,) = compared(tmp_path / "others", four, limited(7, other=(3,))).left_out
    assert (left_out.field, left_out.value, left_out.its_value) == ("number of images", "7", "4")
    (left_out,) = compared(tmp_path / "probed", four, limited(4, warnings=True, other=(3,))).left_out
    assert (left_out.field, left_out.its_value) == ("settings.probe", "none")


def test_a_model_that_was_attacked_on_fewer_images_is_reported_and_not_tested() -> None:
    """A spent budget ends an attack on one of the models."""
    four = limited(4, strong=(), weak=(0,))
    found = {**four.attacked, "weak": Attacked({"pgd": broken(0)[:3]})}
    fewer = replace(four, attacked=found, lines=measure_lines(found, four.params.threats, four.params.resampling))
    table = paper_table(fewer)
    assert "p" not in table.titles
    notes = dict(table.notes)
    assert notes["number of images"] == "strong 4, weak 3"
    assert "weak was attacked on 3 of these 4 images: nothing is tested against it." in notes["limits"]
    lines = [str(each) for each in as_text(fewer).renderables]
    assert "weak was attacked on 3 of these 4 images: nothing is tested against it." in lines
