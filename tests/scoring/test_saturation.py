"""Log-odds where probabilities are no order any more: a model of the sample, its logits multiplied by 30."""

from dataclasses import replace

import pandas as pd
import pytest
import torch

from cleanset.edition.params import read_params
from cleanset.edition.paths import Edition, verified_images
from cleanset.scoring.engine import Settings, score_few
from cleanset.scoring.models import load_model
from cleanset.selection.candidates import correct, ordered
from cleanset.tables import INDEX, read_table
from tests.checkouts import Checkout

pytestmark = pytest.mark.slow

ROLE = "standard"


class Times30(torch.nn.Module):
    """A network whose logits are 30 times those of another."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = 30 * self.network(pixels)
        return logits


def tied_neighbours(index: pd.DataFrame, scores: pd.DataFrame, column: str) -> int:
    """Neighbours in the order of a class that are equal in `column`."""
    table = ordered(correct(index, scores).assign(tier="top5"))
    return int((table.groupby("class_index")[column].diff() == 0).sum())


@pytest.fixture(scope="module")
def saturated(built: Checkout) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The sample's index, and the scores of the model that saturates."""
    edition = Edition(built.folder)
    params, index = read_params(edition.folder), read_table(edition.index, INDEX)
    model = load_model(params.model(ROLE), edition.folder)
    model = replace(model, network=Times30(model.network))
    read = verified_images(edition, params.dataset.images, index).read
    return index, score_few(model, read, Settings([torch.device("cpu")], "float64", 4, 2), index["image_id"].tolist())


def test_ties_vanish(saturated: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    index, scores = saturated
    assert tied_neighbours(index, scores, "confidence") > 100
    assert tied_neighbours(index, scores, "log_odds") == 0


def test_the_class_order_of_probabilities_that_are_not_tied_is_kept(
    saturated: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    index, scores = saturated
    table = ordered(correct(index, scores).assign(tier="top5"))
    assert (table.groupby("class_index")["confidence"].diff().dropna() <= 0).all()
