"""The data card of a set that was rebuilt from its manifest: shorter than that of stage export, the same labels."""

from collections.abc import Sequence

from cleanset.exports.card import USES, cited, front_matter, loading, terms
from cleanset.exports.description import UNPUBLISHED, Release, name_of, unverified_notice
from cleanset.exports.manifest import Entry


def rebuilt_card(entries: Sequence[Entry], release: Release) -> str:
    """The card as Markdown, from what a manifest and perhaps a Croissant description say.

    Its front matter is that of the original card: by it the library `datasets` numbers and names the classes, which it
    would else number by the folders that there are. `entries` is not empty.
    """
    model = entries[0].model
    reviewed = any(entry.reviewers for entry in entries)
    parts = (
        front_matter(model, len(entries), reviewed, with_images=True),
        f"# {name_of(model)}",
        # of all images or of none: a set is made from one source
        *(f"**{notice}**" for notice in unverified_notice(entries[0].source_check)),
        _summary(entries, release),
        loading(model),
        USES,
        terms(release),
        cited(release),
    )
    return "\n\n".join(parts) + "\n"


def _summary(entries: Sequence[Entry], release: Release) -> str:
    classes = len({entry.wnid for entry in entries})
    by_people = sum(entry.reviewers > 0 for entry in entries)
    dated = f" of {release.date}" if release.date else ""
    version = "" if release.version == UNPUBLISHED else f", version {release.version}{dated}"
    return (
        f"{len(entries):,} images of {classes:,} classes{version}: made again by `cleanset rebuild` from "
        "`manifest.csv` and a copy of ImageNet's validation images. Each file has the SHA-256 that the manifest has "
        f"of it. Images that people have reviewed: {by_people:,}.\n\n"
        "How the images were chosen and reviewed, which candidates were rejected and which flaws are known stands on "
        "the card of the original set, which a manifest does not hold: ask whoever published it."
    )
