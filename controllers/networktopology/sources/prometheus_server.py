"""Which Prometheus server is asked, and for what."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from controllers.networktopology.sources.prometheus_presets import LatencyQuery


@dataclass(frozen=True, slots=True)
class PrometheusServer:
    """Where Prometheus is, how to come in, and what to ask."""

    url: str
    """up to what its API begins with"""
    query: LatencyQuery
    """for latencies"""
    token_file: Path | None = None
    """holds the bearer token; read for every query, as it may be renewed"""
    ca_file: Path | None = None
    """certificates to trust instead of the system's; read for every query too"""
    timeout: float = 10.0
    """seconds that a query may take"""
