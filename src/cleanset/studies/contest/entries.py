"""The entries of teams, judges and the board, and the runs of defences: their fields, each entry checked by itself."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cleanset.images.codec import MAX_AREA
from cleanset.plumbing.validation import Role, Section, Sha256
from cleanset.statistics.coverage import Confidence, Eligibility, ImageCount
from cleanset.studies.contest.judging import ControlImage, JudgeAnswer
from cleanset.studies.contest.rules import MIN_JUDGES, ContestRules, Day, Name, PublicKey

DefenceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_-]*$", max_length=129)]
JudgeId = Annotated[str, Field(pattern=r"^[0-9a-f]{8,32}$")]
"""Drawn at random instead of a name, so that all answers can be published unchanged."""
ImageName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\.(png|jpg|jpeg|PNG|JPG|JPEG)$", max_length=100)]
FilePath = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$", max_length=200)
]
"""Relative to the folder of the file that names it, and inside that folder."""
Text = Annotated[str, Field(pattern=r"[\p{L}\p{N}]", max_length=10_000)]
"""At least one letter or digit, so that no reason is empty."""
SHORT_DIGEST = 12
"""Characters of a digest that are enough to name a line of the log or an image."""
SidePixels = Annotated[int, Field(ge=1, le=65_535)]
DEFENCE_SIDE = 299
"""Width and height of the images that a command is given, as in the paper's data."""


def short(digest: str) -> str:
    """The beginning of a digest, by which messages name a line of the log or an image."""
    return f"{digest[:SHORT_DIGEST]}…"


def team_of(defence: str) -> str:
    """The team in a defence's name."""
    return defence.partition("/")[0]


class NamedFile(Section):
    """A file of a defence and its purpose."""

    path: FilePath
    sha256: Sha256
    role: Literal["inference", "training", "weights", "other"] = "other"


class ModelOfEdition(Section):
    """A model of the edition that abstains below a threshold of its confidence."""

    role: Role
    wrapper: Literal["uninteresting"] | None = None
    """`uninteresting`: the defence of Unrestricted Adversarial Examples, appendix E; it masks gradients."""

    confidence: Confidence
    threshold: Annotated[float, Field(allow_inf_nan=False)]
    pixels: SidePixels = DEFENCE_SIDE
    """The pixels to which a square image's side is scaled for the model; entered with the defence."""

    crop: SidePixels = DEFENCE_SIDE
    """The pixels of these that the model looks at, in the middle."""

    @model_validator(mode="after")
    def _crop_inside(self) -> Self:
        if self.crop > self.pixels:
            raise ValueError(f"crop: {self.crop}; expected at most pixels, {self.pixels}")
        return self

    @property
    def share_seen(self) -> float:
        """The share of a square image's side that the model looks at."""
        return self.crop / self.pixels


class PublicWeights(Section):
    """Where anybody finds a model's weights, and their digest."""

    source: Text
    sha256: Sha256


class Defence(Section):
    """All of a defence.yaml: a model of the edition, or a command, and every file that it needs."""

    name: DefenceName
    submitted: Day
    open: bool
    """Whether inference code, training code and weights are published; a closed defence cannot win."""

    files: list[NamedFile] = Field(default_factory=list)
    public: PublicWeights | None = None
    """The weights of a model that are not among the files."""

    model: ModelOfEdition | None = None
    command: Annotated[list[str], Field(min_length=1, max_length=100)] | None = None
    """It is started with the path of a folder of images added, and prints a line `file, class or abstain` for each.

    A list of words, so that no shell reads it.
    """

    time_limit_seconds: Annotated[int, Field(ge=1, le=864_000)] = 3600
    """Time for all images of a run together."""

    @property
    def pixels(self) -> int:
        """The most pixels of a square image's side that it can tell apart."""
        return DEFENCE_SIDE if self.model is None else self.model.pixels

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.model is None) == (self.command is None):
            raise ValueError("expected either model or command")
        if len({each.path for each in self.files}) < len(self.files):
            raise ValueError("files: a path twice; expected each once")
        if self.command is not None and not self.files:
            raise ValueError("files: empty; expected every file that the command needs, with its SHA-256")
        missing = {"inference", "training", "weights"} - {each.role for each in self.files}
        if self.open and self.command is not None and missing:
            raise ValueError(f"open: no file has the role {min(missing)}; expected inference, training and weights")
        if self.open and self.public is None and "weights" in missing:
            raise ValueError("open: no weights; expected them among the files, or public with their source and sha256")
        return self


class SubmittedImage(Section):
    """An image of a submission."""

    file: ImageName
    sha256: Sha256
    pixels_sha256: Sha256
    """The SHA-256 of its RGB bytes, row by row."""

    width: SidePixels
    height: SidePixels

    @model_validator(mode="after")
    def _no_bomb(self) -> Self:
        # before any file is opened: a small PNG may decode to gigabytes
        if self.width * self.height > MAX_AREA:
            raise ValueError(f"{self.width} x {self.height} pixels; expected at most {MAX_AREA:,}")
        return self


class SubmissionManifest(Section):
    """A submission; all but its images is in manifest.yaml."""

    team: Name
    target: DefenceName
    images: Annotated[list[SubmittedImage], Field(min_length=1, max_length=1000)]


class Roster(Section):
    """Judges by their ids, without names, and the keys with which they sign their answers."""

    roster: dict[JudgeId, PublicKey]


class ControlsFile(Section):
    """All of a controls.yaml: by SHA-256, the images whose answers are known."""

    controls: dict[Sha256, ControlImage]


class JudgeExample(JudgeAnswer):
    """An image shown to judges beforehand, with its answers and why they are correct."""

    because: Text


class ExamplesFile(Section):
    """All of an examples.yaml: by SHA-256, in display order."""

    examples: dict[Sha256, JudgeExample]


class AnswerFile(Section):
    """All of a file of answers: one judge's answers in a week, by the SHA-256 of the image."""

    judge: JudgeId
    week: Day
    answers: dict[Sha256, JudgeAnswer]

    def __str__(self) -> str:
        return f"answers of {self.judge} in the week of {self.week}"


class BoardDecision(Section):
    """A decision of the board on an image, with its public reason: a verdict, or a new number of judges."""

    image: Sha256
    date: Day
    reason: Text
    members: list[Name]
    """Those who have signed it."""

    recused: list[Name] = Field(default_factory=list)
    verdict: Name | None = None
    """The name of a group, or `invalid`."""

    judges: Annotated[int, Field(ge=MIN_JUDGES, le=1000)] | None = None

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        if (self.verdict is None) == (self.judges is None):
            raise ValueError("expected either verdict or judges")
        both = set(self.members) & set(self.recused)
        if both:
            raise ValueError(f"{min(both)} is recused and among members; expected one of the two")
        return self


class Appeal(Section):
    """A team's appeal of the judges' verdict on an image."""

    image: Sha256
    team: Name
    date: Day
    statement: Text


class Stake(Section):
    """A batch of defences, staked on one day by the board or by their own team."""

    batch: Name
    date: Day
    by: Name
    defences: Annotated[list[DefenceName], Field(min_length=1)]


class Acceptance(Section):
    """The board's permission to run a defence's command."""

    defence: DefenceName
    date: Day


class UnpublishedResult(Section):
    """What a run over an unpublished list comes to; counts of many defences would give the list away."""

    list_sha256: Sha256
    """The list's digest, which tells nothing of its images."""

    against: list[Name]
    """The reasons against eligibility; none for a defence that is eligible by this list."""

    figures: Eligibility | None = None
    """Its counts, once the contest is over."""


def reasons_against(eligibility: Eligibility, rules: ContestRules) -> list[str]:
    """The reasons in the counts on a list why a defence is not eligible."""
    found = {
        "abstains": not eligibility.answers_enough,
        "accuracy": eligibility.answers_enough and not eligibility.fulfils(rules.eligibility),
        "too_few_images": rules.eligibility == "perfect_at_80" and eligibility.images < rules.limits.eligibility_images,
    }
    return [reason for reason, applies in found.items() if applies]


class WarningSign(Section):
    """A sign that a defence masks its gradients, with its evidence as a sentence."""

    sign: Name
    text: Text


CoverageStep = Annotated[list[ImageCount], Field(min_length=2, max_length=2)]


class DefenceRun(Section):
    """One run of a defence over every submitted image."""

    defence: DefenceName
    date: Day
    model: Sha256 | None = None
    """The digest of the model's entry in the edition's params.yaml; None for a command."""

    confined: bool | None = None
    """Whether a command saw nothing but its files and the images; None for a model."""

    images_per_minute: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    eligibility: Eligibility
    """Counts on the eligibility list."""

    unpublished: UnpublishedResult | None = None
    """The result on the unpublished list, if there is one."""

    coverage: list[CoverageStep] | None = None
    """The result of `coverage_steps` on the eligibility list."""

    signs: list[WarningSign] | None = None
    """Signs of gradient masking in a model's answers and gradients; None for a command."""

    answers: dict[Sha256, Name]
    """By SHA-256 of the image, the name of a group or `abstain`."""

    @model_validator(mode="after")
    def _steps_that_end_at_all_answers(self) -> Self:
        if self.coverage is None:
            return self
        last = [0, 0]
        found = self.eligibility
        for step in self.coverage:
            # mistakes are among the images answered: they cannot grow faster than these
            if step[0] <= last[0] or not last[1] <= step[1] <= last[1] + step[0] - last[0]:
                raise ValueError(f"coverage: {step} after {last}; expected more images, and no more mistakes than they")
            last = step
        if last != [found.correct + found.mistakes, found.mistakes]:
            raise ValueError(f"coverage: ends at {last}; expected all answers and mistakes of eligibility")
        return self
