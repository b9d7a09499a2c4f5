"""Model cards for the Hub, read by huggingface_hub itself."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import EvalResult, eval_results_to_model_index, model_index_to_eval_results

from cleanset.errors import CleansetError
from cleanset.evaluation.comparability import CardImages
from cleanset.evaluation.compare.model_index import check_hub, hub_cards, write_hub
from cleanset.evaluation.compare.result_files import ResultFile, parse_results
from tests.evaluation.compare.drawn_results import NUMBERS, accuracies, corrupted, robustness


def with_more(content: dict[str, Any], **measures: object) -> ResultFile:
    content["models"][0] |= measures
    return parse_results(content, "a")


def results_of(text: str) -> list[EvalResult]:
    found: list[EvalResult] = getattr(ModelCard(text).data, "eval_results", [])
    return found


def test_the_card_of_a_model() -> None:
    """Each measure with its value and interval; the dataset's revision is the digest of the comparability card."""
    found = with_more(accuracies({"timm:resnet50": NUMBERS}), top5=0.9375, ece=0.0625)
    (text,) = hub_cards(found).values()
    assert yaml.safe_load(text.split("---\n")[1])["model-index"][0]["name"] == "timm:resnet50"
    accuracy, top5, ece = results_of(text)
    assert [each.metric_type for each in (accuracy, top5, ece)] == ["accuracy", "top_5_accuracy", "ece"]
    assert [each.metric_value for each in (accuracy, top5, ece)] == [0.75, 0.9375, 0.0625]
    assert (accuracy.metric_args, ece.metric_args) == ({"interval": [0.5, 0.875]}, None)
    digest = found.measured["accuracy"].card.digest
    for each in (accuracy, top5, ece):
        assert (each.task_type, each.dataset_type, each.dataset_config) == (
            "image-classification",
            "cleanset",
            "accuracy",
        )
        assert each.dataset_revision == (each.dataset_args or {})["comparability"] == digest
    assert accuracy.dataset_args is not None
    assert accuracy.dataset_name == "cleanset standard, accuracy: 3 images of 2 classes"
    assert accuracy.dataset_args["preprocessing"] == "timm-bicubic-235-224"
    assert accuracy.dataset_args["precision"] == "float64"
    assert digest in ModelCard(text).text


def test_the_hubs_own_writer_gives_the_same() -> None:
    """Reading and writing by huggingface_hub loses nothing."""
    found = parse_results(robustness(corrupted({"a": 0.25}), corrupted({"a": 0.5}, "perturbations")), "r")
    (text,) = hub_cards(found).values()
    index = yaml.safe_load(text.split("---\n")[1])["model-index"]
    assert list(index[0]) == ["name", "results"]  # in the Hub's order, as its writer has it
    assert list(index[0]["results"][0]) == ["task", "dataset", "metrics"]
    name, results = model_index_to_eval_results(index)
    assert [each.dataset_config for each in results] == ["corruptions", "perturbations"]
    assert eval_results_to_model_index(name, results) == index


def test_results_of_other_cards_stay_apart() -> None:
    """huggingface_hub merges results by task, dataset, config, split and revision."""
    one = results_of(*hub_cards(parse_results(accuracies({"a": NUMBERS}), "a")).values())
    other = results_of(
        *hub_cards(parse_results(accuracies({"a": NUMBERS}, images=CardImages(count=3, sha256="e" * 64)), "b")).values()
    )
    assert one[0].unique_identifier != other[0].unique_identifier
    assert len(eval_results_to_model_index("a", [*one, *other])[0]["results"]) == 2


def test_a_name_of_weights_has_no_folder() -> None:
    """Folders belong to a machine; so does that of the set."""
    content = accuracies({"/home/ada/weights/mine.safetensors": NUMBERS})
    content["set"]["name"] = "/home/ada/sets/standard"
    (text,) = hub_cards(parse_results(content, "a")).values()
    assert getattr(ModelCard(text).data, "model_name", None) == "mine"
    assert "/home" not in text


def test_what_is_written(tmp_path: Path) -> None:
    """The same content may be written again; a YAML file has only the front matter."""
    found = parse_results(accuracies({"b": NUMBERS, "a": NUMBERS}), "r")
    paths = write_hub(tmp_path / "cards", found, {"a": "model_a", "b": "model_b"})
    assert [path.name for path in paths] == ["model_b.md", "model_a.md"]
    before = paths[0].read_bytes()
    write_hub(tmp_path / "cards", found, {"a": "model_a", "b": "model_b"})
    assert paths[0].read_bytes() == before
    single = parse_results(accuracies({"a": NUMBERS}), "r")
    (path,) = write_hub(tmp_path / "card.yaml", single, {})
    assert yaml.safe_load(path.read_text())["model-index"][0]["name"] == "a"
    write_hub(path, single, {})


@pytest.mark.parametrize(
    ("name", "added"), [("a.md", "\n## Training\n\n- Lists, too.\n"), ("a.yaml", "license: mit\n")]
)
def test_text_that_an_author_has_added_stays(name: str, added: str, tmp_path: Path) -> None:
    path, card = tmp_path / name, tmp_path / f"new{Path(name).suffix}"
    other = parse_results(accuracies({"a": (0.5, 0.25, 0.75)}), "r")
    write_hub(path, parse_results(accuracies({"a": NUMBERS}), "r"), {})
    path.write_text(path.read_text() + added)
    write_hub(path, other, {})
    write_hub(card, other, {})
    assert path.read_text() == card.read_text() + added
    path.write_text(path.read_text().replace("model-index:\n", "license: mit\nmodel-index:\n"))
    with pytest.raises(CleansetError, match="of another origin, or changed above its end; expected a new file"):
        check_hub(path, ["a"])


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    found = parse_results(accuracies({"a": NUMBERS, "b": NUMBERS}), "r")
    (tmp_path / "model_b.md").write_text("# By somebody\n")
    with pytest.raises(CleansetError, match=r"model_b\.md: a model card of another origin, .*; expected a new file"):
        write_hub(tmp_path, found, {"a": "model_a", "b": "model_b"})
    assert not (tmp_path / "model_a.md").exists()
    for path, names, problem in (
        (tmp_path / "one.md", ["a", "b"], r"one\.md: a file for 2 models; expected one --model, or a folder"),
        (tmp_path / "model_b.md", ["a"], r"model_b\.md: a model card of another origin"),
        (tmp_path / "folder.md", ["a"], r"folder\.md: a folder; expected a file, or a folder of another name"),
        (tmp_path / "text", ["a"], r"text: a file; expected one that ends in \.md, \.yaml, \.yml, or a folder"),
    ):
        (tmp_path / "folder.md").mkdir(exist_ok=True)
        (tmp_path / "text").write_text("")
        with pytest.raises(CleansetError, match=problem):
            check_hub(path, names)
