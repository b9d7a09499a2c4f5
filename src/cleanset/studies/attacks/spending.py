"""The budget of an attack on a model: which group of images may begin, and which ones count.

Groups are counted in their order, whoever computes them and whenever they are finished: so a budget of queries gives
the same images with one worker and with several, and after an interruption.
"""

from collections.abc import Callable, Mapping
from time import monotonic

from cleanset.studies.attacks.study import Budget


class Spending:
    """The queries and seconds that the groups of an attack have taken; seconds are the sum over the workers.

    `finished`: the queries of the groups that an earlier run has finished, by number.
    """

    def __init__(self, budget: Budget, finished: Mapping[int, int], clock: Callable[[], float] = monotonic) -> None:
        self._budget = budget
        self._queries = dict(finished)
        self._clock = clock
        self._begun = dict[int, float]()
        self._seconds = 0.0

    def may_begin(self, number: int) -> bool:
        """Whether a group may begin; at least one group is attacked, however small the budget is."""
        queries = self._budget.queries
        seconds = self._budget.seconds
        if number == 0:
            return True
        if seconds is not None and self.seconds() >= seconds:
            return False
        # those of groups that are not finished yet are unknown
        return queries is None or sum(each for before, each in self._queries.items() if before < number) < queries

    def begin(self, number: int) -> None:
        """A worker of this machine begins a group: the seconds since count before it is finished."""
        self._begun[number] = self._clock()

    def finish(self, number: int, queries: int, seconds: float) -> None:
        """A group is finished, which took a worker so many seconds."""
        self._begun.pop(number, None)
        self._seconds += seconds
        self._queries[number] = queries

    def seconds(self) -> float:
        """Seconds that groups of this run have taken so far, of all workers together."""
        now = self._clock()
        return self._seconds + sum(now - begun for begun in self._begun.values())

    def counted_groups(self) -> int:
        """The number of groups that count: the first ones that are finished, within the budget of queries."""
        number = 0
        spent = 0
        while number in self._queries and (number == 0 or self._budget.queries is None or spent < self._budget.queries):
            spent += self._queries[number]
            number += 1
        return number
