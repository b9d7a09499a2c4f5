"""The commands `cleanset robustness …`: measuring any models, and the stages of a study, which DVC runs.

Each imports its code when it runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleanset.edition.options import (
    ANY_MODEL,
    HERE,
    AnyImages,
    Architecture,
    DeviceOption,
    EditionOfRoles,
    Form,
    FreshOption,
    HubOption,
    PaperForm,
    PrecisionOption,
    StudyFolder,
    show,
)
from cleanset.statistics.formats import counted, decimal

if TYPE_CHECKING:
    from cleanset.studies.robustness.families import OpenedStudy
    from cleanset.studies.robustness.images import Study

app = typer.Typer(no_args_is_help=True, help="Measure robustness on finished sets; studies/robustness runs by DVC.")
stages = typer.Typer(no_args_is_help=True, help="Run one stage of a study, as DVC does.")
app.add_typer(stages, name="stage", hidden=True)


ParamsFile = Annotated[
    Path | None,
    typer.Option(
        "--params",
        help="File with the keys of a study's params.yaml; masks, backgrounds and generated are next to it. "
        "Without it: 15 corruptions at five severities and 10 perturbations.",
    ),
]


def _study(folder: Path) -> "Study":
    from cleanset.studies.robustness.images import Study

    return Study.open(folder)


@stages.command(hidden=True)
def images(study: StudyFolder = HERE) -> None:
    """Join the images of all finished sets."""
    from cleanset.studies.robustness import image_sets as stage

    stage.run(_study(study))


@stages.command(hidden=True)
def digests(study: StudyFolder = HERE) -> None:
    """Store the SHA-256 of every changed image."""
    from cleanset.studies.robustness import digests as stage

    stage.run(_study(study))


@stages.command(hidden=True)
def answers(
    model: Annotated[str, typer.Option("--model", help="Role in params.yaml of the edition or of the study.")],
    family: Annotated[str | None, typer.Option(help="corruptions, perturbations, scenarios or watermarks.")] = None,
    study: StudyFolder = HERE,
) -> None:
    """Store one model's answers to the changed images of a family, or of all without --family."""
    from cleanset.studies.robustness import answering as stage

    stage.run(_study(study), model, family)


@stages.command(hidden=True)
def measure(study: StudyFolder = HERE) -> None:
    """Measure all models from their answers."""
    from cleanset.studies.robustness import measuring as stage

    stage.run(_study(study))


@stages.command(hidden=True)
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

    made = generate_missing(_study(study), pipeline, prompts, device, steps=steps, guidance=guidance)
    print(f"{made} images made")


@app.command()
def verify(study: StudyFolder = HERE) -> None:
    """Make every changed image again and compare digests; exit code 1 if one differs.

    Lists the images that differ, and the versions of the libraries that make them.
    """
    from cleanset.studies.robustness.digests import verify as tool

    found = tool(_study(study))
    for line in found.lines():
        typer.echo(line)
    raise typer.Exit(1 if found.different else 0)


def asked(
    *,
    images: str,
    model: list[str],
    out: Path,
    params: Path | None,
    architecture: str | None,
    precision: str | None,
    device: str | None,
    hub: Path | None,
    edition: Path,
    **_: object,
) -> "OpenedStudy":
    """What the arguments of `robustness evaluate` ask for; its plan has the same ones."""
    from cleanset.edition.paths import Edition
    from cleanset.evaluation.arguments import Arguments
    from cleanset.studies.robustness.evaluation import request_of

    wanted = Arguments(images, model, architecture, precision=precision, device=device, hub=hub)
    return request_of(Edition(edition), wanted, out, params)


@app.command()
def evaluate(
    images: AnyImages,
    model: Annotated[list[str], ANY_MODEL],
    out: Annotated[Path, typer.Option(help="Write answers and measures here, and continue an interrupted run.")],
    fresh: FreshOption = False,
    params: ParamsFile = None,
    architecture: Architecture = None,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    hub: HubOption = None,
    edition: EditionOfRoles = HERE,
    form: Form = None,
) -> None:
    """Measure any models on any images, outside DVC, as a study does.

    Every model sees all of the images. OUT has the answers by family, the CSV
    files of a study in measures/, its metrics in metrics/, and results.json,
    which cleanset compare takes.
    """
    from cleanset.plumbing.file_locks import only_run
    from cleanset.scoring.validity import forget_results
    from cleanset.studies.robustness import evaluation

    with only_run(out):
        if fresh:
            forget_results(out)
        evaluated = evaluation.run(
            asked(
                images=images,
                model=model,
                out=out,
                params=params,
                architecture=architecture,
                precision=precision,
                device=device,
                hub=hub,
                edition=edition,
            )
        )
    if form is None:
        show(evaluation.as_text(evaluated))
        return
    from cleanset.studies.robustness.pages import paper_table

    show("\n".join(paper_table(out, family, None, None).in_form(form) for family in evaluated.measured))


@app.command()
def table(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of a study, or one that robustness evaluate has written.", show_default="the current one"
        ),
    ] = HERE,
    family: Annotated[str, typer.Option(help="corruptions, perturbations, scenarios or watermarks.")] = "corruptions",
    measure: Annotated[
        str | None,
        typer.Option(help="A measure of each change, such as error, ce, fp or accuracy: a row for each change."),
    ] = None,
    selection: Annotated[
        str | None, typer.Option(help="union, own, common or all.", show_default="the first one")
    ] = None,
    form: Form = PaperForm.latex,
) -> None:
    """Print measures with their intervals as a table for a paper.

    Without --measure a row for each model, with its measures over all changes.
    """
    from cleanset.studies.robustness.pages import paper_table

    show(paper_table(folder, family, measure, selection).in_form(form or PaperForm.latex))


@app.command()
def masks(
    one: Annotated[str, typer.Argument(help="Folder of masks, named by image id; FORMAT:FOLDER unless they are PNG.")],
    other: Annotated[str, typer.Argument(help="Folder of masks to compare with.")],
    out: Annotated[Path | None, typer.Option(help="Write the IoU of each image to this CSV file.")] = None,
    study: StudyFolder = HERE,
) -> None:
    """Compare two folders of masks by intersection over union.

    FORMAT is png, coco, labelme or imagenet_s.
    """
    from cleanset.studies.robustness.image_sets import wnids_of
    from cleanset.studies.robustness.images import Study
    from cleanset.studies.robustness.scenarios.mask_files import MaskSource, agreement

    opened = Study(study)
    sources = MaskSource.parsed(one), MaskSource.parsed(other)
    compared = agreement(*sources, wnids_of(opened), opened.edition.read_classes())
    found = compared.table
    if out is not None:
        from cleanset.plumbing.csv_files import write_frame

        write_frame(out, found)
    smallest, image_id = min(zip(found["iou"].tolist(), found["image_id"].tolist(), strict=True))
    print(
        f"{counted(len(found), 'image')}: mean IoU {decimal(found['iou'].mean(), 3)}, "
        f"smallest {decimal(smallest, 3)} ({image_id})"
    )
    if compared.other_class:
        print(f"left out: {compared.other_class:,}, whose mask of ImageNet-S is of other classes than their set's")
    if compared.unlisted:
        print(f"left out: {compared.unlisted:,}, whose class is not known, as the study has not listed them")
