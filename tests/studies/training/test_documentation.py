"""The examples of docs/training.md, and of docs/scenarios.md on Score, are valid and do what the text says."""

import re
from pathlib import Path

import pandas as pd
import yaml
from pydantic import TypeAdapter

from cleanset.classes import imagenet
from cleanset.edition.params import Model
from cleanset.plumbing.yaml_files import parse_document
from cleanset.studies.robustness.params import FurtherModel
from cleanset.studies.robustness.scenarios.params import ScenarioMeasures
from cleanset.studies.training.experiments import pairs
from cleanset.studies.training.finished import FinishedFold, FinishedRun
from cleanset.studies.training.params import TrainingParams
from cleanset.studies.training.recipes import Adversarial
from cleanset.studies.training.run_params import Run
from tests.documents import blocks
from tests.studies.training.finished_study import record_of

SHA256 = "0123456789abcdef" * 4
PAGE = "docs/training.md"


def test_the_run_of_the_page(repository: Path) -> None:
    content = yaml.safe_load(blocks(repository, "yaml", PAGE)[0])
    run = TrainingParams.model_validate({"data": {"images": "images"}, **content}).run("mine")
    assert run.training_recipe == Adversarial(eps=4 / 255)
    assert run.fold_names() == ["fold_01"]


def test_ex1_and_ex2_of_the_page_are_a_pair(repository: Path) -> None:
    (text,) = (each for each in blocks(repository, "yaml", "docs/training_scenarios.md") if each.startswith("ex1"))
    runs = yaml.safe_load(text)
    fold = FinishedFold("fold_01", record_of(), pd.DataFrame(), pd.DataFrame())
    finished = [FinishedRun(name, Run.model_validate(each), [fold]) for name, each in runs.items()]
    (pair,) = pairs(finished)
    assert (pair.ex1.name, list(pair.ex2)) == ("ex1", ["random_background"])


def test_the_further_model_of_the_page(repository: Path) -> None:
    content = yaml.safe_load(re.sub(r"[0-9a-f]{6}…", SHA256, blocks(repository, "yaml", PAGE)[-1]))
    model = TypeAdapter(FurtherModel).validate_python(content["further_models"]["mine"], context=imagenet())
    assert isinstance(model, Model)
    assert model.is_pinned


def test_score_over_trained_networks_of_the_page(repository: Path) -> None:
    (text,) = (each for each in blocks(repository, "yaml", "docs/scenarios.md") if each.startswith("inner"))
    assert ScenarioMeasures.model_validate(yaml.safe_load(text)).inner == "trained"


def test_the_matrix_of_the_page(repository: Path) -> None:
    (text,) = (each for each in blocks(repository, "yaml", "docs/reference/training.md") if each.startswith("matrix"))
    content = parse_document(f"data: {{images: images}}\n{text}", PAGE, merges=True)[0]
    run = TrainingParams.model_validate(content, context=imagenet()).run("as_written_resnet50_image_g")
    assert (run.scenario, run.network.pretrained, run.folds) == ("image_g", True, 12)
