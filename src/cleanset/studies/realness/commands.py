"""The commands `cleanset study …`: do people take images for real? Imports are made when a command runs."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from cleanset.edition.options import LOOPBACK, Browser, Host, Json, NewFolder, Port, PublicUrl, show
from cleanset.errors import CleansetError

app = typer.Typer(no_args_is_help=True, help="Plan and analyse a rating study of how real images look.")

PlanFolder = Annotated[Path, typer.Option(help="The plan's folder.")]

Settings = TypeVar("Settings")


def settings_of(kind: type[Settings], text: str, option: str, **more: object) -> Settings:
    """The settings of a text such as `bound=0.1,alpha=0.01`; keys left out have their defaults.

    Raises CleansetError for an unknown key and a value that is not valid.
    """
    from pydantic import TypeAdapter, ValidationError

    from cleanset.plumbing.validation import check_known, first_problem

    given = dict(each.strip().partition("=")[::2] for each in text.split(",") if each.strip())
    for key in given:
        check_known(f"key of {option}", key, (each.name for each in fields(kind) if each.name not in more))  # type: ignore[arg-type]
    try:
        return TypeAdapter(kind).validate_python(given | more)
    except ValidationError as error:
        raise CleansetError(f"{option}: {first_problem(error)}") from None


def with_protocol(settings: str) -> str:
    """The settings of a plan, behind those of the protocol that they name; what they name themselves counts."""
    from dataclasses import asdict

    from cleanset.plumbing.validation import check_known
    from cleanset.studies.realness.protocol import PROTOCOLS

    given = [each.strip() for each in settings.split(",")]
    names = [each.partition("=")[2] for each in given if each.partition("=")[0] == "protocol"]
    usual: list[str] = []
    if names:
        check_known("protocol", names[-1], PROTOCOLS)
        usual = [f"{name}={value}" for name, value in asdict(PROTOCOLS[names[-1]]).items()]
    return ",".join([*usual, *(each for each in given if each.partition("=")[0] != "protocol")])


@app.command()
def plan(
    set_folder: Annotated[Path, typer.Option("--set", help="The folder of a finished set.")],
    attacked: Annotated[Path, typer.Option(help="A folder of attacked images, JPEGs or PNGs at any depth.")],
    out: NewFolder,
    people: Annotated[
        int | None,
        typer.Option(
            min=2, max=10_000, help="Number of people, and of lists.", show_default="as many as the bound needs"
        ),
    ] = None,
    settings: Annotated[
        str,
        typer.Option(
            help="protocol (or as_published), or its parts scale, revision, attention, pairs, min_correct_pairs, "
            "pair_change, explanation, plates; for a list: real, modified; for the test: bound, alpha, power, effect; "
            "width_mm of images, else whole pixels; a file texts.",
            show_default="protocol=own,real=50,modified=50,bound=0.2,alpha=0.05,power=0.8,effect=0",
        ),
    ] = "",
    pilot: Annotated[
        Path | None,
        typer.Option(
            help="Ratings of a pilot study, for the variances.", show_default="medians of six published studies"
        ),
    ] = None,
    side: Annotated[
        int | None,
        typer.Option(
            min=16,
            max=2048,
            help="Width and height of all images in pixels.",
            show_default="size of the attacked images",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all orders and file names; keep it secret.")] = 0,
) -> None:
    """Plan who rates which images, and make the page on which they rate them.

    Writes page/ (for people: open index.html?list=1), trials.csv (the same
    lists for a survey tool), texts.yaml (the page's texts, to be translated),
    and key.csv and plan.json, which are for your eyes only.
    """
    from cleanset.studies.realness import planning
    from cleanset.studies.realness.plan import PlanRequest

    wish = settings_of(PlanRequest, with_protocol(settings), "--settings", people=people, side=side, seed=seed)
    typer.echo(planning.plan_summary(planning.write_plan(set_folder, attacked, out, wish, pilot=pilot), out))


@app.command()
def serve(
    plan: PlanFolder,
    host: Host = LOOPBACK,
    port: Port = None,
    browser: Browser = True,
    public_url: PublicUrl = None,
    settings: Annotated[
        str,
        typer.Option(
            help="id_parameter of the recruiter's links, ids (a file) of those invited, people wanted, minutes until a "
            "list is given on, the HTML files consent and instructions, completion address.",
            show_default="minutes=60",
        ),
    ] = "",
) -> None:
    """Serve a plan's page from this machine, and save each answer in its folder.

    Every person gets their own list, and can continue where they stopped.
    Answers are saved in answers/; people.csv, for your eyes only, has the
    recruiter's ids. With --public-url everyone may take part.
    """
    from cleanset.studies.realness import serving
    from cleanset.studies.realness.study_server import ServeSettings
    from cleanset.web.pages import PageAddress

    wanted = settings_of(ServeSettings, settings, "--settings")
    serving.serve_study(plan, PageAddress(host, port, browser=browser, public_url=public_url), wanted)


@app.command()
def pilot(
    plan: PlanFolder,
    out: NewFolder,
    people: Annotated[int, typer.Option(min=1, max=1000, help="Number of simulated people.")] = 10,
    settings: Annotated[
        str,
        typer.Option(
            help="effect: modified minus real, of careful people; wage for an hour.", show_default="effect=0,wage=0"
        ),
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that the people do.")] = 0,
) -> None:
    """Try a plan with simulated people, before money is spent.

    Careful, careless, fast and biased people go through the page in a real
    browser. Writes pictures of what they see, their answers and the analysis;
    prints how long it takes, what it costs, and whether the number of people
    gives the power.
    """
    from cleanset.studies.realness import pilot as piloting

    wanted = settings_of(piloting.PilotSettings, settings, "--settings")
    typer.echo(piloting.pilot_text(piloting.run_pilot(plan, out, people, seed, wanted), out))


@app.command()
def analyse(
    ratings: Annotated[list[Path], typer.Argument(help="CSV files of ratings, or of the page's answers.")],
    plan: Annotated[Path | None, typer.Option(help="The plan's folder, for the page's answers.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the results into a new or empty folder.")] = None,
    settings: Annotated[
        str,
        typer.Option(
            help="Model: random (or intercepts), degrees (or normal); tests: bound, alpha; min_ratings.",
            show_default="random=slopes,degrees=satterthwaite,bound=0.2,alpha=0.05,min_ratings=5",
        ),
    ] = "",
    exclude: Annotated[
        str,
        typer.Option(
            help="Limits of the exclusion rules: also colour_vision, min_attention, min_share, max_same, "
            "min_milliseconds, min_shown, max_shown, one_person_a_list=yes.",
            show_default="attention=1; comprehension as the plan's page",
        ),
    ] = "",
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="Fit an ordinal model, too, as a check; needs statsmodels.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Analyse ratings: means, agreement, and whether modified images pass for real.

    A mixed model and two one-sided tests show whether modified images are
    rated like real ones; real images taken for modified are listed.
    """
    from cleanset.studies.realness import analysis_report
    from cleanset.studies.realness.analysis import AnalysisSettings
    from cleanset.studies.realness.exclusions import ExclusionLimits

    limits = settings_of(ExclusionLimits, exclude, "--exclude")
    wanted = settings_of(AnalysisSettings, settings, "--settings", limits=limits, ordinal=ordinal)
    found = analysis_report.analyse_files(ratings, wanted, plan, out)
    show(analysis_report.analysis_json(found) if as_json else analysis_report.analysis_text(found))
