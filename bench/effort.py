"""Verdicts and key presses that the review queue asks for, on the published lists and verdicts.

Compared with the smallest possible number of verdicts and with simpler orders of review.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cleanset.classes import imagenet
from cleanset.edition.params import ReviewPolicy
from cleanset.edition.paths import Edition
from cleanset.review.decided import decisions_under
from cleanset.review.queue import ByRole, DecideInClass, candidates_by_class, questions
from cleanset.review.store import read_reviews
from cleanset.selection.fill import UNREVIEWED, Decision, fill, with_decisions
from cleanset.sets.published.lists import MOST, read_top5
from cleanset.vocabulary import TIERS
from measuring import PROJECT, print_machine, print_table, share
from replay import read_pool, real_labels

IMAGENET = Edition(PROJECT / "imagenet")
ROLE = "norm_robust"
"""The model that the published set was made for: pool.csv and the verdicts are about its images."""
LEFT_OUT = 916
"""Class n06359193 (web site), which the authors left out as digital by nature."""
PLACES = 3
BOX = (0, 0, 500, 335)
"""The box of every crop, in pixels."""
SEED = 20_11
GOAL = 0.6
KEY_PRESSES = {"clean": 1, "reject": 2, "crop": 4}
"""c; r and the reason; x, the reason, v and Enter around a box that is drawn with the mouse."""
KEY_PRESSES_OF_BOX = 3
"""The page opens an image that lacks only its box in crop mode."""

Key = tuple[int, str]
"""An image of a class: class index and image id."""
Truth = dict[Key, Decision]


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions of the queue: images without a verdict, and images that lack only a box."""

    verdicts: set[Key]
    boxes: set[Key]


def main() -> None:
    labels: dict[str, Sequence[int]] = dict(real_labels())
    policy = ReviewPolicy(unknown_boxes="open", crops="in_rank")
    published = decisions_under(policy, read_reviews(IMAGENET.reviews, imagenet()))
    lists = read_top5(IMAGENET.published_lists, labels)
    tables = candidates_of_models(lists, labels, published)
    ranks = ranks_of(lists[lists["model"] == ROLE])
    rates = rates_by_rank(published, ranks)
    truth = verdicts(tables, published, ranks_of(lists), rates)
    listed = sorted(set(lists["class_index"]) - {LEFT_OUT})
    classes = candidates_by_class(tables, listed)
    of_one = {index: {ROLE: by_role[ROLE]} for index, by_role in classes.items()}
    print_machine()
    of_all = ask_all(classes, truth, {})
    ways = {
        f"{ROLE} alone": (ask_all(of_one, truth, {}), ranks),
        "all three models": (of_all, ranks_of(lists)),
        f"{ROLE} alone, published verdicts in": (ask_all(of_one, truth, published), ranks),
        "all three models, published verdicts in": (ask_all(classes, truth, published), ranks_of(lists)),
    }
    print_effort(ways, truth, len(listed))
    tables = {role: table[table["class_index"].isin(listed)] for role, table in tables.items()}
    print_ways(of_all, tables, truth, len(listed))


def candidates_of_models(
    lists: pd.DataFrame, labels: Mapping[str, Sequence[int]], published: Mapping[Key, Decision]
) -> dict[str, pd.DataFrame]:
    """The candidates of each model: tier top5 as published, then as many others as pool.csv says.

    Which images these are is not published, except for those that the verdicts name: they come first for ROLE. The
    others are drawn from the images of the class with one label, for each model apart.
    """
    correct = read_pool(IMAGENET.published_lists.with_name("pool.csv")).set_index("class_index")["correct"]
    by_class: dict[int, list[str]] = {index: [] for index in correct.index}
    for name, each in labels.items():
        if len(each) == 1:
            by_class[each[0]].append(name)
    rng = np.random.default_rng(SEED)
    found = {}
    for role, of_role in lists.groupby("model"):
        rows = [(*row, "top5") for row in of_role[["class_index", "image_id", "rank"]].itertuples(index=False)]
        own = ranks_of(of_role)
        for index, names in by_class.items():
            named = [name for name in names if (index, name) in published and role == ROLE]
            others = [name for name in rng.permutation(names).tolist() if name not in named]
            rest = [name for name in named + others if (index, name) not in own]
            first = min(len(names) - len(rest), MOST) + 1
            count = max(0, correct[index] + 1 - first)
            rows += [(index, name, rank, "reserve") for rank, name in enumerate(rest[:count], start=first)]
        table = pd.DataFrame(rows, columns=["class_index", "image_id", "rank", "tier"])
        found[str(role)] = table.assign(confidence=0.5)  # not used: ranks are given
    return found


def ranks_of(lists: pd.DataFrame) -> dict[Key, int]:
    """The best rank of each listed image."""
    found: dict[Key, int] = {}
    for index, name, rank in zip(lists["class_index"], lists["image_id"], lists["rank"], strict=True):
        found[index, name] = min(rank, found.get((index, name), MOST))
    return found


def rates_by_rank(published: Mapping[Key, Decision], ranks: Mapping[Key, int]) -> dict[int | None, Counter[str]]:
    """Counts of clean, crop and reject among the published verdicts on listed images, by rank; None: all ranks."""
    rates: dict[int | None, Counter[str]] = {rank: Counter() for rank in (*range(1, MOST + 1), None)}
    for key, decision in published.items():
        if key in ranks and key[0] != LEFT_OUT:
            for rank in (ranks[key], None):
                rates[rank][verdict_of(decision)] += 1
    return rates


def verdict_of(decision: Decision) -> str:
    """Clean, crop or reject; the box of a published crop is not known, so that it is not decided."""
    return "crop" if decision.verdict == "undecided" else decision.verdict


def verdicts(
    tables: Mapping[str, pd.DataFrame],
    published: Mapping[Key, Decision],
    ranks: Mapping[Key, int],
    rates: Mapping[int | None, Counter[str]],
) -> Truth:
    """A reviewer's decision on each image: the published one, else drawn by the rate of its rank, or of all ranks."""
    rng = np.random.default_rng(SEED)
    truth = {}
    for key in sorted(set().union(*map(keys_of, tables.values()))):
        rate = rates[ranks.get(key)]
        drawn = str(rng.choice(list(rate), p=np.array(list(rate.values())) / rate.total()))
        truth[key] = decision_of(verdict_of(published[key]) if key in published else drawn)
    return truth


def decision_of(verdict: str) -> Decision:
    """Return a verdict as a decision that counts."""
    if verdict == "clean":
        return Decision("clean")
    return Decision("crop", "watermark", BOX) if verdict == "crop" else Decision("reject", "watermark")


def keys_of(table: pd.DataFrame) -> set[Key]:
    return set(zip(table["class_index"].tolist(), table["image_id"].tolist(), strict=True))


def ask_all(classes: Mapping[int, ByRole], truth: Truth, decided_before: Mapping[Key, Decision]) -> Asked:
    """Review every class, always the first question."""
    decided = dict(decided_before)
    asked = Asked(set(), set())
    for class_index, by_role in classes.items():
        decide = decide_by(decided, class_index)
        while to_ask := questions(by_role, dict.fromkeys(by_role, decide), PLACES, crops_in_rank=True):
            key = class_index, to_ask[0].image_id
            (asked.boxes if to_ask[0].only_box else asked.verdicts).add(key)
            decided[key] = truth[key]
    return asked


def decide_by(decided: Truth, class_index: int) -> DecideInClass:
    """The decisions so far on one class, by image id."""
    return lambda image_id: decided.get((class_index, image_id), UNREVIEWED)


def needed_by(table: pd.DataFrame, truth: Truth) -> set[Key]:
    """The oracle, which knows all verdicts: what would go before the last image kept if it were clean.

    All candidates of a class that is not full. From tables, by the pipeline's own filling.
    """
    kept = fill(with_decisions(table, lambda *key: truth[key]), PLACES, crops_in_rank=True).selection
    last = kept[kept["place"] == PLACES].set_index("class_index")[["tier", "rank"]]
    beside = table.join(last.rename(columns="{}_of_last".format), on="class_index")
    tier, last_tier = (beside[name].map(TIERS.index, na_action="ignore") for name in ("tier", "tier_of_last"))
    goes_before = (tier == last_tier) & (beside["rank"] <= beside["rank_of_last"])
    return keys_of(beside[last_tier.isna() | (tier < last_tier) | goes_before])


def print_effort(ways: Mapping[str, tuple[Asked, Collection[Key]]], truth: Truth, classes: int) -> None:
    """`ways`: by name what was asked, and the images that are in the Top-5 of the models."""

    def row(name: str, asked: Asked, listed: Collection[Key]) -> tuple[str, ...]:
        boxes = asked.boxes | {key for key in asked.verdicts if truth[key].verdict == "crop"}
        keys = sum(KEY_PRESSES[truth[key].verdict] for key in asked.verdicts) + KEY_PRESSES_OF_BOX * len(asked.boxes)
        count = len(asked.verdicts)
        beyond = len(asked.verdicts - set(listed))
        each = (f"{count / classes:.2f}", f"{keys:,}", f"{keys / classes:.2f}")
        return name, f"{count:,}", *each, f"{len(boxes):,}", f"{beyond:,}"

    print_table(
        f"{classes:,} classes, three images each: what is left to review",
        ("for", "verdicts", "per class", "key presses", "per class", "boxes to draw", "verdicts beyond the Top-5"),
        [row(name, *way) for name, way in ways.items()],
    )


def print_ways(asked: Asked, tables: Mapping[str, pd.DataFrame], truth: Truth, classes: int) -> None:
    needed = {role: needed_by(table, truth) for role, table in tables.items()}
    top5s = {role: keys_of(table[table["tier"] == "top5"]) for role, table in tables.items()}
    fewest: set[Key] = set().union(*needed.values())
    once = len(fewest.union(*top5s.values()))
    apart = sum(len(needed[role] | top5s[role]) for role in needed)
    count = len(asked.verdicts)
    rows = [
        ("the review queue", count, ""),
        ("the fewest, by the oracle", len(fewest), share(count / len(fewest), 1)),
        ("all three Top-5s, each image once, then one by one", once, share(count / once, GOAL)),
        ("each model apart: its Top-5, then one by one", apart, share(count / apart, GOAL)),
    ]
    print_table(
        f"{classes:,} classes, three models, no verdict yet",
        ("way of reviewing", "verdicts", "per class", "the queue asks of it", "of the limit"),
        [(name, f"{each:,}", f"{each / classes:.2f}", f"{count / each:.3f}", limit) for name, each, limit in rows],
    )
    print(f"The same images as the oracle's: {'yes' if asked.verdicts == fewest else 'NO'}.")


if __name__ == "__main__":
    main()
