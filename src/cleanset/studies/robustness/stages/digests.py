"""Stage digests: the SHA-256 of every changed image, to be checked on other machines."""

import json

from cleanset.edition.params import read_params
from cleanset.files import replacing, write_text
from cleanset.machine import available_cores
from cleanset.progress import rate_bar
from cleanset.studies.robustness.digests import DIGESTS, VERSIONS, DigestRun
from cleanset.studies.robustness.families import FAMILIES, change_plan
from cleanset.studies.robustness.images import Sources
from cleanset.studies.robustness.provenance import installed_versions
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import Study
from cleanset.tables import write_table


def run(study: Study) -> None:
    """Read images, masks and backgrounds, write data/digests/: a table for each family, and the libraries' versions.

    The changed images are the same for all models, whatever `images` says. Finished shards are kept until the end.
    Raises CleansetError for an image whose bytes are not those of the manifest, and as `change_plan` does.
    """
    wanted = read_study_params(study.params_yaml, list(read_params(study.edition.folder).models))
    sources = Sources.read(study)
    plans = [change_plan(family, sources, wanted) for family in FAMILIES]
    digest_run = DigestRun(plans, sources, wanted, available_cores())
    shards = digest_run.shards(study.partial_digests)
    with rate_bar(len(digest_run.names()), "digests") as done:
        done(shards.finished_images(), 0.0)
        digest_run.fill(shards, done)
    with replacing(study.digests) as folder:
        for name, table in digest_run.tables(shards.table()).items():
            write_table(folder / f"{name}.parquet", table, DIGESTS[name])
        write_text(folder / VERSIONS, json.dumps(installed_versions(), indent=2) + "\n")
    shards.remove()
