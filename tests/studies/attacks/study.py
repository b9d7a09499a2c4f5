"""An edition of four drawn images and one untrained network, whose scores and predictions are stored, without DVC."""

import hashlib
import json
from pathlib import Path

import pandas as pd
import timm
import torch
from safetensors.torch import save_file

from cleanset.classes import imagenet
from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition
from cleanset.scoring.engine import score_few, settings_for
from cleanset.scoring.models import load_model
from cleanset.studies.attacks.study import AttackStudy
from cleanset.studies.robustness.answers import ANSWER_TABLES, ReadAnswers, with_family_step
from cleanset.studies.robustness.families import family_named
from cleanset.studies.robustness.images import STUDY_IMAGES, ChangeName
from cleanset.tables import CROP_SCORES, SCORES, write_table
from tests.ten_images import drawn_image, id_of, jpeg

NETWORK, ROLE = "test_byobnet", "standard"
COUNT = 4


def made_study(folder: Path) -> AttackStudy:
    """Two of the four images are labeled with what the network predicts."""
    study = AttackStudy(folder / "studies" / "attacks")
    for each in (study.folder, study.robustness.folder):
        each.mkdir(parents=True)
    weights = folder / "w.safetensors"
    images = {id_of(number): jpeg(drawn_image(180, 170, seed=number)) for number in range(1, COUNT + 1)}
    save_file(tensors(), weights)
    digest = hashlib.sha256(weights.read_bytes()).hexdigest()
    model = {"source": "timm", "name": NETWORK, "weights": "w.safetensors", "sha256": digest}
    params = {
        "root": ".", "protocol": "as_written", "dataset": {"images": "a.tar", "label": "real"}, "models": {ROLE: model},
        "score": {"device": "cpu", "precision": "float64", "batch_size": 4}, "count": {"published_top1": {}},
    }  # fmt: skip
    (folder / "params.yaml").write_text(json.dumps(params))
    study.robustness.params_yaml.write_text("images: union\njpeg: null\nseed: 0\n")
    study.params_yaml.write_text("bootstrap: {draws: 50}\n")
    score(study, images)
    return study


def tensors() -> dict[str, torch.Tensor]:
    """Random weights, the last layer moved so that not all images get the same class."""
    torch.manual_seed(0)
    network = timm.create_model(NETWORK, pretrained=False).eval()
    with torch.no_grad():
        features = network.forward_head(network.forward_features(torch.rand(8, 3, 160, 160)), pre_logits=True)
        layer = network.get_classifier()
        layer.weight *= 100
        layer.bias -= layer.weight @ features.mean(dim=0)
    return dict(network.state_dict())


def score(study: AttackStudy, images: dict[str, bytes]) -> None:
    """Store the scores, the exported images and the answers to them, by the package's own scorer."""
    edition: Edition = study.edition
    params = read_params(edition.folder)
    model = load_model(params.model(ROLE), edition.folder)
    scores = score_few(model, images.__getitem__, settings_for(params.score), list(images))
    top = [int(classes[0]) for classes in scores["top5_class"]]
    labels = [label if number % 2 == 0 else (label + 1) % 1000 for number, label in enumerate(top)]
    write_table(edition.scores(ROLE), scores, SCORES, imagenet())
    write_table(edition.crop_scores(ROLE), pd.DataFrame(columns=CROP_SCORES.names), CROP_SCORES, imagenet())
    rows = []
    for (image_id, data), label in zip(images.items(), labels, strict=True):
        file = f"{imagenet().keys[label]}/{image_id}.JPEG"
        path = edition.export(ROLE) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        rows.append((file, image_id, label, None, hashlib.sha256(data).hexdigest(), [ROLE]))
    table = pd.DataFrame(rows, columns=STUDY_IMAGES.names)
    write_table(study.robustness.images, table, STUDY_IMAGES, imagenet())
    read_off = ReadAnswers(range(1000), dict(zip(table["file"], labels, strict=True)))
    files = dict(zip(table["file"], images.values(), strict=True))
    names = [ChangeName(file, "clean", 0) for file in files]
    answers = score_few(model, lambda name: files[name.file], settings_for(params.score), names, read_off=read_off)
    for family in ("corruptions", "scenarios"):
        of_family = with_family_step(answers, family_named(family))
        write_table(study.robustness.answers.predictions(family, ROLE), of_family, ANSWER_TABLES[family], imagenet())
