"""Which pod sets depend on where pods of others are: those of one workload, both ends of an edge, parties to a rule,
and all who mind each other on a node.

A rule may concern every pod set, so its parties are kept once and not once for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from berth.scheduling.replicas.problem import Problem, Rule


class Relations:
    """Pod sets that are related."""

    def __init__(self, problem: Problem, rules: Sequence[Rule]) -> None:
        """Take edges and pod sets from the problem, and the rules that matter."""
        own: list[list[int]] = [[] for _ in problem.workloads]
        for row, pod_set in enumerate(problem.pod_sets):
            own[pod_set.workload].append(row)
        self._groups = [frozenset(rows) for rows in own]
        """pod sets of each workload, then those of each rule, then those that mind each other"""
        self._of: list[set[int]] = [{pod_set.workload} for pod_set in problem.pod_sets]
        """groups by pod set, those that it is related to as a whole"""
        for edge in problem.edges:
            for one, other in ((edge.caller, edge.callee), (edge.callee, edge.caller)):
                for row in own[one]:
                    self._of[row].add(other)
        for rows in dict.fromkeys(frozenset((*rule.subjects, *rule.selects)) for rule in rules):
            for row in rows if len(rows) > 1 else ():
                self._of[row].add(len(self._groups))
            self._groups.append(rows)
        if problem.sharing is not None:
            sharing = frozenset(problem.sharing.number)
            for row in sharing:
                self._of[row].add(len(self._groups))
            self._groups.append(sharing)

    def sets(self, workload: int) -> list[int]:
        """The pod sets of a workload."""
        return sorted(self._groups[workload])

    def of(self, rows: Iterable[int]) -> list[int]:
        """Pod sets that some of these are related to, themselves among them, in order."""
        groups = set[int]().union(*(self._of[row] for row in rows))
        return sorted(set[int]().union(*(self._groups[group] for group in groups)))

    def between(self, one: int, other: int) -> bool:
        """Whether two pod sets are related."""
        return any(other in self._groups[group] for group in self._of[one])

    def components(self, waiting: Iterable[int]) -> list[list[int]]:
        """Those of the given pod sets that are related, directly or through any others, together."""
        left = dict.fromkeys(waiting)
        found: list[list[int]] = []
        seen: set[int] = set()
        while left:
            first = next(iter(left))
            reached, queue = {first}, [first]
            while queue:
                for group in self._of[queue.pop()] - seen:
                    seen.add(group)
                    fresh = set(self._groups[group]) - reached
                    reached |= fresh
                    queue.extend(fresh)
            found.append(sorted(row for row in reached if row in left))
            for row in found[-1]:
                del left[row]
        return found
