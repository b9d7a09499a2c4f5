"""The differences between SCOOTER's text and the published set: pool, order, label, and the name that sets all of
them."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from cleanset.edition.params import Params, read_params
from cleanset.errors import CleansetError
from cleanset.selection.candidates import candidates, margins, relaxed, shared
from cleanset.selection.rule import Label, Pool, Rule
from tests.selection.by_hand import index_of, scores_of

MINE = {"a": (5, 0.875), "b": (5, 0.75), "c": (5, 0.625), "d": (5, 0.5)}
OTHER = MINE | {"a": (6, 0.5), "c": (6, 0.5)}


def by_rank(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Image ids and tiers, by rank."""
    return list(table.sort_values("rank")[["image_id", "tier"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("pool", "expected", "margin"),
    [
        ("ensemble", [("b", "top5"), ("d", "top5"), ("a", "reserve"), ("c", "reserve")], []),
        ("model", [("a", "top5"), ("b", "top5"), ("c", "reserve"), ("d", "reserve")], [("b", "c", 0.125)]),
    ],
)
def test_pool(pool: Pool, expected: list[tuple[str, str]], margin: list[tuple[str, str, float]]) -> None:
    """The other model gets b and d right, this one all four."""
    index, mine, other = index_of({name: [5] for name in MINE}), scores_of(MINE), scores_of(OTHER)
    table = candidates(index, shared(index, [mine, other]), mine, [5], Rule(2, pool))
    assert by_rank(table) == expected
    found = margins(table)[["image_id", "next_image_id", "margin"]]
    assert list(found.itertuples(index=False, name=None)) == margin


def saturated() -> pd.DataFrame:
    """All confidences are 1 in float32; c has the highest log-odds, b and d the same."""
    scores = scores_of(dict.fromkeys("abcd", (5, 1.0)))
    return scores.assign(log_odds=np.array([20, 25, 40, 25], dtype=np.float32))


def test_order_by_log_odds() -> None:
    index, scores = index_of({name: [5] for name in "abcd"}), saturated()
    table = candidates(index, shared(index, [scores]), scores, [5], Rule(3, order="log_odds"))
    assert [name for name, _ in by_rank(table)] == ["c", "b", "d", "a"]
    row = margins(table).iloc[0]
    assert (row["image_id"], row["next_image_id"]) == ("d", "a")
    assert (row["margin"], row["log_odds_margin"]) == (0.0, 5.0)


def test_order_as_published() -> None:
    """Equal in float32: by file name. Then the first one out may have the higher log-odds."""
    index, scores = index_of({name: [5] for name in "abcd"}), saturated()
    table = candidates(index, shared(index, [scores]), scores, [5], Rule(2, order="float32"))
    assert [name for name, _ in by_rank(table)] == ["a", "b", "c", "d"]
    row = margins(table).iloc[0]
    assert (row["margin"], row["log_odds_margin"]) == (0.0, -15.0)


def test_log_odds_equal_in_float32_are_distinguished_by_confidence() -> None:
    index = index_of({"a": [5], "b": [5]})
    scores = scores_of({"a": (5, 0.015625), "b": (5, 0.015625001)}).assign(log_odds=np.float32(-4.143135))
    table = candidates(index, shared(index, [scores]), scores, [5], Rule(1))
    assert [name for name, _ in by_rank(table)] == ["b", "a"]
    assert margins(table).iloc[0]["margin"] > 0


@pytest.mark.parametrize(("label", "expected"), [("real", ["a", "b"]), ("both", ["a"])])
def test_label(label: Label, expected: list[str]) -> None:
    """The ILSVRC label of b is another class."""
    index = index_of({"a": [5], "b": [5]}).assign(ilsvrc_class=[5, 6])
    scores = scores_of({"a": (5, 0.5), "b": (5, 0.75)})
    assert sorted(shared(index, [scores, scores], label)["image_id"]) == expected
    table = candidates(index, shared(index, [scores], label), scores, [5], Rule(label=label))
    assert sorted(table["image_id"]) == expected


@pytest.mark.parametrize(("label", "expected"), [("real", ["a", "b"]), ("both", ["a"])])
def test_label_of_an_image_with_several(label: Label, expected: list[str]) -> None:
    index = index_of({"a": [5, 6], "b": [5, 6]}).assign(ilsvrc_class=[5, 6])
    assert sorted(relaxed(index, scores_of({"a": (5, 0.5), "b": (5, 0.5)}), label)["image_id"]) == expected


def params_of(folder: Path, **sections: Any) -> Params:
    content = {"root": ".", "dataset": {"images": "x"}, "models": {"one": {"source": "timm", "name": "a"}}}
    (folder / "params.yaml").write_text(yaml.safe_dump(content | sections))
    return read_params(folder)


def readings(params: Params) -> tuple[Any, ...]:
    return params.select.pool, params.select.order, params.select.tiers, params.review.crops


def test_protocol(tmp_path: Path) -> None:
    written = ("ensemble", "log_odds", ["top5", "reserve"], "last")
    published = ("model", "float32", ["top5", "reserve"], "in_rank")
    assert readings(params_of(tmp_path)) == written
    assert readings(params_of(tmp_path, protocol="as_written", select={"candidates": 4})) == written
    assert readings(params_of(tmp_path, protocol="as_published", review={"policy": "single"})) == published


def test_a_key_of_the_file_is_above_the_protocol(tmp_path: Path) -> None:
    params = params_of(tmp_path, protocol="as_published", select={"order": "log_odds"}, review={"crops": "last"})
    assert readings(params) == ("model", "log_odds", ["top5", "reserve"], "last")
    assert params.rule("one") == Rule(5, "model", "log_odds", "real")


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"protocol": "published"}, "protocol: .*'as_written' or 'as_published'"),
        ({"protocol": ["as_written"]}, "protocol: "),
        ({"select": {"order": "float64"}}, r"select\.order: "),
        ({"select": ["top5"]}, "select: "),
        ({"dataset": {"images": "x", "label": "ilsvrc"}}, r"dataset\.label: "),
    ],
)
def test_readings_that_are_none(tmp_path: Path, sections: dict[str, Any], message: str) -> None:
    with pytest.raises(CleansetError, match=message):
        params_of(tmp_path, **sections)
