"""Rules between pods of the templates to place, and of placed pods towards them, as rules of a problem in counts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.domains import counted_nodes, matching_pods
from berth.scheduling.cache.pod_record import PodRecord
from berth.scheduling.cache.pod_templates import HostPort, TermKind
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.term_index import TermEntry
from berth.scheduling.cache.terms import AffinityTerm, SpreadConstraint
from berth.scheduling.configuration import SYSTEM_DEFAULT_CONSTRAINTS, DefaultConstraint
from berth.scheduling.host_ports import port_conflicts
from berth.scheduling.replica_plan.label_index import LabelIndex
from berth.scheduling.replica_plan.placed_pods import PlacedPods, by_slot
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.same_nodes import SameNodes
from berth.scheduling.replica_plan.shared_claims import held_together
from berth.scheduling.replicas.problem import Rule
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


MOST_FIGURES = 20_000_000
"""Rules of one problem, times nodes: each rule may have a figure for each node, 160 MB in all. Pods of one tenant may
state tens of thousands of rules."""


class TooManyRulesError(Exception):
    """The pods to place have more rules than one plan is made with, or has time for."""


class RuleReader:
    """Reads the rules of one problem; arrays of one topology key are shared."""

    def __init__(
        self,
        pod_sets: Sequence[Alike],
        placed: Mapping[str, Mapping[int, int]],
        state: ClusterState,
        defaults: Sequence[DefaultConstraint] = SYSTEM_DEFAULT_CONSTRAINTS,
        gone: Sequence[PodRecord] = (),
        lasting: float | None = None,
    ) -> None:
        """Take what is to be placed, and what is placed already.

        Args:
            pod_sets: waiting pods by what they have in common.
            placed: pods that stay, by workload and node slot.
            state: the cluster.
            defaults: constraints of pods that state none, towards replicas of their workload.
            gone: placed pods that soft rules are not to count; `placed` does not have them either.
            lasting: price of a pod by which a hard spread does not hold without these; None: that of soft ones.
        """
        self._pod_sets = pod_sets
        self._placed = placed
        self._state = state
        self._defaults = defaults
        self._pods = PlacedPods(state, gone)
        self._gone, self._lasting = bool(gone), lasting
        self._labels = LabelIndex([pods.template.labels for pods in pod_sets])
        self._domains: dict[str, Ints] = {}
        self._eligible: dict[bytes, Bools] = {}
        self._left: float = math.inf

    def read(self, turns: SameNodes | None = None) -> Generator[None, None, list[Rule]]:
        """All rules that concern a pod to be placed, in turns.

        Raises:
            NodesChangedError: while others had theirs.
            TooManyRulesError: they and the nodes are more than :data:`MOST_FIGURES`, or time is over.
        """
        turns = turns or SameNodes(self._state)
        self._left = MOST_FIGURES / max(1, self._state.size)
        self._count_stated()
        found: list[Rule] = []
        for step in chain(
            self._anti_affinity("anti_affinity"),
            self._required_affinity(),
            self._ports(),
            self._shared_claims(),
            self._hard_spread(),
            self._with_price(),
        ):
            if step is not None:
                found.append(step)
            yield from turns.pause()
            if turns.exhausted:
                raise TooManyRulesError
        return found

    def read_soft(self) -> list[Rule]:
        """Those of them that have a price."""
        return [step for step in self._with_price() if step is not None]

    def _with_price(self) -> Iterator[Rule | None]:
        yield from self._anti_affinity("preferred_anti_affinity")
        yield from self._preferred_affinity()
        yield from self._soft_spread()
        if self._gone:
            # What stays is to be as even once those that are replaced are gone, as long as these are counted.
            yield from self._hard_spread(hard=False)
        yield from self._default_spread()

    def _count_stated(self) -> None:
        """Find out soon where what the pods state is too much: each different one is a rule at least."""
        stated: set[object] = set()
        for pods in self._pod_sets:
            template = pods.template
            for kind, terms in template.terms.items():
                stated.update([terms] if kind == "affinity" else terms)
            stated.update(constraint for constraint in template.hard_spread if not constraint.selector.everything)
            stated.update(constraint for constraint in template.soft_spread if not constraint.selector.everything)
            if len(stated) > self._left:
                raise TooManyRulesError

    def _take(self) -> None:
        """Note one more array of a figure for each node, or a rule without one."""
        self._left -= 1
        if self._left < 0:
            raise TooManyRulesError

    def _domain(self, key: str) -> Ints:
        """int64[N]; the same array for all keys that no node has: pods may name any."""
        key = key if self._state.nodes.has_label(key) else ""
        if key not in self._domains:
            self._take()
            self._domains[key] = self._state.domains(key).astype(np.int64)
        return self._domains[key]

    def _selected(self, terms: Sequence[AffinityTerm]) -> list[int]:
        """Pod sets that all terms select."""
        return [
            number
            for number in self._labels.carriers(terms[0].selector)
            if all(self._pods.selects(term, self._pod_sets[number].template) for term in terms)
        ]

    def _placed_selected(self, *terms: AffinityTerm) -> Ints | None:
        """int64[N], placed pods that all terms select; None without any."""
        self._take()
        count = self._pods.selected(terms)
        return count if count.any() else None

    def _of_kind(self, kind: TermKind) -> Iterator[tuple[AffinityTerm, list[int], list[int], Ints | None] | None]:
        """(term, pod sets that have it, pod sets that it selects, placed pods that have it) of terms that matter.

        As everywhere here, None comes where others may have a turn.

        Those of placed pods alone that select the same pod sets are one: there may be a hundred thousand.
        """
        owners: defaultdict[tuple[AffinityTerm, int], list[int]] = defaultdict(list)
        for number, pods in enumerate(self._pod_sets):
            for term, times in Counter(pods.template.terms_of(kind)).items():
                for time in range(times):
                    owners[term, time].append(number)
            yield None
        stated: set[AffinityTerm] = set()
        for term, _ in owners:
            stated.add(term)
            yield None
        placed: dict[AffinityTerm, Ints] = {}
        alike: dict[tuple[str, int, tuple[int, ...]], tuple[AffinityTerm, Ints]] = {}
        entries: dict[AffinityTerm, TermEntry] = {}
        for template in (pods.template for pods in self._pod_sets):
            about = self._state.terms_about(kind, template.namespace, template.labels.items())
            entries.update((entry.term, entry) for entry in about)
            yield None
        for term, entry in entries.items():
            yield None
            selects = [] if term in stated else self._selected((term,))
            if not selects and term not in stated:
                continue
            self._take()
            there = self._pods.owners(kind, entry)
            if term in stated:
                placed[term] = there
            else:
                _, total = alike.setdefault((term.topology_key, term.weight, tuple(selects)), (term, there))
                if total is not there:
                    total += there
        for (term, time), subjects in owners.items():
            yield term, subjects, self._selected((term,)), placed.get(term) if time == 0 else None
        for (_, _, selected), (term, total) in alike.items():
            if total.any():
                yield term, [], list(selected), total

    def _anti_affinity(self, kind: TermKind) -> Iterator[AntiAffinity | None]:
        for found in self._of_kind(kind):
            if found is None:
                yield None
                continue
            term, subjects, selects, owners = found
            yield AntiAffinity(
                domain=self._domain(term.topology_key),
                subjects=subjects,
                selects=selects,
                placed=self._placed_selected(term) if subjects else None,
                placed_subjects=owners,
                weight=term.weight or None,
            )

    def _preferred_affinity(self) -> Iterator[Affinity | None]:
        for found in self._of_kind("preferred_affinity"):
            if found is None:
                yield None
                continue
            term, subjects, selects, owners = found
            yield Affinity(
                domain=self._domain(term.topology_key),
                subjects=subjects,
                selects=selects,
                placed=self._placed_selected(term) if subjects else None,
                placed_subjects=owners,
                weight=term.weight,
            )

    def _required_affinity(self) -> Iterator[Affinity]:
        owners: defaultdict[tuple[AffinityTerm, ...], list[int]] = defaultdict(list)
        for number, pods in enumerate(self._pod_sets):
            if terms := pods.template.terms_of("affinity"):
                owners[terms].append(number)
        for terms, subjects in owners.items():
            selects, there = self._selected(terms), self._placed_selected(*terms)
            domains = {id(domain): domain for domain in (self._domain(term.topology_key) for term in terms)}
            if there is not None:
                # Where none of the keys is, kube-scheduler sees nobody: the first of its kind may come anywhere.
                there *= np.any([domain >= 0 for domain in domains.values()], axis=0)
                there = there if there.any() else None
            for number, domain in enumerate(domains.values()):
                if number:
                    self._take()
                yield Affinity(domain=domain, subjects=subjects, selects=selects, placed=there)

    def _ports(self) -> Iterator[AntiAffinity]:
        """Host ports among the pods to place; the masks leave out nodes where they are taken already."""
        users: defaultdict[HostPort, list[int]] = defaultdict(list)
        for number, pods in enumerate(self._pod_sets):
            for port in dict.fromkeys(pods.template.host_ports):
                users[port].append(number)
        nodes = np.arange(self._state.size, dtype=np.int64)
        for subjects, others in port_conflicts(users):
            self._take()
            yield AntiAffinity(domain=nodes, subjects=subjects, selects=others)

    def _shared_claims(self) -> Iterator[Affinity]:
        for together in held_together(self._pod_sets, self._state):
            self._take()
            yield Affinity(domain=together.part, subjects=together.pod_sets, selects=together.pod_sets)

    def _hard_spread(self, *, hard: bool = True) -> Iterator[Spread | None]:
        known: dict[object, tuple[SpreadConstraint, Bools, list[int]]] = {}
        for number, pods in enumerate(self._pod_sets):
            constraints = pods.template.hard_spread
            able = self._with_keys(constraints)
            yield None
            for constraint in dict.fromkeys(constraints):
                if constraint.selector.everything:
                    continue  # counts nobody: only the key is asked for, and the mask sees to that
                eligible = self._shared(counted_nodes(constraint, pods.template, self._state, able))
                same = (constraint, pods.template.namespace, id(eligible))
                known.setdefault(same, (constraint, eligible, []))[2].append(number)
        for constraint, eligible, subjects in known.values():
            yield self._spread(constraint, eligible, subjects, hard=hard, price=None if hard else self._lasting)

    def _soft_spread(self) -> Iterator[Spread | None]:
        """ScheduleAnyway counts once for each workload that states it."""
        known: dict[object, tuple[SpreadConstraint, Bools, list[int]]] = {}
        for number, pods in enumerate(self._pod_sets):
            constraints = pods.template.soft_spread
            able = self._with_keys(constraints)
            yield None
            for constraint in constraints:
                if constraint.selector.everything:
                    continue
                eligible = self._shared(counted_nodes(constraint, pods.template, self._state, able))
                same = (constraint, pods.template.namespace, pods.workload, id(eligible))
                known.setdefault(same, (constraint, eligible, []))[2].append(number)
        for constraint, eligible, subjects in known.values():
            yield self._spread(constraint, eligible, subjects, hard=False)

    def _spread(
        self,
        constraint: SpreadConstraint,
        eligible: Bools,
        subjects: list[int],
        *,
        hard: bool,
        price: float | None = None,
    ) -> Spread:
        self._take()
        template = self._pod_sets[subjects[0]].template
        there = matching_pods(constraint, template, self._state)
        if not hard:
            self._pods.take_off_gone(
                there,
                lambda pod: (
                    not pod.terminating
                    and pod.template.namespace == template.namespace
                    and constraint.selector.matches(pod.template.labels)
                ),
            )
        return Spread(
            domain=self._domain(constraint.topology_key),
            subjects=subjects,
            selects=[
                number
                for number in self._labels.carriers(constraint.selector)
                if self._pod_sets[number].template.namespace == template.namespace
                and constraint.selector.matches(self._pod_sets[number].template.labels)
            ],
            max_skew=constraint.max_skew,
            hard=hard,
            price=price,
            min_domains=constraint.min_domains,
            eligible=eligible,
            placed=there if there.any() else None,
        )

    def _default_spread(self) -> Iterator[Spread]:
        """Replicas of a workload whose pods state no constraint at all."""
        owners: defaultdict[str, list[int]] = defaultdict(list)
        for number, pods in enumerate(self._pod_sets):
            owners[pods.workload].append(number)
        for workload, numbers in owners.items():
            subjects = [
                number
                for number in numbers
                if not self._pod_sets[number].template.hard_spread and not self._pod_sets[number].template.soft_spread
            ]
            placed = self._placed.get(workload)
            waiting = sum(self._pod_sets[number].replicas for number in numbers)
            # What cannot be too many in one domain needs no rule.
            binding = [
                default
                for default in self._defaults
                if self._most(default.topology_key, placed or {}) + waiting > default.max_skew
            ]
            if not subjects or not binding:
                continue
            eligible = self._state.alive & self._state.selection.affinity(self._pod_sets[subjects[0]].template)
            for default in self._defaults:
                eligible &= self._domain(default.topology_key) >= 0
            there = by_slot(placed, self._state.size) if placed else None
            for default in binding:
                self._take()
                yield Spread(
                    domain=self._domain(default.topology_key),
                    subjects=subjects,
                    selects=numbers,
                    max_skew=default.max_skew,
                    hard=False,
                    eligible=self._shared(eligible),
                    placed=there,
                )

    def _most(self, key: str, counts: Mapping[int, int]) -> int:
        """The most of these pods, by node slot, in one domain."""
        by_domain: Counter[int] = Counter()
        for slot, count in counts.items():
            by_domain[int(self._domain(key)[slot])] += count
        return max(by_domain.values(), default=0)

    def _with_keys(self, constraints: Sequence[SpreadConstraint]) -> Bools:
        """bool[N], nodes with the keys of all constraints."""
        eligible: Bools = self._state.alive.copy()
        for key in {constraint.topology_key for constraint in constraints}:
            eligible &= self._domain(key) >= 0
        return eligible

    def _shared(self, nodes: Bools) -> Bools:
        return self._eligible.setdefault(nodes.tobytes(), nodes)
