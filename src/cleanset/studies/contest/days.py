"""Days, instants and weeks of the contest, all in UTC."""

import datetime
import re
from typing import Annotated, Any

from pydantic import BeforeValidator

FRIDAY = 4
"""Day of the week on which a week ends; Monday is 0."""
DAYS_A_WEEK = 7

_DAY = re.compile(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(r"2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


def parse_day(text: Any) -> datetime.date:
    """The day in a text such as 2026-11-27. Raises ValueError for anything else."""
    # not isinstance: a datetime is a date, too
    if type(text) is datetime.date:
        return text
    try:
        if isinstance(text, str) and text.isascii() and _DAY.fullmatch(text):
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError('expected a day such as "2026-11-27", in quotes')


def parse_instant(text: Any) -> datetime.datetime:
    """The instant in a text such as 2026-11-27T23:59:59Z, with its time zone. Raises ValueError for anything else."""
    if isinstance(text, datetime.datetime) and text.tzinfo is datetime.UTC:
        return text
    try:
        if isinstance(text, str) and text.isascii() and _INSTANT.fullmatch(text):
            return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError('expected an instant in UTC such as "2026-11-27T23:59:59Z", in quotes')


Day = Annotated[datetime.date, BeforeValidator(parse_day)]
Instant = Annotated[datetime.datetime, BeforeValidator(parse_instant)]


def week_of(instant: datetime.datetime) -> datetime.date:
    """The Friday on which the week of an instant ends, at 23:59:59 UTC; the next second is in the next week."""
    return week_of_day(day_of(instant))


def day_of(instant: datetime.datetime) -> datetime.date:
    """The day of an instant, in UTC."""
    return instant.astimezone(datetime.UTC).date()


def week_of_day(day: datetime.date) -> datetime.date:
    """The Friday on which the week of a day in UTC ends."""
    return day + datetime.timedelta((FRIDAY - day.weekday()) % DAYS_A_WEEK)


def after(day: datetime.date, days: int) -> datetime.date:
    """The day that is some days after another."""
    return day + datetime.timedelta(days)
