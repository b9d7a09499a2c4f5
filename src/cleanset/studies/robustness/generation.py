"""The command `cleanset robustness generate`: images with generated backgrounds, for the stage scenarios."""

from pathlib import Path

from cleanset.dataset.ilsvrc import wnids
from cleanset.edition.params import read_params
from cleanset.errors import CleansetError
from cleanset.progress import rate_bar
from cleanset.statistics.seeds import image_seed
from cleanset.studies.robustness.changed_images import base_pixels, files_of
from cleanset.studies.robustness.images import STUDY_IMAGES, Sources
from cleanset.studies.robustness.scenarios.generating import (
    PaintOptions,
    generation_record,
    load_pipeline,
    paint_background,
    read_prompts,
    save_missing,
)
from cleanset.studies.robustness.scenarios.image_masks import has_scenarios, masks_found
from cleanset.studies.robustness.scenarios.scenes import masks_of, regions_of_mask
from cleanset.studies.robustness.settings import read_study_params
from cleanset.studies.robustness.study import Study
from cleanset.tables import read_table


def run(study: Study, pipeline_folder: Path, prompts_folder: Path, steps: int, guidance: float, device: str) -> int:
    """Write an image for each one whose mask suits a generated background; those that are there are kept.

    The number of images that were made. Raises CleansetError for a pipeline, prompt or mask that cannot be used.
    """
    params = read_study_params(study.params_yaml, list(read_params(study.edition.folder).models))
    everything = read_table(study.images, STUDY_IMAGES)
    of_all = files_of(study.edition, everything)
    masks = masks_found(everything, of_all, study.masks, params, is_placed=True)
    images = has_scenarios(everything, masks)
    if images.empty:
        raise CleansetError(
            f"{study.masks}: no image has a mask that suits a generated background; see docs/robustness.md"
        )
    names = wnids()
    prompts = read_prompts(prompts_folder, [names[class_index] for class_index in images["class_index"]])
    options = PaintOptions(params.seed, steps, guidance, device)
    pipeline = load_pipeline(pipeline_folder, device)
    # not `Sources.read`: the masks there need not suit a generated background
    sources = Sources(everything, masks, of_all, study)
    files, scene_masks = sources.files_in(images), masks_of(sources, images)
    paint = {
        file.image_id: lambda file=file: paint_background(
            pipeline,
            base_pixels(file),
            regions_of_mask(scene_masks[file.path]),
            prompts[scene_masks[file.path].wnid],
            image_seed(params.seed, file.image_id),
            options,
        )
        for file in files.values()
    }
    made = 0
    with rate_bar(len(paint), "generate") as done:
        for _ in save_missing(study.generated, paint, generation_record(pipeline_folder, prompts, options)):
            made += 1
            done(1, 0.0)
    return made
