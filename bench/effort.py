"""How many verdicts the review queue asks for, beside the fewest that can do and beside plainer ways of reviewing."""

import statistics
from collections.abc import Collection, Mapping
from time import process_time

import numpy as np
import pandas as pd

import simulation
from cleanset.dataset.ilsvrc import CLASSES
from cleanset.review.queue import ByRole, DecideInClass, candidates_by_class, questions
from cleanset.selection.candidates import Rule, candidates, shared
from cleanset.selection.decision import UNREVIEWED, Decision
from cleanset.selection.fill import fill, with_decisions
from cleanset.vocabulary import TIERS
from measuring import print_machine, print_table

PLACES, TOP = 3, 5
SEED = 20_11
GOAL = 0.6
MILLISECONDS = 1.0

Key = tuple[int, str]
"""An image of a class: class index and image id."""
Truth = dict[Key, Decision]


def main() -> None:
    tables = candidates_of_models()
    truth = verdicts(tables)
    start = process_time()
    classes = candidates_by_class(tables, range(CLASSES))
    seconds = process_time() - start
    asked, turns = ask_all(classes, truth)
    needed = {role: needed_by(table, truth) for role, table in tables.items()}
    top5s = {role: keys_of(table[table["tier"] == "top5"]) for role, table in tables.items()}
    print_machine()
    print_effort(asked, needed, top5s)
    rows = sum(map(len, tables.values()))
    print_speed(rows, seconds, turns)


def candidates_of_models() -> dict[str, pd.DataFrame]:
    """The candidates of three simulated models over the real reassessed labels."""
    labels = simulation.fewest_first(simulation.real_labels())
    index, scores = simulation.index_of(labels), simulation.scores_of(labels, simulation.RIGHT)
    common = shared(index, scores.values())
    return {role: candidates(index, common, of_role, range(CLASSES), Rule(TOP)) for role, of_role in scores.items()}


def verdicts(tables: Mapping[str, pd.DataFrame]) -> Truth:
    """What a reviewer would say of each image: 15 % are flawed, half of them can be cropped."""
    rng = np.random.default_rng(SEED)
    return {key: simulation.verdict(rng) for key in sorted(set().union(*map(keys_of, tables.values())))}


def keys_of(table: pd.DataFrame) -> set[Key]:
    return set(zip(table["class_index"].tolist(), table["image_id"].tolist(), strict=True))


def ask_all(classes: Mapping[int, ByRole], truth: Truth) -> tuple[set[Key], list[float]]:
    """Review every class, always the first question; the images asked, and the processor seconds of each turn."""
    decided: Truth = {}
    turns: list[float] = []
    for class_index, by_role in classes.items():
        decide = decide_by(decided, class_index)
        while True:
            start = process_time()
            to_ask = questions(by_role, dict.fromkeys(by_role, decide), PLACES)
            turns.append(process_time() - start)
            if not to_ask:
                break
            key = class_index, to_ask[0].image_id
            decided[key] = truth[key]
    return set(decided), turns


def decide_by(decided: Truth, class_index: int) -> DecideInClass:
    """The decisions so far on one class, by image id."""
    return lambda image_id: decided.get((class_index, image_id), UNREVIEWED)


def needed_by(table: pd.DataFrame, truth: Truth) -> set[Key]:
    """The oracle, which knows all verdicts: what would go before the last image kept if it were clean.

    All candidates of a class that is not full. From tables, by the pipeline's own filling.
    """
    kept = fill(with_decisions(table, lambda *key: truth[key]), PLACES).selection
    last = kept[kept["place"] == PLACES].set_index("class_index")[["tier", "rank", "verdict"]]
    beside = table.join(last.rename(columns="{}_of_last".format), on="class_index")
    tier, last_tier = (beside[name].map(TIERS.index, na_action="ignore") for name in ("tier", "tier_of_last"))
    is_short = last_tier.isna()
    goes_before = (beside["verdict_of_last"] == "crop") | (beside["rank"] <= beside["rank_of_last"])
    return keys_of(beside[is_short | (tier < last_tier) | ((tier == last_tier) & goes_before)])


def print_effort(asked: Collection[Key], needed: Mapping[str, set[Key]], top5s: Mapping[str, set[Key]]) -> None:
    fewest: set[Key] = set().union(*needed.values())
    once = len(fewest.union(*top5s.values()))
    apart = sum(len(needed[role] | top5s[role]) for role in needed)
    rows = [
        ("the review queue", len(asked)),
        ("the fewest, by the oracle", len(fewest)),
        ("all three Top-5s, each image once, then one by one", once),
        ("each model apart: its Top-5, then one by one", apart),
    ]
    print_table(
        f"{CLASSES:,} classes, three models, three images each; 15 % flawed, half of them can be cropped",
        ("way of reviewing", "verdicts", "per class", "the queue asks of it"),
        [(name, f"{count:,}", f"{count / CLASSES:.2f}", f"{len(asked) / count:.3f}") for name, count in rows],
    )
    print(f"The same images as the oracle's: {'yes' if set(asked) == fewest else 'NO'}.")


def print_speed(rows: int, seconds: float, turns: list[float]) -> None:
    milliseconds = [1000 * turn for turn in turns]
    print_table(
        "Processor time",
        ("what", "found", "limit"),
        [
            (f"candidates by class, {rows:,} rows, s", f"{seconds:.2f}", "2"),
            ("questions of a class, median, ms", f"{statistics.median(milliseconds):.3f}", f"{MILLISECONDS:g}"),
            (
                "questions of a class, 99th of 100, ms",
                f"{statistics.quantiles(milliseconds, n=100)[-1]:.3f}",
                f"{MILLISECONDS:g}",
            ),
        ],
    )


if __name__ == "__main__":
    main()
