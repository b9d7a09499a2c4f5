"""Count, without cleanset's code, the published images whose class a study of labels denies.

    python tests/evaluation/labels_apart.py FOLDER [--write docs/published_labels.csv]

FOLDER holds clean_validation.csv, finegrained.csv, label_errors.csv, label_errors_og_met.csv and multilabel.csv, which
docs/labels.md says where to download. The published images come from the lists in imagenet/published/ and the verdicts
in imagenet/reviews/scooter/, by the published procedure: the first three of each class that are clean or cropped.
Nothing here imports cleanset, so that its numbers can be compared with those of cleanset labels.
"""

import argparse
import re
import sqlite3
from pathlib import Path

import pandas as pd
import yaml

ROOT = Path(__file__).resolve().parents[2]
TABLES = {
    "finegrained": "finegrained.csv",
    "label_errors": "label_errors.csv",
    "label_errors_3of5": "label_errors_og_met.csv",
    "multilabel": "multilabel.csv",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, help="the CSV file of the images, with what each study says")
    arguments = parser.parse_args()
    database = loaded(arguments.folder)
    lines = {
        "published images": "SELECT count(*) FROM published",
        "not among the joined": "SELECT count(*) FROM published WHERE number NOT IN (SELECT number FROM joined)",
    }
    for name in TABLES:
        lines[f"denied by {name}"] = f"SELECT count(*) FROM ({denied(name)})"
        lines[f"  of these, no class named by {name}"] = (
            f"SELECT count(*) FROM ({denied(name)}) WHERE number IN "
            f"(SELECT number FROM {name} GROUP BY number HAVING max(class) < 0)"
        )
    studies = [denied(name) for name in ("finegrained", "label_errors", "multilabel")]
    lines["denied by any of the three studies"] = f"SELECT count(DISTINCT number) FROM ({' UNION ALL '.join(studies)})"
    lines["denied by two of them"] = (
        f"SELECT count(*) FROM (SELECT number FROM ({' UNION ALL '.join(studies)}) GROUP BY number HAVING count(*) > 1)"
    )
    for title, query in lines.items():
        print(f"{title:<46} {database.execute(query).fetchone()[0]:>6,}")
    if arguments.write is not None:
        table(database).to_csv(arguments.write, index=False, lineterminator="\n")


def loaded(folder: Path) -> sqlite3.Connection:
    """The published images, and the tables of the studies, in a database."""
    database = sqlite3.connect(":memory:")
    published().to_sql("published", database, index=False)
    clean = pd.read_csv(folder / "clean_validation.csv")
    pd.DataFrame({"number": clean["id"].str[15:23].astype(int)}).to_sql("joined", database, index=False)
    for name, file in TABLES.items():
        named(folder / file).to_sql(name, database, index=False)
    return database


def published() -> pd.DataFrame:
    """Number and class of each published image."""
    lists = pd.read_csv(ROOT / "imagenet/published/top5.csv").query("model == 'norm_robust'")
    beyond = pd.read_csv(ROOT / "imagenet/published/beyond.csv").query("model == 'norm_robust'").assign(rank=99)
    listed = pd.concat([lists, beyond]).sort_values(["class_index", "rank"], kind="stable")
    wnids = [line.split("\t")[0] for line in (ROOT / "src/cleanset/dataset/classes.tsv").read_text().splitlines()]
    kept = set()
    for path in (ROOT / "imagenet/reviews/scooter").glob("n*.yaml"):
        for wnid, verdicts in yaml.safe_load(path.read_text()).items():
            kept |= {(wnids.index(wnid), name) for name, each in verdicts.items() if each["verdict"] != "reject"}
    rows = [each for each in zip(listed["class_index"], listed["image_id"], strict=True) if each in kept]
    found = pd.DataFrame(rows, columns=["class", "image_id"]).groupby("class").head(3)
    return found.assign(number=found["image_id"].str[-8:].astype(int))


def named(path: Path) -> pd.DataFrame:
    """Number and named class of each image of a study, a row for each class; class -1 where it names none."""
    rows = []
    for name, classes in pd.read_csv(path, dtype=str).fillna("")[["id", "proposed_labels"]].itertuples(index=False):
        rows += [(int(name[15:23]), int(each)) for each in re.findall(r"\d+", classes) or ("-1",)]
    return pd.DataFrame(rows, columns=["number", "class"])


def denied(name: str) -> str:
    """The query of the published images that a study has, but not in their class."""
    return (
        f"SELECT published.number FROM published WHERE number IN (SELECT number FROM {name}) AND NOT EXISTS "
        f"(SELECT 1 FROM {name} WHERE {name}.number = published.number AND {name}.class = published.class)"
    )


def table(database: sqlite3.Connection) -> pd.DataFrame:
    """The published images that are not among the joined, or whose class a study denies, with what each study says."""
    columns = ["published.image_id", "published.class AS class_index"]
    for name in TABLES:
        own = f"SELECT class FROM {name} WHERE {name}.number = published.number"
        columns.append(
            f"CASE WHEN NOT EXISTS ({own}) THEN '' WHEN published.class IN ({own}) THEN 'names the class' "
            f"WHEN -1 IN ({own}) THEN 'names none' ELSE 'names others' END AS {name}"
        )
    anywhere = " UNION ".join(denied(name) for name in TABLES)
    return pd.read_sql(
        f"SELECT {', '.join(columns)} FROM published WHERE number NOT IN (SELECT number FROM joined) "
        f"OR number IN ({anywhere}) ORDER BY number",
        database,
    )


if __name__ == "__main__":
    main()
