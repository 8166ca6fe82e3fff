"""Terms that more than two workloads share, for many states at once: rules between pods and the load of endpoints.

States differ in the pods of one workload: counts of its pod sets are float64[P, K], those of others float64[K].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Floats, Rule
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from berth.scheduling.replicas.terms.affinity import unmet_outside
from berth.scheduling.replicas.terms.domains import Domains, spread_table
from berth.scheduling.replicas.terms.load import load_of, parts_of

Counts = Mapping[int, Floats]
"""pods by column, by pod set"""
Part = Callable[[Counts], Floats]
"""float64[P] or a scalar: what the term costs, infinite where a rule is broken"""


def rule_part(model: Model, rule: Rule) -> Part:
    """The term of one rule."""
    if isinstance(rule, AntiAffinity):
        return lambda counts: _anti_affinity(model, rule, counts)
    if isinstance(rule, Spread):
        return lambda counts: _spread(model, rule, counts)
    return lambda counts: _affinity(model, rule, counts)


def _by_domain(model: Model, domains: Domains, rows: Sequence[int], counts: Counts) -> Floats:
    """float64[..., D]: planned pods of the sets."""
    keyed = domains.column >= 0
    incidence = (domains.column[:, None] == np.arange(domains.size)) & keyed[:, None]
    total: Floats = sum((counts[row] for row in rows), np.zeros(model.size)) @ incidence
    return total


def _unkeyed(domains: Domains, rows: Sequence[int], counts: Counts) -> Floats:
    """float64[...]: planned pods of the sets on columns without the key."""
    lost: Floats = sum((counts[row] @ (domains.column < 0) for row in rows), np.zeros(()))
    return lost


def _never(broken: npt.NDArray[np.bool_]) -> Floats:
    return np.where(broken, np.inf, 0.0)


def _anti_affinity(model: Model, rule: AntiAffinity, counts: Counts) -> Floats:
    domains = model.domains(rule.domain)
    placed, owners = domains.table(rule.placed)[:-1], domains.table(rule.placed_subjects)[:-1]
    matching = _by_domain(model, domains, rule.selects, counts) + placed
    subjects = _by_domain(model, domains, rule.subjects, counts) + owners
    both = [row for row in rule.subjects if row in rule.selects]
    own = _by_domain(model, domains, both, counts).sum(axis=-1)
    pairs = (matching * subjects).sum(axis=-1) - own - float(placed @ owners)
    if rule.weight is None:
        return _never(pairs > 0)
    return np.asarray(model.problem.prices.soft_affinity * rule.weight / 100 * pairs)


def _affinity(model: Model, rule: Affinity, counts: Counts) -> Floats:
    domains = model.domains(rule.domain)
    placed = domains.table(rule.placed)[:-1]
    users = _by_domain(model, domains, rule.subjects, counts)
    lost = _unkeyed(domains, rule.subjects, counts)
    both = [row for row in rule.subjects if row in rule.selects]
    same = _by_domain(model, domains, both, counts)
    if rule.weight is None:
        others = [row for row in rule.selects if row not in rule.subjects]
        anchors = _by_domain(model, domains, others, counts) + placed
        lonely = (users > 0) & (anchors == 0)
        exempt = (lonely & (same > 0)).any(axis=-1) & (not placed.any())
        return _never((lonely.sum(axis=-1) > exempt) | (lost > 0))
    other = users - same
    owners = domains.table(rule.placed_subjects)[:-1]
    if rule.subjects and len(both) == len(rule.subjects):
        same = same + owners
    else:
        other = other + owners
    matching = _by_domain(model, domains, rule.selects, counts) + placed
    unmet = (other * (matching == 0) + same * (matching == 1)).sum(axis=-1) + lost + unmet_outside(domains, rule)
    return np.asarray(model.problem.prices.soft_affinity * rule.weight / 100 * unmet)


def _spread(model: Model, rule: Spread, counts: Counts) -> Floats:
    domains = model.domains(rule.domain)
    counted = domains.counted(rule)
    here = {row: counts[row] * counted.column for row in rule.selects}
    placed, others = spread_table(domains, rule)
    table = _by_domain(model, domains, rule.selects, here) + placed[:-1]
    present = np.flatnonzero(counted.present)
    least = np.zeros(table.shape[:-1])
    if rule.present.any() and (not rule.hard or rule.present.sum() >= rule.min_domains):
        least = np.minimum(table[..., present].min(axis=-1, initial=np.inf), others.min(initial=np.inf))
    excess = np.maximum(table - least[..., None] - rule.max_skew, 0.0)
    if not rule.hard:
        apart = np.maximum(others - least[..., None] - rule.max_skew, 0.0).sum(axis=-1)
        return np.asarray(model.problem.prices.of_spread(rule) * (excess[..., present].sum(axis=-1) + apart))
    used = _by_domain(model, domains, rule.subjects, counts) > 0
    return _never(((excess > 0) & used).any(axis=-1) | (_unkeyed(domains, rule.subjects, counts) > 0))


def load_part(model: Model, callee: int, callers: Sequence[int], rows: Mapping[int, Sequence[int]]) -> Part:
    """The load of a workload's endpoints; `rows` has the planned pod sets of each workload."""
    routing, price = model.problem.workloads[callee].routing, model.problem.prices.load

    def replicas(workload: int, counts: Counts) -> Floats:
        total: Floats = sum((counts[row] for row in rows.get(workload, ())), model.placed[workload])
        return total

    def value(counts: Counts) -> Floats:
        x = replicas(callee, counts)
        if not x.size:
            return np.zeros(x.shape[:-1])  # no way to place it is left
        endpoints = float(x.sum(axis=-1).flat[0]) if x.ndim > 1 else float(x.sum())
        if not endpoints:
            return np.zeros(())
        calls: Floats = np.zeros(model.size)
        for caller in callers:
            homes = replicas(caller, counts)
            calls = calls + homes / np.maximum(homes.sum(axis=-1, keepdims=True), 1.0)
        parts = parts_of(model, routing, x, x @ model.service_incidence, calls, calls @ model.service_incidence)
        return np.asarray(price * load_of(endpoints, parts))

    return value
