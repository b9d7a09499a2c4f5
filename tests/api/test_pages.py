"""The pages on Python and on code of users: every block runs, in the order of the page."""

from pathlib import Path

import numpy as np
import pytest
import yaml

import cleanset
from cleanset.studies.attacks import earlier_disk
from tests.checkouts import Checkout
from tests.documents import blocks
from tests.evaluation.conftest import draw


@pytest.mark.long
def test_the_page_on_python_runs(repository: Path, built: Checkout, tmp_path: Path) -> None:
    """As one script, which has no guard: worker processes must not begin it again."""
    script = tmp_path / "page.py"
    script.write_text("".join(blocks(repository, "python", "docs/python.md")))
    checkout = built.clone_with_data(tmp_path / "cleanset")
    done = checkout.run("python", str(script))
    assert "Wilson" in done.stdout
    assert r"\begin{table}" in done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_the_page_on_code_of_users_runs(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a process that bubblewrap or gVisor begins imports torch again, which takes seconds
    monkeypatch.setattr(earlier_disk, "beginning", lambda *_: None)
    attack, weather, measure, hint = blocks(repository, "python", "docs/extending.md")
    (tmp_path / "my_measures.py").write_text(measure)
    attacks, corruptions, review, _ = map(yaml.safe_load, blocks(repository, "yaml", "docs/extending.md"))
    (tmp_path / "my_hints.py").write_text(hint)
    (tmp_path / "my_attack.py").write_text(attack)
    (tmp_path / "my_weather.py").write_text(weather)
    (tmp_path / "paints.py").write_text(
        "from torch import nn\n\n\ndef net():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(192, 1000)), 'timm-bilinear-8-8'\n"
    )
    for number in range(2):
        draw(tmp_path / "images" / "n01440764" / f"{number}.png", (200, 90 * number, 20))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    evaluated = cleanset.evaluate("paints:net", "images", measures=["my_measures:worst_class"])
    assert "worst_class" in evaluated.table()
    worst = evaluated.as_dict()["models"][0]["custom_measures"]["my_measures:worst_class"]
    assert (worst["value"], worst["interval"], len(worst["code"])) == (evaluated.accuracy, [evaluated.accuracy] * 2, 64)
    image = np.zeros((64, 64, 3), np.uint8)
    rainy = cleanset.corrupt(image, "my_weather:rain", severity=1)
    assert 12 <= (rainy == 230).all(axis=2).sum() <= 40 * 12
    found = cleanset.robustness("paints:net", "images", families=corruptions)
    assert {"fog", "my_weather:rain"} <= set(found.to_pandas()["change"])
    draw(tmp_path / "images" / "n01440764" / "white.png", (255, 255, 255))
    hinted = cleanset.hints("images", text=False, custom=review["review"]["hints"])
    white = hinted.to_pandas().query("hint == 'glare'")
    assert white[["image", "sign", "value"]].values.tolist() == [["n01440764/white.png", "white areas", 1.0]]
    assert len(hinted.as_dict()["code"]["my_hints:Glare"]) == 64
    attacked = cleanset.attack("paints:net", "images", attacks["attacks"], eps="2/255", warnings=False)
    assert attacked.problems == {}
    assert attacked.as_dict()["attacks"]["mine"]["parameters"] == {"steps": 10}
