"""Work that is split among reviewers, and addresses that nothing can be shown for."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.browser_tab import Server

from .conftest import Open, Serve
from .reviewing import TabAlone, reviews
from .test_reviewing import with_one_model


def settle_all(tab: TabAlone) -> list[str]:
    """Find everything clean; the classes that were shown."""
    seen: list[str] = []
    while not tab.ended:
        seen.append(tab.wnid)
        tab.type("a")
    return seen


@pytest.mark.long
def test_two_halves_and_the_classes_that_both_have(edition: Path, start: Serve, visit: Open) -> None:
    """The sixth and the last of twelve classes are common, and the second reviewer is asked there as the first was."""
    with_one_model(edition)
    params = yaml.safe_load((edition / "params.yaml").read_text())
    params["review"] = params.get("review", {}) | {"overlap": 0.17}
    (edition / "params.yaml").write_text(yaml.safe_dump(params))
    assert "of 7 classes" in visit(start("ada", "--share", "1/2")).page.inner_text(".progress")
    shown = settle_all(TabAlone(edition, "ada", share="1/2"))
    shown_to_ben = settle_all(TabAlone(edition, "ben", share="2/2"))
    assert (len(shown), len(shown_to_ben), len({*shown, *shown_to_ben})) == (7, 7, 12)
    common = set(shown) & set(shown_to_ben)
    assert common == set(reviews(edition, "ada")) & set(reviews(edition, "ben"))
    assert all(reviews(edition, "ada")[wnid] == reviews(edition, "ben")[wnid] for wnid in common)


def answer(server: Server, path: str) -> tuple[int, str]:
    """Status and text of an address that is refused."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(urllib.request.Request(server.page + path, headers=server.cookie), timeout=30)
    return caught.value.code, caught.value.read().decode().strip()


@pytest.mark.long
def test_a_wrong_address_is_reported(unchanged: Server, visit: Open) -> None:
    server = unchanged
    image = visit(server).focus
    assert answer(server, "image/huge/x") == (404, "unknown size 'huge'; expected card, small, tile, full")
    assert answer(server, "crop/x?box=1") == (404, "unknown image 'x'; expected the id of a candidate")
    assert answer(server, f"seen/large/{image}")[1].startswith("unknown model 'large'; expected ")
    for box in ("1,2,3", "a,b,c,d", "0,0,9999,9999", "5,5,5,5", "1.5,0,10,10"):
        status, text = answer(server, f"crop/{image}?box={box}")
        assert (status, text.split(";")[0].split(" in whole")[0]) == (
            400, f"{image}: box={box}: expected box=left,top,right,bottom",
        )  # fmt: skip
