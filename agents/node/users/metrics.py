"""Metrics of round trips to users."""

from __future__ import annotations

from prometheus_client import Counter

USERS = Counter(
    "berth_node_user_measurements",
    "Users that the latency controller asked for, by what came of it.",
    ["result"],
)
"""answered, silent or refused"""
