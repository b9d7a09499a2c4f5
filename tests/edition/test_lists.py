"""Models that are published lists: what params.yaml may say of them, and their files."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from cleanset.cli import app
from cleanset.edition.create import make_edition
from cleanset.edition.lists import check_list, images_beyond, unknown_confidences
from cleanset.edition.models import change_models, models_from_texts, with_lists
from cleanset.edition.params import Model, Params, checked_params, read_params
from cleanset.edition.paths import Edition
from cleanset.errors import CleansetError

A, B, C = (f"ILSVRC2012_val_{number:08d}" for number in (1, 2, 3))
LIST = f"model,class_index,rank,image_id,confidence\nrobust,5,1,{A},0.9\nplain,5,1,{B},0.5\n"
BEYOND = f"model,class_index,image_id\nplain,5,{A}\nrobust,5,{B}\nrobust,5,{C}\n"
MODEL: dict[str, Any] = {"source": "lists", "file": "lists.csv", "name": "robust"}
CONTENT: dict[str, Any] = {
    "root": ".",
    "protocol": "as_published",
    "dataset": {"images": "images"},
    "models": {"robust": MODEL},
    "review": {"wrong_after_crop": "accept"},
    "count": {"accuracy": False},
}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lists.csv").write_text(LIST)
    (tmp_path / "beyond.csv").write_text(BEYOND)
    return tmp_path


def with_model(**fields: Any) -> dict[str, Any]:
    return CONTENT | {"models": {"robust": {**MODEL, **fields}}}


def test_params() -> None:
    model = checked_params(CONTENT, "params.yaml").model("robust")
    assert (model.is_list, model.is_pinned, model.file, model.name) == (True, False, "lists.csv", "robust")
    pinned = with_model(sha256="0" * 64, beyond="beyond.csv")
    assert not checked_params(pinned, "params.yaml").model("robust").is_pinned
    pinned["models"]["robust"]["beyond_sha256"] = "1" * 64
    assert checked_params(pinned, "params.yaml").model("robust").is_pinned


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            with_model(threat_model="Linf"),
            "models.robust: threat_model with source lists, but only robustbench has it: remove it",
        ),
        (
            with_model(weights="w.pt", sha256="0" * 64),
            "models.robust: weights with source lists, but only timm, torchvision, robustbench has it",
        ),
        (with_model(file=None), "models.robust: file is needed for source lists"),
        (with_model(file=""), "models.robust: file is needed for source lists"),
        (with_model(beyond_sha256="0" * 64), "models.robust: beyond_sha256 without beyond; expected both or neither"),
        (with_model(sha256="0"), "models.robust.sha256: "),
        (
            with_model(source="scores", beyond="b.csv"),
            "models.robust: beyond with source scores, but only lists has it",
        ),
        (
            CONTENT | {"models": {"mine": {"source": "module", "name": "a:b", "weights": "w.pt"}}},
            "models.mine: weights with source module, but only timm, torchvision, robustbench has it: remove it",
        ),
        (with_model(source="timm"), "models.robust: file with source timm, but only lists, scores has it: remove it"),
        (CONTENT | {"review": {}}, "review.wrong_after_crop: reject, but models.robust is a published list, which"),
        (CONTENT | {"protocol": "as_written"}, "select.pool: ensemble, but models.robust is a published list, which"),
        (CONTENT | {"count": {}}, "count.accuracy: true, but models.robust is a published list, which lacks"),
        (
            CONTENT | {"models": {"robust": MODEL, "other": MODEL}},
            "models.other.name: the same as models.robust; expected",
        ),
    ],
)
def test_params_refused(content: dict[str, Any], message: str) -> None:
    with pytest.raises(CleansetError) as error:
        checked_params(content, "params.yaml")
    assert str(error.value).startswith(f"params.yaml: {message}")


def test_two_lists_of_one_file_are_two_models() -> None:
    both = {"robust": MODEL | {"sha256": "0" * 64}, "plain": MODEL | {"name": "plain", "sha256": "0" * 64}}
    assert list(checked_params(CONTENT | {"models": both}, "params.yaml").models) == ["robust", "plain"]


def test_it_is_no_network() -> None:
    with pytest.raises(
        CleansetError, match=r"^robust: a published list \(robust in lists\.csv\), which has no network"
    ):
        checked_params(CONTENT, "params.yaml").network("robust")


def test_digests(folder: Path) -> None:
    model = Model.model_validate({**MODEL, "beyond": "beyond.csv"})
    assert check_list(folder, "robust", model) == {"sha256": sha(LIST), "beyond_sha256": sha(BEYOND)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"file": "none.csv"}, "none.csv: missing; expected the list that models.robust.file of params.yaml names"),
        ({"beyond": "none.csv"}, "none.csv: missing; expected the list that models.robust.beyond of params.yaml names"),
        ({"file": "."}, ": a folder; expected a regular file"),
        ({"name": "rubust"}, "lists.csv: no list of model 'rubust' (models.robust.name of params.yaml); expected "
                             "one of robust, plain"),
        ({"sha256": "0" * 64}, f"lists.csv: SHA-256 {sha(LIST)}, expected {'0' * 64} as in params.yaml (models.r"),
        ({"beyond": "beyond.csv", "beyond_sha256": "0" * 64}, f"beyond.csv: SHA-256 {sha(BEYOND)}, expected 000"),
        ({"file": "beyond.csv"}, "beyond.csv, line 1: 'model,class_index,image_id'; expected the header model"),
    ],
)  # fmt: skip
def test_a_list_refused(folder: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CleansetError) as error:
        check_list(folder, "robust", Model.model_validate({**MODEL, **fields}))
    assert message in str(error.value)


def test_a_list_that_changed_after_it_was_pinned(folder: Path) -> None:
    model = Model.model_validate({**MODEL, "sha256": sha(LIST)})
    check_list(folder, "robust", model)
    (folder / "lists.csv").write_text(LIST.replace("0.9", "0.8"))
    with pytest.raises(CleansetError, match=r"git checkout the list, or correct params.yaml if this one is meant$"):
        check_list(folder, "robust", model)


def test_images_beyond(folder: Path) -> None:
    model = Model.model_validate({**MODEL, "beyond": "beyond.csv", "beyond_sha256": sha(BEYOND)})
    found = list(images_beyond(folder, model))
    assert [(each.class_index, each.image_id) for each in found] == [(5, B), (5, C)]
    assert found[0].where.endswith("beyond.csv, line 3")
    params = Params.model_validate(
        CONTENT | {"models": {"robust": model.model_dump(), "plain": MODEL | {"name": "plain"}}}
    )
    assert unknown_confidences(folder, params) == {"robust": {B, C}, "plain": frozenset()}
    (folder / "beyond.csv").write_text(BEYOND.replace(C, "ILSVRC2012_val_00000004"))
    with pytest.raises(CleansetError, match=r"beyond\.csv: SHA-256 "):
        unknown_confidences(folder, params)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BEYOND.replace(C, B), f"line 4: {B} out of order or a second time"),
        (BEYOND.replace(f"5,{B}", f"6,{B}"), f"line 4: {C} out of order or a second time"),
        (BEYOND.replace("5,", "1000,"), "line 2, class_index: '1000'; expected a number from 0 to 999"),
        (BEYOND.replace("5,", "５,"), "line 2, class_index: '５'; expected a number from 0 to 999"),
        (BEYOND.replace(A, "val_1"), "line 2, image_id: 'val_1'; expected an image id"),
        (BEYOND[:-20], "line 4, image_id: 'ILS"),
        (BEYOND + "robust\n", "line 5: 1 cells; expected model,class_index,image_id"),
    ],
)
def test_images_beyond_refused(folder: Path, text: str, message: str) -> None:
    (folder / "beyond.csv").write_text(text)
    with pytest.raises(CleansetError) as error:
        list(images_beyond(folder, Model.model_validate({**MODEL, "beyond": "beyond.csv"})))
    assert message in str(error.value)


@pytest.fixture
def edition(folder: Path) -> Edition:
    (folder / "params.yaml").write_text(yaml.safe_dump(CONTENT, sort_keys=False))
    return Edition(folder)


@pytest.mark.slow
def test_pin_writes_the_digests(edition: Edition) -> None:
    from cleanset.scoring import ensemble

    assert ensemble.pin(edition) == ["robust"]
    assert read_params(edition.folder).model("robust").sha256 == sha(LIST)
    (member,) = ensemble.members(edition)
    assert (member.preprocessing, member.weights, member.found, member.state) == (None, "lists.csv", sha(LIST), "there")
    (edition.folder / "lists.csv").write_text(LIST + "\n")
    assert ensemble.members(edition)[0].state == "other bytes"
    (edition.folder / "lists.csv").unlink()
    assert ensemble.members(edition)[0].state == "missing"


def test_add(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's path is relative to the current folder, and it is pinned at once."""
    monkeypatch.chdir(edition.folder.parent)
    new = with_lists(models_from_texts([f"plain=lists:{edition.folder.name}/lists.csv/plain"]), edition.folder)
    change_models(edition.folder, new, [])
    assert read_params(edition.folder).model("plain") == Model(
        source="lists", file="lists.csv", name="plain", sha256=sha(LIST)
    )
    with pytest.raises(CleansetError, match=r"expected ROLE=timm:NAME, .* or ROLE=lists:FILE/NAME"):
        models_from_texts(["plain=list:lists.csv/plain"])
    with pytest.raises(CleansetError, match=r"file is needed for source lists"):
        models_from_texts(["plain=lists:plain"])


def test_add_where_the_params_do_not_fit(edition: Edition, monkeypatch: pytest.MonkeyPatch) -> None:
    networks = CONTENT | {"models": {"a": {"source": "timm", "name": "a"}}, "review": {}}
    edition.params_yaml.write_text(before := yaml.safe_dump(networks, sort_keys=False))
    monkeypatch.chdir(edition.folder)
    new = with_lists(models_from_texts(["plain=lists:lists.csv/plain"]), edition.folder)
    with pytest.raises(CleansetError, match=r"review\.wrong_after_crop: reject, but models\.plain is a published list"):
        change_models(edition.folder, new, [])
    assert edition.params_yaml.read_text() == before


def test_a_new_edition_of_lists(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    make_edition(folder / "mine", models_from_texts(["robust=lists:lists.csv/robust", "a=timm:resnet18"]))
    params = read_params(folder / "mine")
    assert params.model("robust").file == "../lists.csv"
    assert (params.protocol, params.select.pool, params.review.wrong_after_crop, params.count.accuracy) == (
        "as_published", "model", "accept", False,
    )  # fmt: skip


def test_the_published_edition(repository: Path) -> None:
    """It has the models of the ImageNet edition, pinned, and differs in nothing that the archives decide."""
    published, networks = (read_params(repository / name) for name in ("imagenet-published", "imagenet"))
    assert list(published.models) == list(networks.models)
    for role, model in published.models.items():
        assert (model.source, model.name, model.is_pinned) == ("lists", role, True)
        check_list(repository / "imagenet-published", role, model)
    assert published.protocol == "as_published"
    assert published.dataset.model_copy(update={"images": "", "devkit": None}) == networks.dataset.model_copy(
        update={"images": "", "devkit": None}
    )
    assert published.dataset.images == f"../imagenet/{networks.dataset.images}"
    assert published.export == networks.export
    assert (repository / "imagenet-published" / "reviews").readlink() == Path("../imagenet/reviews")


def test_every_command_that_runs_a_model_names_the_list(edition: Edition) -> None:
    from typer.testing import CliRunner

    runner = CliRunner()
    for arguments in (
        ["evaluate", "robust", "--model", "robust"],
        ["arrays", str(edition.folder / "out"), "--preprocessing", "robust"],
    ):
        done = runner.invoke(app, [*arguments, "--edition", str(edition.folder)])
        assert "a published list (robust in lists.csv), which has no network to run" in str(done.exception)
