"""The commands `cleanset robustness …`: the stages of a study. Each imports what it needs only when it runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleanset.edition.paths import HERE, StudyFolder

if TYPE_CHECKING:
    from cleanset.studies.robustness.images import Study

app = typer.Typer(
    no_args_is_help=True, help="Measure robustness on finished sets: the stages of a study, and what is run by hand."
)

ModelRole = Annotated[str, typer.Option("--model", help="Role of the model in the edition's params.yaml.")]


def _study(folder: Path) -> "Study":
    from cleanset.files import remove_abandoned
    from cleanset.studies.robustness.families import FAMILIES
    from cleanset.studies.robustness.images import Study

    for each in (folder, folder / "data", *(folder / "data" / family.name for family in FAMILIES)):
        remove_abandoned(each)
    return Study(folder)


def _study_with_backgrounds(folder: Path) -> "Study":
    """The study, whose photographs are looked at before anything that takes seconds to import."""
    from cleanset.edition.params import read_params
    from cleanset.studies.robustness.families import read_study_params
    from cleanset.studies.robustness.scenarios.params import RANDOM, Scenarios
    from cleanset.studies.robustness.scenarios.scenes import photograph_paths

    study = _study(folder)
    roles = list(read_params(study.edition.folder).models)
    wanted = read_study_params(study.params_yaml, roles).section(Scenarios)
    if wanted.published is None and RANDOM in wanted.expanded():
        photograph_paths(study.backgrounds)
    return study


@app.command()
def images(study: StudyFolder = HERE) -> None:
    """Join the images of all finished sets."""
    from cleanset.studies.robustness import image_sets as stage

    stage.run(_study(study))


@app.command()
def digests(study: StudyFolder = HERE) -> None:
    """Store the SHA-256 of every changed image."""
    from cleanset.studies.robustness import digests as stage

    stage.run(_study_with_backgrounds(study))


@app.command()
def corruptions(model: ModelRole, study: StudyFolder = HERE) -> None:
    """Store one model's answers to the corrupted images."""
    from cleanset.studies.robustness import answering as stage

    stage.run(_study(study), model, "corruptions")


@app.command()
def perturbations(model: ModelRole, study: StudyFolder = HERE) -> None:
    """Store one model's answers to the frames of perturbation sequences."""
    from cleanset.studies.robustness import answering as stage

    stage.run(_study(study), model, "perturbations")


@app.command()
def scenarios(model: ModelRole, study: StudyFolder = HERE) -> None:
    """Store one model's answers to images with another background or object."""
    from cleanset.studies.robustness import answering as stage

    stage.run(_study_with_backgrounds(study), model, "scenarios")


@app.command()
def further(
    model: Annotated[str, typer.Option("--model", help="Role of the model in further_models of the study.")],
    study: StudyFolder = HERE,
) -> None:
    """Store the answers of a model that is not one of the edition's."""
    from cleanset.studies.robustness import answering as stage

    stage.run(_study_with_backgrounds(study), model)


@app.command()
def measure(study: StudyFolder = HERE) -> None:
    """Measure all models from their answers."""
    from cleanset.studies.robustness import measuring as stage

    stage.run(_study(study))


@app.command()
def pages(study: StudyFolder = HERE) -> None:
    """Make the study's pages."""
    from cleanset.studies.robustness import pages as stage

    stage.run(_study(study))


@app.command()
def generate(
    pipeline: Annotated[Path, typer.Option("--pipeline", help="Folder of a diffusers pipeline for in-painting.")],
    prompts: Annotated[Path, typer.Option(help="Folder with a prompt for each class: <wnid>.txt.")] = Path("prompts"),
    steps: Annotated[int, typer.Option(min=1)] = 50,
    guidance: Annotated[float, typer.Option(min=0)] = 7.5,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    study: StudyFolder = HERE,
) -> None:
    """Generate the missing images with generated backgrounds."""
    from cleanset.studies.robustness.image_sets import generate_missing

    made = generate_missing(_study(study), pipeline, prompts, steps, guidance, device)
    print(f"{made} images made")


@app.command()
def verify(study: StudyFolder = HERE) -> None:
    """Make every changed image again and compare digests; exit code 1 if one differs.

    Lists the images that differ, and the versions of the libraries that make them.
    """
    from cleanset.studies.robustness.digests import verify as tool

    found = tool(_study_with_backgrounds(study))
    for line in found.lines():
        typer.echo(line)
    raise typer.Exit(1 if found.different else 0)


@app.command()
def evaluate(
    model: Annotated[
        list[str],
        typer.Option(
            help="timm:NAME, torchvision:NAME.WEIGHTS, robustbench:THREAT/NAME, a file of weights, MODULE:CALLABLE, "
            "or a role of the edition; repeat it for each model."
        ),
    ],
    images: Annotated[
        str,
        typer.Option(
            help="A role of the edition, the folder of an export or of an edition, a folder per wnid, or a file with "
            "the ids of some of the edition's images, one a line."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Write answers and measures here, and continue what was interrupted.")],
    params: Annotated[
        Path | None,
        typer.Option(
            help="File with the keys of a study's params.yaml; masks, backgrounds and generated lie beside it. "
            "Without it: 15 corruptions at five severities and 10 perturbations."
        ),
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option(help="timm architecture of the weights file."),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="float64 (default), float32, tf32 or bfloat16.", show_default=False)
    ] = None,
    device: Annotated[str | None, typer.Option(help="auto (default), cpu, cuda or cuda:N.")] = None,
    hub: Annotated[
        Path | None,
        typer.Option(
            help="Write a model card with a model-index for the Hugging Face Hub: a new .md file, or a folder."
        ),
    ] = None,
    edition: Annotated[
        Path, typer.Option(help="Folder of the edition that the roles belong to.", show_default="the current one")
    ] = HERE,
) -> None:
    """Measure any models on any images, outside DVC, as a study does.

    Every model sees all of the images. OUT has the answers by family, the CSV
    files of a study in measures/, its metrics in metrics/, and results.json,
    which cleanset compare takes.
    """
    from rich.console import Console

    from cleanset.edition.paths import Edition
    from cleanset.measure.command import Wanted
    from cleanset.studies.robustness import evaluation

    wanted = Wanted(images, model, architecture, precision=precision, device=device, hub=hub)
    Console().print(evaluation.as_text(evaluation.run(Edition(edition), wanted, out, params)), highlight=False)


@app.command()
def table(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of a study, or one that robustness evaluate has written.", show_default="the current one"
        ),
    ] = HERE,
    family: Annotated[str, typer.Option(help="corruptions, perturbations or scenarios.")] = "corruptions",
    measure: Annotated[
        str | None,
        typer.Option(help="A measure of each change, such as error, ce, fp or accuracy: a row for each change."),
    ] = None,
    selection: Annotated[
        str | None, typer.Option(help="union, own, common or all.", show_default="the first one")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="latex or csv.")] = "latex",
    out: Annotated[Path | None, typer.Option(help="Write the table to this file instead of the terminal.")] = None,
) -> None:
    """Print measures with their intervals as a table for a paper.

    Without --measure a row for each model, with its measures over all changes.
    The LaTeX needs the package booktabs.
    """
    from cleanset.studies.robustness.measure_files import formatted, paper_table

    text = formatted(paper_table(folder, family, measure, selection), form)
    if out is None:
        typer.echo(text, nl=False)
    else:
        from cleanset.files import write_text

        write_text(out, text)


@app.command()
def masks(
    one: Annotated[Path, typer.Argument(help="Folder of masks, named by image id.")],
    other: Annotated[Path, typer.Argument(help="Folder of masks to compare with.")],
    mask_format: Annotated[
        str, typer.Option("--format", help="Format of the first folder: png, coco, labelme or imagenet_s.")
    ] = "png",
    other_format: Annotated[
        str, typer.Option(help="Format of the other folder: png, coco, labelme or imagenet_s.")
    ] = "png",
    out: Annotated[Path | None, typer.Option(help="Write the IoU of each image to this CSV file.")] = None,
    study: StudyFolder = HERE,
) -> None:
    """Compare two folders of masks by intersection over union."""
    from cleanset.studies.robustness.image_sets import wnids_of
    from cleanset.studies.robustness.images import Study
    from cleanset.studies.robustness.scenarios.image_masks import ComparedMasks, agreement

    found = agreement(ComparedMasks(one, mask_format), ComparedMasks(other, other_format), wnids_of(Study(study)))
    if out is not None:
        from cleanset.files import write_text

        write_text(out, found.to_csv(index=False, lineterminator="\n"))
    smallest, image_id = min(zip(found["iou"].tolist(), found["image_id"].tolist(), strict=True))
    print(f"{len(found):,} images: mean IoU {found['iou'].mean():.3f}, smallest {smallest:.3f} ({image_id})")
