"""A wrong params.yaml is one line that names all missing keys, or the first wrong one."""

import re
from pathlib import Path

import pytest

from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from tests.small_edition import of_one_model
from tests.ten_images import Made

ROOT, DATASET = "root: .\n", "dataset: {images: x}\n"
MODEL = "models:\n  standard: {source: timm, name: resnet18}\n"
BASE = ROOT + DATASET
WNIDS = "expected all, or a list of distinct wnids of ILSVRC2012"
NO_THREAT = "models.standard: threat_model is needed for source robustbench"
THREAT = "models.standard: threat_model with source timm, but only robustbench has it: remove it"
FOLDER = "expected the folder of an edition, with params.yaml in UTF-8, as cleanset edition makes one"


def models(*entries: str) -> str:
    """All keys that are needed, with these models."""
    return f"{BASE}models:\n" + "".join(f"  {each}\n" for each in entries)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{BASE}{MODEL}score: {{batchsize: 5}}",
            ": score: unknown key 'batchsize'; expected device, precision, batch_size",
        ),
        (
            f"{BASE}{MODEL}scores: {{}}",
            ": unknown key 'scores'; expected root, protocol, dataset, models, engine, score, select, review, export, "
            "count",
        ),
        (
            models("standard: {source: timm, name: resnet18, tag: a1}"),
            ": models.standard: unknown key 'tag'; expected source, name, threat_model, weights, file, beyond, sha256, "
            "beyond_sha256, module_sha256, files",
        ),
        (f"{BASE}{MODEL}score: {{batch_size: '256'}}", ": score.batch_size: expected an integer; found '256'"),
        (
            f"{BASE}{MODEL}score: {{precision: float16}}",
            ": score.precision: expected 'float64', 'float32', 'tf32' or 'bfloat16'; found 'float16'",
        ),
        (
            f"{BASE}{MODEL}select: {{candidates: 0}}",
            ": select.candidates: expected greater than or equal to 1; found 0",
        ),
        (
            f"{BASE}{MODEL}score: {{device: gpu}}",
            ": score.device: expected auto, cpu, cuda or cuda:N; found 'gpu'",
        ),
        (f"{ROOT}{MODEL}", ": missing key dataset: add it, as in imagenet/params.yaml"),
        (
            "dataset: {devkit: x}\nmodels: {standard: {}, other: {source: timm}}",
            ": missing keys root, dataset.images, models.standard.source, models.standard.name, models.other.name: add "
            "them, as in imagenet/params.yaml",
        ),
        (f"{BASE}models: {{}}", ": models: expected at least 1 item, not 0"),
        (
            models("Standard: {source: timm, name: resnet18}"),
            ": models.Standard.[key]: expected a match of '^[a-z][a-z0-9_]*$'; found 'Standard'",
        ),
        (
            models("standard: {source: timm, name: resnet18, weights: w.pt, sha256: abc}"),
            ": models.standard.sha256: expected a match of '^[0-9a-f]{64}$'; found 'abc'",
        ),
        (models("standard: {source: robustbench, name: Salman2020Do_R50}"), f": {NO_THREAT}"),
        (models("standard: {source: timm, name: resnet18, threat_model: Linf}"), f": {THREAT}"),
        (
            f"{ROOT}{MODEL}dataset: {{images: x, classes: [n01440764, n99999999]}}",
            f": dataset.classes: 'n99999999' is unknown or doubled; {WNIDS}; found ['n01440764', 'n99999999']",
        ),
        (
            f"{ROOT}{MODEL}dataset: {{images: x, classes: [n01440764, n01440764]}}",
            ": dataset.classes: 'n01440764' is unknown or doubled; expected *",
        ),
        (
            f"{ROOT}{MODEL}dataset: {{images: x, classes: [[n01440764]]}}",
            ": dataset.classes: ['n01440764'] is unknown or doubled; expected *",
        ),
        (f"{ROOT}{MODEL}dataset: {{images: x, classes: []}}", f": dataset.classes: {WNIDS}; found []"),
        (
            f"{BASE}{MODEL}select: {{tiers: []}}",
            ": select.tiers: expected [top5] or [top5, reserve] or [top5, reserve, relaxed]; found []",
        ),
        (f"{BASE}{MODEL}select: {{tiers: [reserve]}}", ": select.tiers: expected [top5] or *; found ['reserve']"),
        (f"{BASE}{MODEL}select: {{tiers: [top5, relaxed]}}", ": select.tiers: expected [top5] or *"),
        (
            f"{BASE}{MODEL}export: {{images_per_class: 2147483648}}",
            ": export.images_per_class: expected a number from 1 to 1,000, or all; found 2147483648",
        ),
        *(
            (
                f"{BASE}{MODEL}export: {{images_per_class: {found}}}",
                f": export.images_per_class: expected a number from 1 to 1,000, or all; found {shown}",
            )
            for found, shown in (("0", "0"), ("most", "'most'"), ("true", "True"), ("2.5", "2.5"), ("null", "None"))
        ),
        (
            models(*(f"{role}: {{source: timm, name: x, weights: w, sha256: {role * 64}}}" for role in "ab")),
            ": models.b.weights: the same as models.a; expected another network for each role: correct it, or *",
        ),
        (
            models(*(f"{role}: {{source: timm, name: {role}, sha256: {'a' * 64}}}" for role in "ab")),
            ": models.b.sha256: the same as models.a; expected another network for each role: correct it, or *",
        ),
        ("", ": the file: expected keys and values; found None"),
        ("root: .\ndataset: {images: x\n", ", line 3: not YAML: did not find expected ',' or '}'"),
        (
            "root: !!python/object:os.system x",
            ", line 1: a tag, '!!python/object:os.system'; expected text, numbers, lists and tables",
        ),
        ("root: \udcff", f": not UTF-8 at byte 6; {FOLDER}"),
    ],
)
def test_wrong_params(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    pattern = ".*".join(re.escape(part) for part in f"{path}{message}".split("*"))
    with pytest.raises(CleansetError, match=f"^{pattern}$"):
        read_params(tmp_path)


def test_no_params(made: Made) -> None:
    made.fails(f"params.yaml: missing; {FOLDER}")
    (made.folder / "params.yaml").write_text(f"{ROOT}{MODEL}")
    made.fails("params.yaml: missing key dataset: add it, as in imagenet/params.yaml")


@pytest.mark.slow
def test_a_key_that_a_later_stage_needs(made: Made, repository: Path) -> None:
    """DVC would report it when that stage's turn comes, after the scoring."""
    made.archives()
    (made.folder / "dvc.yaml").write_text(of_one_model((repository / "dvc.yaml").read_text()))
    made.others = {"dataset": made.dataset | {"classes": "all", "label": "real"}, "protocol": "as_written"} | {
        key: {} for key in ("select", "review", "export")
    }
    made.others |= {"score": {"precision": "float64"}, "review": {"min_crop_pixels": 32}}
    made.params()
    made.fails(
        "params.yaml: no export.images_per_class, count, which stages of dvc.yaml name (review_apply, count): add "
        "them, as in imagenet/params.yaml"
    )
    made.others["export"] = {"images_per_class": 3}
    made.params()
    made.fails("params.yaml: no count, which stage count of dvc.yaml names: add it, as in imagenet/params.yaml")
    made.others["count"] = {}
    made.params()
    made.succeeds("preprocess")
    del made.others["count"]  # after preprocess, which then has nothing to do
    made.params()
    for stage in ("score", "score_crops"):
        made.fails("params.yaml: no count, which stage count of dvc.yaml names: *", stage, "--model", "standard")
