"""Models added, removed and pinned in the texts of params.yaml and dvc.yaml."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cleanset.edition.models import change_models, model_from_text, models_from_texts, with_files_of, with_models
from cleanset.edition.params import Model, Params, read_params
from cleanset.edition.paths import Edition
from cleanset.edition.pipeline import check_roles
from cleanset.errors import CleansetError
from tests.properties import examples

A, B, C = "a" * 64, "b" * 64, "c" * 64
MINE = Model(source="timm", name="resnet50.tv_in1k")
LOCAL = Model(source="timm", name="resnet18", weights="mine.pt", sha256=A)

PARAMS = f"""\
# an edition of mine
root: .
dataset: {{images: none.tar, devkit: null}} # never read here

models:                         # three of them
  standard: {{source: timm, name: resnet50.a1_in1k}}    # downloaded
  # trained here
  robust:
    source: timm                # mine
    name: "resnet18"
    weights: w.pt
    sha256: {B}
  third: {{source: robustbench, name: Salman2020Do_R50, threat_model: Linf}} # last

# and how
review: {{policy: single}}
count:
  # in percent
  published_top1: {{standard: 80.38, third: 64.02}}
"""
PIPELINE = """\
# the pipeline
stages:
  score:
    matrix:
      model: ${models}
    cmd: cleanset score --model ${item.model}
    deps:
      - data/index.parquet
    outs:
      - data/scores/${item.model}.parquet

  intersect:
    cmd: cleanset intersect
    deps:
      - data/index.parquet
      - data/scores/standard.parquet
      - data/scores/robust.parquet # mine
      - data/scores/third.parquet
      - ${root}/src/cleanset/selection/candidates.py

  report:
    cmd: cleanset report
    deps:
      - data/crop_scores/standard.parquet
      - data/crop_scores/robust.parquet
      - data/crop_scores/third.parquet
      - data/selection/standard.parquet
      - data/selection/robust.parquet
      - data/selection/third.parquet
      - data/rejected/standard.parquet
      - data/rejected/robust.parquet
      - data/rejected/third.parquet
      - data/scores/standard.json
      - data/scores/robust.json
      - data/scores/third.json
"""
COMMENTED = PIPELINE.replace(
    "      - data/scores/third.parquet", "      # mine, too\n      - data/scores/third.parquet"
)


def models_of(text: str) -> dict[str, Model]:
    return Params.model_validate(yaml.safe_load(text)).models


def difference(before: str, after: str) -> tuple[list[str], list[str]]:
    """The lines that went, and those that came."""
    old, new = before.splitlines(), after.splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


class TestTexts:
    def test_adding_adds_lines_and_no_more(self) -> None:
        models = models_of(PARAMS) | {"mine": MINE, "local": LOCAL}
        params, pipeline = with_models(PARAMS, models), with_files_of(PIPELINE, models)
        last = "  third: {source: robustbench, name: Salman2020Do_R50, threat_model: Linf} # last\n"
        assert params == PARAMS.replace(
            last,
            f"{last}  mine: {{source: timm, name: resnet50.tv_in1k}}\n"
            f"  local:\n    source: timm\n    name: resnet18\n    weights: mine.pt\n    sha256: {A}\n",
        )
        expected = PIPELINE
        for folder, ending in (
            ("scores", "parquet"),
            ("crop_scores", "parquet"),
            ("selection", "parquet"),
            ("rejected", "parquet"),
            ("scores", "json"),
        ):
            line = f"      - data/{folder}/third.{ending}\n"
            assert expected.count(line) == 1
            new = "".join(line.replace("third", role) for role in ("mine", "local"))
            expected = expected.replace(line, line + new)
        assert pipeline == expected

    @pytest.mark.parametrize("role", ["standard", "third"])
    def test_removing_removes_its_lines_and_its_published_accuracy(self, role: str) -> None:
        text = PARAMS.replace("  # trained here\n", "")
        rest = {name: model for name, model in models_of(PARAMS).items() if name != role}
        gone, came = difference(text, with_models(text, rest))
        assert [line.split(":")[0] for line in gone] == [f"  {role}", "  published_top1"]
        assert came == [
            "  published_top1: {third: 64.02}" if role == "standard" else "  published_top1: {standard: 80.38}"
        ]
        gone, came = difference(PIPELINE, with_files_of(PIPELINE, rest))
        assert (len(gone), came) == (5, [])
        assert all(f"/{role}." in line for line in gone)

    def test_what_is_added_can_be_removed_to_the_same_text(self) -> None:
        more = models_of(PARAMS) | {"local": LOCAL}
        assert with_files_of(with_files_of(PIPELINE, more), models_of(PARAMS)) == PIPELINE

    def test_a_comment_above_a_model_stays_above_it_or_the_change_is_refused(self) -> None:
        models = models_of(PARAMS)
        without = {role: {name: models[name] for name in models if name != role} for role in models}
        gone, _ = difference(PARAMS, with_models(PARAMS, without["standard"]))
        assert [line.split(":")[0] for line in gone] == ["  standard", "  published_top1"]
        inside = PARAMS.replace("  # trained here\n", "").replace("    name: ", "    # a small one\n    name: ")
        for text in (PARAMS, inside):
            with pytest.raises(CleansetError, match=r"^params\.yaml: .* change section models by hand: no robust$"):
                with_models(text, without["robust"])

    def test_a_comment_next_to_a_file_goes_with_it(self) -> None:
        roles = {"standard": MINE, "third": MINE}
        assert "# mine" not in with_files_of(PIPELINE, roles)

    def test_other_models_in_another_order(self) -> None:
        text = with_models(
            PARAMS.replace("  # trained here\n", "").replace("\n# and how", ""), {"mine": MINE, "standard": MINE}
        )
        assert list(models_of(text)) == ["mine", "standard"]
        assert "published_top1: {}\n" in text
        pipeline = with_files_of(PIPELINE.replace(" # mine", ""), {"mine": MINE, "standard": MINE})
        assert yaml.safe_load(pipeline)["stages"]["intersect"]["deps"] == [
            "data/index.parquet",
            "data/scores/mine.parquet",
            "data/scores/standard.parquet",
            "${root}/src/cleanset/selection/candidates.py",
        ]

    @pytest.mark.parametrize("text", [PARAMS.replace("root: .", "root: !!str ."), PARAMS + "---\n"])
    def test_what_no_reader_of_this_project_accepts_is_refused(self, text: str) -> None:
        with pytest.raises(CleansetError, match=r"^params\.yaml, line \d+: "):
            with_models(text, {"mine": MINE})

    def test_the_refusal_says_what_to_write(self) -> None:
        text = PARAMS.replace("  third:", "  # the third\n  third:")
        models = {role: model for role, model in models_of(text).items() if role != "third"} | {"local": LOCAL}
        with pytest.raises(CleansetError) as refused:
            with_models(text, models)
        assert str(refused.value) == (
            "params.yaml: in this layout a change would touch other lines or comments; change section models by hand: "
            f"local: {{source: timm, name: resnet18, weights: mine.pt, sha256: {A}}}; no third"
        )
        with pytest.raises(CleansetError) as refused:
            with_files_of(COMMENTED, models)
        assert str(refused.value) == (
            "dvc.yaml: in this layout a change would touch other lines or comments; list by hand the files of "
            "standard, robust, local, and no others, in the deps of intersect, count and report"
        )


class TestPinning:
    @staticmethod
    def pinned(text: str, digests: dict[str, str]) -> str:
        return with_models(
            text,
            {
                role: model.model_copy(update={"sha256": digests.get(role, model.sha256)})
                for role, model in models_of(text).items()
            },
        )

    def test_all_else_stays(self) -> None:
        gone, came = difference(PARAMS, self.pinned(PARAMS, {"standard": A, "third": C}))
        assert gone == [
            "  standard: {source: timm, name: resnet50.a1_in1k}    # downloaded",
            "  third: {source: robustbench, name: Salman2020Do_R50, threat_model: Linf} # last",
        ]
        assert came == [line.replace("}", f", sha256: {digest}}}") for line, digest in zip(gone, (A, C), strict=True)]

    def test_a_digest_takes_the_place_of_null(self) -> None:
        text = "root: .\ndataset: {images: ü.tar}\nmodels:\n  a: {source: timm, sha256: null, name: ü}\n"
        assert self.pinned(text, {"a": A}) == text.replace("null", A)

    def test_an_anchor_is_refused(self) -> None:
        text = "root: .\ndataset: {images: x}\nmodels:\n  a: &m {source: timm, name: x}\n  b: *m\n"
        with pytest.raises(CleansetError, match=r"^params.yaml, line 4: an anchor or alias"):
            self.pinned(text, {"a": A})


NOTES = st.sampled_from(["", "  # note", " # a: b"])
ABOVE = st.lists(st.sampled_from(["", "# at the margin", "    # above", "            # further in"]), max_size=2)


@st.composite
def handwritten(draw: st.DrawFn) -> str:
    """A params.yaml as people write them: indents, quotes, brackets, comments and line ends of any kind."""
    indent, step = (" " * draw(st.sampled_from([1, 2, 4])) for _ in range(2))

    def quoted(text: str) -> str:
        return draw(st.sampled_from([text, f"'{text}'", f'"{text}"']))

    roles = ["one", "two", "three"][: draw(st.integers(1, 3))]
    entry = "{{source: timm,{}name: {}{}}}"
    lines = [
        *draw(ABOVE),
        f"root:   {quoted('.')}{draw(NOTES)}",
        "dataset: {images: x,",
        "   devkit: ~ }",
        *draw(ABOVE),
    ]
    if draw(st.integers(0, 3)) == 0:
        entries = (f"{quoted(role)}: {entry.format(' ', role, '')}" for role in roles)
        lines.append("models: {" + ", ".join(entries) + "}" + draw(NOTES))
    else:
        lines.append(f"models:{draw(NOTES)}")
        for role in roles:
            lines += draw(ABOVE)
            if draw(st.booleans()):
                gap, end = draw(st.sampled_from([" ", "\n            "])), draw(st.sampled_from(["", " ", ", "]))
                lines += f"{indent}{role}: {entry.format(gap, quoted(role), end)}{draw(NOTES)}".split("\n")
            else:
                fields = f"{indent}{step}name:  {quoted(role)}{draw(NOTES)}", f"{indent}{step}source: timm{draw(NOTES)}"
                lines += [f"{indent}{quoted(role)}:{draw(NOTES)}", *draw(ABOVE), *draw(st.permutations(fields))]
    lines += [*draw(ABOVE), f"count:{draw(NOTES)}", f"{indent}published_top1: {{one: 80.50 }}", *draw(ABOVE)]
    if draw(st.booleans()):
        lines.append("review:\n  policy: single")
    return "\n".join(lines).replace("\n", draw(st.sampled_from(["\n", "\r\n"]))) + draw(st.sampled_from(["", "\n"]))


@pytest.mark.long
@examples(100, fast=30)
@given(handwritten(), st.sampled_from([{"mine": MINE}, {"mine": MINE, "local": LOCAL}, {"local": LOCAL}]))
def test_what_is_added_to_a_handwritten_file_can_be_removed(text: str, new: dict[str, Model]) -> None:
    models = models_of(text)
    more = with_models(text, models | new)
    assert list(models_of(more).items()) == [*models.items(), *new.items()]
    assert with_models(more, models) == text
    if "models: {" not in text:
        assert difference(text, more)[0] == []
        added = sum(1 if model.sha256 is None else 5 for model in new.values())
        assert len(more.splitlines()) == len(text.splitlines()) + added
    digests = {
        role: model.model_copy(update={"sha256": role.encode().hex().zfill(64)}) for role, model in models.items()
    }
    pinned = with_models(text, digests)
    assert models_of(pinned) == digests
    assert with_models(pinned, models) == text


class TestFiles:
    @pytest.fixture
    def edition(self, tmp_path: Path) -> Path:
        (tmp_path / "params.yaml").write_text(PARAMS)
        (tmp_path / "dvc.yaml").write_text(PIPELINE)
        return tmp_path

    def test_both_files_agree_afterwards(self, edition: Path) -> None:
        change_models(edition, {"mine": MINE}, ["third"])
        assert list(read_params(edition).models) == ["standard", "robust", "mine"]
        check_roles(Edition(edition), ["standard", "robust", "mine"])
        assert sorted(path.name for path in edition.iterdir()) == ["dvc.yaml", "params.yaml"]

    @pytest.mark.parametrize("full", ["params.yaml", "dvc.yaml"])
    def test_neither_is_written_when_one_cannot_be(
        self, edition: Path, full: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rename = Path.replace

        def failing(path: Path, target: Path) -> Path:
            if Path(target).name == full:
                raise OSError(28, "No space left on device", str(target))
            return rename(path, target)

        monkeypatch.setattr(Path, "replace", failing)
        with pytest.raises(OSError, match="No space left"):
            change_models(edition, {"mine": MINE}, [])
        monkeypatch.undo()
        assert [(edition / name).read_text() for name in ("params.yaml", "dvc.yaml")] == [PARAMS, PIPELINE]
        assert sorted(path.name for path in edition.iterdir()) == ["dvc.yaml", "params.yaml"]
        (edition / "dvc.yaml").write_text(COMMENTED)
        with pytest.raises(CleansetError, match=r"^dvc\.yaml"):
            change_models(edition, {"mine": MINE}, ["third"])
        assert (edition / "params.yaml").read_text() == PARAMS

    def test_without_a_pipeline_only_params_change(self, edition: Path) -> None:
        (edition / "dvc.yaml").unlink()
        change_models(edition, {"mine": MINE}, [])
        assert "mine" in read_params(edition).models


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=timm:resnet18.a1_in1k", ("a", {"source": "timm", "name": "resnet18.a1_in1k"})),
        ("b_2=robustbench:L2/X", ("b_2", {"source": "robustbench", "name": "X", "threat_model": "L2"})),
    ],
)
def test_a_model_from_text(text: str, expected: tuple[str, dict[str, str]]) -> None:
    role, model = model_from_text(text)
    assert (role, model.model_dump(exclude_none=True)) == expected


@pytest.mark.parametrize("text", ["a", "a=b:c", "=timm:x", "a=timm:", "a=robustbench:x", "a=robustbench:Linf/", "a:b"])
def test_no_model_from_other_text(text: str) -> None:
    with pytest.raises(
        CleansetError, match=f"^'{text}': expected ROLE=timm:NAME, ROLE=torchvision:NAME.WEIGHTS or ROLE=rob"
    ):
        model_from_text(text)


def test_a_role_comes_once() -> None:
    with pytest.raises(CleansetError, match=r"^'a=timm:y': role a a second time"):
        models_from_texts(["a=timm:x", "a=timm:y"])
