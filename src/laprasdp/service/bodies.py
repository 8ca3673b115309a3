"""What requests hold, checked before anything is done."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from laprasdp.service.principal import RoleName


def _spelled(text: str) -> str:
    """A text without halves of characters and NULs, which no database keeps."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the text has half a character in it") from None
    if "\0" in text:
        raise ValueError("the text has a NUL in it")
    return text


CleanText = Annotated[str, AfterValidator(_spelled)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Body(BaseModel):
    """A request's body: what is not known is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuestionBody(Body):
    """A statement, and how exactly it is wanted."""

    statement: Annotated[CleanText, Field(max_length=1_000_000)]
    max_std: Positive | None = None
    remeasure: bool = False


class PredictionBody(Body):
    """A statement that is expected, and how often."""

    statement: Annotated[CleanText, Field(max_length=100_000)]
    expected: Positive | None = None


class PredictionsBody(Body):
    """All statements that are expected."""

    predictions: Annotated[list[PredictionBody], Field(max_length=10_000)]


class BeginBody(Body):
    """That the ledger is begun; `confirm` is the word "begin", since its predictions stay then."""

    confirm: str


class RaiseBody(Body):
    """A raise of the budget; `confirm` is the word "raise", since it weakens what was promised."""

    epsilon: Positive
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    confirm: str
    period: CleanText | None = None


class PrincipalBody(Body):
    """A principal to be made."""

    name: Annotated[CleanText, Field(min_length=1, max_length=100)]
    role: RoleName
    cap: Positive | None = None


class ChangeBody(Body):
    """What changes of a principal."""

    cap: Positive | None = None
    active: bool | None = None


class TokenBody(Body):
    """A token to be made."""

    principal: Annotated[CleanText, Field(min_length=1, max_length=100)]
    name: Annotated[CleanText, Field(min_length=1, max_length=100)] = "token"
    days: Annotated[float, Field(gt=0, le=3660)] | None = 90.0
