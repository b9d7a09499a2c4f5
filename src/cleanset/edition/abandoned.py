"""What killed runs left in an edition."""

from cleanset.edition.paths import Edition
from cleanset.files import remove_abandoned


def without_abandoned(edition: Edition) -> Edition:
    """The edition, after removing what no living process will finish."""
    data = edition.index.parent
    for folder in (edition.folder, data, *(path for path in data.glob("*") if path.is_dir())):
        remove_abandoned(folder)
    return edition
