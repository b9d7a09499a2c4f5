"""The data card of a finished set: contents, provenance, terms, loading, and its front matter."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import yaml

from cleanset.dataset.ilsvrc import VALIDATION_IMAGES
from cleanset.review.agreement import overall
from cleanset.review.audit import AuditResult, sentences
from cleanset.review.store import verdicts_by_image, verdicts_by_reviewer
from cleanset.scoring.record import ListRecord, ScoreRecord
from cleanset.selection.metrics import short_classes, totals
from cleanset.sets.description import UNPUBLISHED, Provenance, Release, in_random_order, name_of, notices_of
from cleanset.sets.manifest import Entry, columns
from cleanset.sets.texts import SCOOTER, filled, templates
from cleanset.vocabulary import EXCLUSION_REASONS, VERDICTS, class_keys, label_names


def card(
    provenance: Provenance,
    selection: pd.DataFrame,
    rejected: pd.DataFrame,
    votes: pd.DataFrame,
    audit: AuditResult | None = None,
) -> str:
    """The card as Markdown, with the front matter that the library `datasets` and its hub read.

    `selection`, `rejected` and `votes` are the tables of these names; `audit` belongs to the set, if any.
    """
    classes, per_class, release = provenance.classes, provenance.images_per_class, provenance.release
    counts = totals(selection, rejected, classes, per_class)
    is_random, from_lists, reviewed = provenance.is_random, provenance.scored is None, bool(release.reviewers)
    dated = f" of {release.date}" if release.date else ", not published yet"
    params = yaml.safe_dump(dict(provenance.params), default_flow_style=None, width=100)
    short = short_classes(selection, rejected, classes, per_class).to_dict("records")
    rejects = [(reason, counts[f"rejected_{reason}"]) for reason in EXCLUSION_REASONS if counts[f"rejected_{reason}"]]
    values = {
        **_common_values(provenance.model, counts["images"], release, reviewed, provenance.notices, is_random),
        **{name: f"{count:,}" for name, count in counts.items()},
        **_review_values(selection, votes),
        "classes_of_set": f"{selection['class_index'].nunique():,}",
        "images_per_class": per_class,
        "source_images": f"{provenance.images:,}",
        "source_of_images": release.texts["images"] if provenance.images == VALIDATION_IMAGES else "images",
        "is_random": is_random,
        "easy_for": "" if is_random else f"that the model `{provenance.model}` finds easy, ",
        "several_labels": " (or, where the tier is `relaxed`, carry several labels, the class among them)"
        if counts["images_relaxed"]
        else "",
        "has_unknown_boxes": counts["rejected_box_unknown"],
        "has_crops": counts["images_cropped"],
        "first_of_class": "first" if is_random else "easiest",
        "rules": _bullets(provenance.readings),
        "policy": release.review,
        "audit": ["## Audit", *sentences(audit)] if audit else None,
        "rejects": _table(("reason", "number"), ((reason, f"{count:,}") for reason, count in rejects)),
        "short_classes": _table(
            ("class", "images", "candidates", "not taken"),
            ((_name(row["class_index"]), row["kept"], row["candidates"], row["rejected"] or "none") for row in short),
            aligned="|---|--:|--:|---|",
        ),
        "version": release.version,
        "dated": ", made from published lists" if from_lists else dated,
        "scores": _scores(provenance.scored),
        "from_lists": from_lists,
        "inputs": _table(
            ("table", "SHA-256", "MD5"),
            ((f"`{each.path}`", each.sha256, each.md5) for each in provenance.inputs),
            aligned="|---|---|---|",
        ),
        "params_sha256": provenance.params_sha256,
        "params": params.rstrip("\n"),
    }
    values["known_flaws"] = _bullets(filled(templates("card")["flaws"], values))
    return _rendered("card", values)


def rebuilt_card(entries: Sequence[Entry], release: Release) -> str:
    """The card as Markdown, from a manifest and perhaps a Croissant description.

    It has the original card's front matter, from which the library `datasets` numbers and names the classes, which it
    would otherwise number by the existing folders. `entries` is not empty.
    """
    dated = f" of {release.date}" if release.date else ""
    by_people, notices = sum(entry.reviewers > 0 for entry in entries), notices_of(entries, release)
    values = {
        **_common_values(entries[0].model, len(entries), release, by_people > 0, notices, in_random_order(entries)),
        "images": f"{len(entries):,}",
        "classes_of_set": f"{len({entry.wnid for entry in entries}):,}",
        "version_clause": "" if release.version == UNPUBLISHED else f", version {release.version}{dated}",
        "by_people": f"{by_people:,}",
    }
    return _rendered("rebuilt", values)


def card_without_images(text: str, model: str, images: int, release: Release) -> str:
    """A card for a set that is published without its images: the table is loaded, the images are made again."""
    _, _, body = text.split("---\n", 2)
    before, rest = body.split("## Loading\n", 1)
    # only the section on loading is replaced; all numbers stay those of stage export
    after = rest[rest.index(f"\n{release.texts['motivation']}") :]
    matter = front_matter(model, images, release, reviewed=bool(release.reviewers), with_images=False)
    return f"{matter}\n{before}{release.texts['without_images']}\n{after}"


def _common_values(
    model: str, images: int, release: Release, reviewed: bool, notices: Sequence[str], is_random: bool
) -> dict[str, Any]:
    """The values that the card of any set needs: its texts, and the sections that they make."""
    values = {
        **release.texts,
        "front_matter": front_matter(model, images, release, reviewed=reviewed, with_images=True),
        "model": model,
        "heading": release.texts["title"] or name_of(model),
        "nor_did_models": "" if is_random else ", nor did the models",
        "notices": [f"**{notice}**" for notice in notices],
        "number_of_classes": f"{len(class_keys()):,}",
        "funding": "".join(f"\n- {each}" for each in release.texts["acknowledged"]),
    }
    sections = ("loading", "terms_section", "citation_section")
    return values | {name: filled(templates("card")[name], values) for name in sections}


def _rendered(name: str, values: Mapping[str, Any]) -> str:
    return "\n\n".join(filled(templates("card")[name], values)) + "\n"


def _review_values(selection: pd.DataFrame, votes: pd.DataFrame) -> dict[str, Any]:
    by_reviewer = verdicts_by_reviewer(votes)
    rows = ((f"`{name}`", *(f"{n:,}" for n in given.values())) for name, given in by_reviewer.items())
    agreement = overall(verdicts_by_image(votes))
    if agreement.agreement is None:
        found = "No image was judged by more than one reviewer, so that their agreement is not known."
    else:
        kappa = "" if agreement.kappa is None else f", Fleiss' kappa is {agreement.kappa:.2f}"
        found = (
            f"Images judged by two or more: {agreement.images:,}. Of two verdicts on one of them "
            f"{100 * agreement.agreement:.1f} % are the same{kappa}."
        )
    unseen = len(set(selection["image_id"]) - set(votes["image_id"]))
    return {
        "verdicts": by_reviewer and _table(("reviewer", *VERDICTS), rows),
        "agreement": found,
        "unseen": f"{unseen:,}" if unseen else "none",
        "scooter_in_votes": SCOOTER in by_reviewer,
    }


def _name(class_index: int) -> str:
    return f"{class_keys()[class_index]} {label_names()[class_index]}"


def _scores(scored: ScoreRecord | ListRecord | None) -> str:
    values: dict[str, Any]
    if scored is None:
        kind, values = "published_lists", {}
    elif isinstance(scored, ListRecord):
        kind, is_list = "random" if scored.source == "random" else "list", scored.source == "lists"
        values = {
            "scored": scored.name,
            "what_was_listed": "published list" if is_list else "table of scores",
            "list_or_table": "list" if is_list else "table",
            "listed": f"{scored.listed:,}",
            "list_sha256": scored.list_sha256,
            "beyond": scored.beyond and f"{len(scored.beyond):,}",
            "beyond_sha256": scored.beyond_sha256,
        }
    else:
        kind, preprocessing = "network", scored.preprocessing
        values = {
            "scored": scored.name,
            "source_of_model": scored.source,
            "threat_model": f", threat model {scored.threat_model}" if scored.threat_model else "",
            "weights_sha256": scored.weights_sha256,
            "preprocessing": f"{preprocessing.name}: {preprocessing.description}",
            "precision": scored.precision,
            "against_float64": scored.against_float64,
            "versions": ", ".join(f"{name} {number}" for name, number in sorted(scored.versions.items())),
        }
    return "\n".join(filled(templates("card")[f"scores_of_{kind}"], values))


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(names: Sequence[str], rows: Iterable[Sequence[object]], aligned: str = "") -> str:
    """A table in Markdown, of numbers but for the first column; "None." without rows."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in rows]
    head = [f"| {' | '.join(names)} |", aligned or f"|---{'|--:' * len(names[1:])}|"]
    return "\n".join([*head, *lines]) if lines else "None."


_NUMBERS = {
    "rank": "int64", "confidence": "float64", "source_confidence": "float64", "ilsvrc_class": "int64",
    "original_class": "int64", "reviewers": "int64",
    # a whole image has no box, and pandas, by which `datasets` reads CSV, has no whole numbers beside gaps
    "left": "float64", "top": "float64", "right": "float64", "bottom": "float64",
}  # fmt: skip
_WIDTH = 116


def front_matter(model: str, images: int, release: Release, *, reviewed: bool, with_images: bool) -> str:
    """The front matter of a set of `images` images. `reviewed`: by people. `with_images`: whether they lie beside it.

    Without its images, a set is read as a table, where the class is in the column class_index.
    """
    values = {
        **release.texts,
        "name": name_of(model),
        "reviewed": reviewed,
        "with_images": with_images,
        "size": _size(images),
        "features": _features(with_images),
    }
    fields = filled(templates("catalogues")["front_matter"], values)
    text = yaml.safe_dump(fields, sort_keys=False, default_flow_style=None, width=_WIDTH, allow_unicode=True)
    return f"---\n{text}---"


def _size(images: int) -> str:
    limits = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K"}
    return next(name for limit, name in limits.items() if images < limit)


def _features(with_images: bool) -> list[dict[str, Any]]:
    features: list[dict[str, Any]] = [{"name": "image", "dtype": "image"}] if with_images else []
    for column in columns():
        if column == "class_index":
            names = {str(index): name for index, name in enumerate(label_names())}
            name = "label" if with_images else column
            features.append({"name": name, "dtype": {"class_label": {"names": names}}})
        elif column != "file" or not with_images:
            features.append({"name": column, "dtype": _NUMBERS.get(column, "string")})
    return features
