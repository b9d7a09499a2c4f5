"""A wrong params.yaml is one line that names all missing keys, or the first wrong one."""

from pathlib import Path

import pytest

from tests.small_edition import of_one_model
from tests.ten_images import Made


class TestParams:
    """The first wrong key of params.yaml, by its name."""

    def fails(self, made: Made, message: str, text: str) -> None:
        made.archives()
        (made.folder / "params.yaml").write_text(text)
        made.fails(f"params.yaml: {message}")

    BASE = "root: .\ndataset: {images: x}\n"
    MODEL = "models:\n  standard: {source: timm, name: resnet18}\n"

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            (
                "score: unknown key 'batchsize'; expected engine, device, precision, batch_size",
                f"{BASE}{MODEL}score: {{batchsize: 5}}\n",
            ),
            (
                "unknown key 'scores'; expected root, protocol, dataset, models, score, select, review, export, count",
                f"{BASE}{MODEL}scores: {{}}\n",
            ),
            (
                "models.standard: unknown key 'tag'; expected source, name, threat_model, "
                "weights, file, beyond, sha256, beyond_sha256",
                f"{BASE}models:\n  standard: {{source: timm, name: resnet18, tag: a1}}\n",
            ),
            (
                "score.batch_size: expected an integer; found '256'",
                f"{BASE}{MODEL}score: {{batch_size: '256'}}\n",
            ),
            (
                "score.precision: expected 'float64', 'float32', 'tf32' or 'bfloat16'; found 'float16'",
                f"{BASE}{MODEL}score: {{precision: float16}}\n",
            ),
            (
                "select.candidates: expected greater than or equal to 1; found 0",
                f"{BASE}{MODEL}select: {{candidates: 0}}\n",
            ),
            (
                "score.device: expected a match of '^(auto|cpu|cuda(:[0-9]{1,3})?)$'; found 'gpu'",
                f"{BASE}{MODEL}score: {{device: gpu}}\n",
            ),
            ("missing key dataset: add it, as in imagenet/params.yaml", f"root: .\n{MODEL}"),
            (
                "missing keys root, dataset.images, models.standard.source, models.standard.name, models.other.name: "
                "add them, as in imagenet/params.yaml",
                "dataset: {devkit: x}\nmodels: {standard: {}, other: {source: timm}}\n",
            ),
            ("models: expected at least 1 item, not 0", f"{BASE}models: {{}}\n"),
            (
                "models.Standard.[key]: expected a match of '^[a-z][a-z0-9_]*$'; found 'Standard'",
                f"{BASE}models:\n  Standard: {{source: timm, name: resnet18}}\n",
            ),
            (
                "models.standard.sha256: expected a match of '^[0-9a-f]{64}$'; found 'abc'",
                f"{BASE}models:\n  standard: {{source: timm, name: resnet18, weights: w.pt, sha256: abc}}\n",
            ),
            (
                "models.standard: threat_model is needed for source robustbench, and for no other",
                f"{BASE}models:\n  standard: {{source: robustbench, name: Salman2020Do_R50}}\n",
            ),
            (
                "models.standard: threat_model is needed for source robustbench, and for no other",
                f"{BASE}models:\n  standard: {{source: timm, name: resnet18, threat_model: Linf}}\n",
            ),
            (
                "dataset.classes: 'n99999999' is unknown or doubled; expected all, or a list of distinct wnids of "
                "ILSVRC2012; found ['n01440764', 'n99999999']",
                f"root: .\ndataset: {{images: x, classes: [n01440764, n99999999]}}\n{MODEL}",
            ),
            (
                "dataset.classes: 'n01440764' is unknown or doubled; expected *",
                f"root: .\ndataset: {{images: x, classes: [n01440764, n01440764]}}\n{MODEL}",
            ),
            (
                "dataset.classes: ['n01440764'] is unknown or doubled; expected *",
                f"root: .\ndataset: {{images: x, classes: [[n01440764]]}}\n{MODEL}",
            ),
            (
                "dataset.classes: expected all, or a list of distinct wnids of ILSVRC2012; found []",
                f"root: .\ndataset: {{images: x, classes: []}}\n{MODEL}",
            ),
            (
                "select.tiers: expected [top5] or [top5, reserve] or [top5, reserve, relaxed]; found []",
                f"{BASE}{MODEL}select: {{tiers: []}}\n",
            ),
            ("select.tiers: expected [top5] or *; found ['reserve']", f"{BASE}{MODEL}select: {{tiers: [reserve]}}\n"),
            ("select.tiers: expected [top5] or *", f"{BASE}{MODEL}select: {{tiers: [top5, relaxed]}}\n"),
            (
                "export.images_per_class: expected less than or equal to 1000; found 2147483648",
                f"{BASE}{MODEL}export: {{images_per_class: 2147483648}}\n",
            ),
            (
                "models.b.weights: that of models.a; expected another network for each role: correct it, or *",
                f"{BASE}models:\n  a: {{source: timm, name: x, weights: w, sha256: {'a' * 64}}}\n"
                f"  b: {{source: timm, name: x, weights: w, sha256: {'b' * 64}}}\n",
            ),
            (
                "models.b.sha256: that of models.a; expected another network for each role: correct it, or *",
                f"{BASE}models:\n  a: {{source: timm, name: x, sha256: {'a' * 64}}}\n"
                + f"  b: {{source: timm, name: y, sha256: {'a' * 64}}}\n",
            ),
            ("the file: expected keys and values; found None", ""),
        ],
    )
    def test_wrong(self, made: Made, message: str, text: str) -> None:
        self.fails(made, message, text)

    @pytest.mark.parametrize(
        ("message", "text"),
        [
            (", line 3: not YAML: did not find expected ',' or '}'", "root: .\ndataset: {images: x\n"),
            (
                ", line 1: a tag, '!!python/object:os.system'; expected text, numbers, lists and tables",
                "root: !!python/object:os.system x\n",
            ),
        ],
    )
    def test_not_the_yaml_of_params(self, made: Made, message: str, text: str) -> None:
        made.archives()
        (made.folder / "params.yaml").write_text(text)
        made.fails(f"params.yaml{message}")

    def test_missing_file(self, made: Made) -> None:
        made.fails("params.yaml: missing; expected the folder of an edition, with params.yaml in UTF-8 (see README)")

    def test_other_encoding(self, made: Made) -> None:
        (made.folder / "params.yaml").write_bytes(b"root: \xff")
        made.fails(
            "params.yaml: not UTF-8 at byte 6; "
            "expected the folder of an edition, with params.yaml in UTF-8 (see README)"
        )

    @pytest.mark.slow
    def test_a_key_that_a_later_stage_needs(self, made: Made, repository: Path) -> None:
        """DVC would say so when that stage's turn comes, after the scoring."""
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
