"""Which pod's node serves a user: the nearest, once it is nearer by enough."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from berth.api.latencypolicy import MAX_ASSOCIATIONS, MAX_MICROSECONDS, Association, LatencyPolicySpec
from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.knowledge import whole
from berth.scheduling.latency.user_table import Costs, UserTable


def associate(
    former: Sequence[Association],
    table: UserTable,
    costs: Costs,
    nodes: Sequence[str],
    serving: Collection[str],
    spec: LatencyPolicySpec,
    now: datetime,
) -> tuple[Association, ...]:
    """Return users with their nodes, sorted by user; who is not known is sent anywhere by the router.

    A user stays with a node that serves, unless another is nearer by what `moves` asks for, or is within the limit
    while that one is not, or, while the table has just begun, as long as it is not known how far the user is from that
    one. Who was not heard of for the expiry loses the association, known or not.

    Args:
        former: associations so far.
        table: users.
        costs: how far they are from `nodes`.
        nodes: names of the columns.
        serving: nodes with a ready pod.
        spec: what is wanted.
        now: the time.
    """
    expiry, limit = timedelta(seconds=spec.users.expiry_seconds), Limits.of(spec).hard
    kept = {each.user: each for each in former if each.node in serving and now - each.last_seen_time <= expiry}
    columns = [at for at, node in enumerate(nodes) if node in serving]
    for user, row in zip(costs.users, costs.microseconds, strict=True):
        if not columns:
            continue
        best = min(columns, key=row.__getitem__)
        mine = kept.get(user)
        if mine is not None and mine.node in nodes:
            far = row[nodes.index(mine.node)]
            wanted = far * (1 - spec.moves.min_improvement_percent / 100)
            unknown = far >= MAX_MICROSECONDS and table.is_returning(now)
            if unknown or (row[best] > wanted and not (far > limit >= row[best])):
                best = nodes.index(mine.node)
        kept[user] = Association(user=user, node=nodes[best], last_seen_time=whole(table.seen(user)))
    # Who is pushed out of the table by others comes after those who are there: a flood of users who come once.
    last = sorted(kept.values(), key=lambda each: (each.user in table, each.last_seen_time), reverse=True)
    last = last[:MAX_ASSOCIATIONS]
    return tuple(sorted(last, key=lambda each: each.user))
