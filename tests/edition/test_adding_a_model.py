"""A model added to an edition and removed again, with a real DVC: nothing else is scored again."""

import shutil
from pathlib import Path

import pytest
import timm
from safetensors.torch import save_file

from tests.checkouts import Checkout

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(small: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A clone in which all is there and up to date, with the weights of a further model."""
    clone = small.clone_with_data(tmp_path_factory.mktemp("adding") / "cleanset")
    network = timm.create_model("test_byobnet", num_classes=1000)
    shutil.rmtree(clone.folder / "studies")  # which name the sample's three models
    save_file(network.state_dict(), clone.folder / "sample" / "weights" / "further.safetensors")
    return clone


@pytest.mark.exhaustive
def test_only_the_new_model_and_the_joint_stages_run(checkout: Checkout) -> None:
    assert checkout.stages_run() == []
    before = {name: (checkout.folder / name).read_text() for name in ("params.yaml", "dvc.yaml")}
    weights = "sample/weights/further.safetensors"
    done = checkout.run("cleanset", "models", "--add", "further=timm:test_byobnet", "--weights", weights, "--json")
    assert done.stderr.splitlines() == [
        "added further; next: dvc repro",
        "the dvc.yaml of this checkout's editions now differ; a test expects them equal",
    ]
    ran = checkout.stages_run()
    of_further = {f"{stage}@further" for stage in ("score", "select", "score_crops", "review_apply", "export")}
    assert {stage for stage in ran if stage.startswith("score")} == {"score@further", "score_crops@further"}
    assert of_further | {"intersect", "count", "report"} <= set(ran)
    assert "preprocess" not in ran
    assert "crops" not in ran
    lines = checkout.run("dvc", "metrics", "show").stdout.splitlines()
    assert lines[0].split() == ["Path", "SHA-256", "further", "standard"]

    checkout.run("cleanset", "models", "--remove", "further")
    assert {name: (checkout.folder / name).read_text() for name in before} == before
    ran = checkout.stages_run()
    assert [stage for stage in ran if "score" in stage or "further" in stage] == []
    lines = checkout.run("dvc", "metrics", "show").stdout.splitlines()
    assert lines[0].split() == ["Path", "SHA-256", "standard"]
    status = checkout.run("git", "status", "--porcelain").stdout.splitlines()
    assert [line for line in status if " metrics/" in line] == []


@pytest.mark.long
def test_a_model_in_one_file_only_is_noticed_before_it_is_scored(checkout: Checkout) -> None:
    """As after a kill between the two files: in an edition that has its index already."""
    path = Path(checkout.folder) / "params.yaml"
    text = path.read_text()
    path.write_text(text.replace("models:\n", "models:\n  further: {source: timm, name: test_byobnet}\n"))
    done = checkout.run("dvc", "repro", check=False)
    path.write_text(text)
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert errors == [
        "error: dvc.yaml: the deps of intersect lack data/scores/further.parquet, of a model in params.yaml: "
        "add it to the others"
    ]
    assert not (checkout.folder / "data" / "scores" / "further.parquet").exists()


@pytest.mark.long
def test_weights_have_to_be_pinned_before_anything_is_scored(checkout: Checkout) -> None:
    checkout.run("cleanset", "models", "--add", "another=timm:test_byobnet.r160_in1k")
    done = checkout.run("dvc", "repro", check=False)
    checkout.run("cleanset", "models", "--remove", "another")
    assert [line for line in done.stderr.splitlines() if line.startswith("error: ")] == [
        "error: params.yaml: no sha256 of the weights of another: run cleanset models --pin first, which downloads "
        "them and writes it"
    ]
