"""The waiting pods of an AppGroup with the nodes that each may go to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.scheduling.cache.cache import Cache
from berth.scheduling.decision import Failure
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import Framework
from berth.scheduling.gang.application import Candidate, as_of_now, beyond_template
from berth.scheduling.gang.failures import rejected, unplanned
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.planning import JointPlan
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from berth.scheduling.replica_plan.planner import JUDGED_IN_COUNTS


class CandidateFilter:
    """Runs the filters for pods that are planned together, but for what a joint plan judges itself."""

    def __init__(
        self, cache: Cache, framework: Framework, infrastructure: Callable[[NetworkCosts], InfrastructureState]
    ) -> None:
        """Share the cache and the plugins; `infrastructure` is the cluster as of now."""
        self._cache = cache
        self._framework = framework
        self._infrastructure = infrastructure

    def candidates(
        self, joint: JointPlan, pods: Sequence[Pod], *, in_counts: bool = False
    ) -> Generator[None, None, tuple[list[Candidate], list[Failure]]]:
        """Filter every pod, once per template, in turns; pods that fit nowhere become failures.

        What others take in between is not looked at again: whoever assumes the pods judges them by what is there then.

        Args:
            joint: what they are for; with its time exhausted, the first template is looked at and no other.
            pods: the pods.
            in_counts: leave out what a plan in counts judges itself.
        """
        framework, state, budget = self._framework, self._cache.state, joint.budget
        skip = framework.judged_jointly | (JUDGED_IN_COUNTS if in_counts else frozenset())
        costs_of = framework.objective_costs if in_counts else framework.joint_costs
        infrastructure, pauses = self._infrastructure(joint.costs), budget.pauses
        known: dict[tuple[object, ...], Candidate] = {}
        fitting: dict[int, bool] = {}
        """whether some node admits it, by id of what is known: masks are counted once and not for each pod"""
        candidates: list[Candidate] = []
        failures: list[Failure] = []
        for pod in pods:
            yield from budget.pause()  # templates of a megabyte are compiled anew for every pod
            info = state.info(pod)
            refused = self._cache.recently_rejected(pod)
            key = (info.template.key, refused, *beyond_template(pod))
            like = known.get(key)
            if like is None and known and budget.exhausted:
                failures.append(unplanned(pod, joint.group))
                continue
            if like is None:
                if pauses != budget.pauses:
                    infrastructure, pauses = self._infrastructure(joint.costs), budget.pauses
                cycle = CycleState(info, state, infrastructure=infrastructure, recently_rejected=refused)
                result = framework.filter(cycle, skip=skip)
                if not result.feasible and info.template.terms_of("affinity"):
                    # The pods it wants to be near may be in this very plan: that is judged once they are assumed.
                    result = framework.filter(cycle, skip={InterPodAffinity.name, *skip})
                like = known[key] = Candidate(info, result, costs_of(cycle, result.mask), state.nodes.version)
                fitting[id(like)] = bool(result.mask.any())
            if fitting[id(like)]:
                candidates.append(replace(like, info=info))
            else:
                failures.append(rejected(pod, joint.group, like.result))
        return as_of_now(candidates, state), failures
