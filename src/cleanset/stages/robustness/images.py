"""Stage images: the images of all finished sets, each once, checked against their manifests."""

from cleanset.edition.params import read_params
from cleanset.exports.folder import read_entries, read_image
from cleanset.robustness.images import STUDY_IMAGES, joined
from cleanset.robustness.study import Study
from cleanset.tables import write_table


def run(study: Study) -> None:
    """Read the manifests and images of the edition's exported sets, write data/images.parquet."""
    edition = study.edition
    sets = {role: read_entries(edition.export(role)) for role in read_params(edition.folder).models}
    for role, entries in sets.items():
        for entry in entries:
            read_image(edition.export(role), entry)
    write_table(study.images, joined(sets), STUDY_IMAGES)
