"""What people may set of the networktopology controller on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator
from yarl import URL

from berth.runtime.settings import ComponentSettings, Flag
from controllers.networktopology.scale import COST_UNIT
from controllers.networktopology.sources.base import Percentile, SourceSettings
from controllers.networktopology.sources.prometheus_presets import Level, Preset, Unit, own_query, preset_query
from controllers.networktopology.sources.prometheus_server import PrometheusServer


class NetworkTopologySettings(ComponentSettings):
    """Settings of the networktopology controller."""

    path_algorithm: Annotated[Literal["Dijkstra", "BellmanFord"], Flag("--path-algorithm")] = "Dijkstra"
    """Algorithm of the shortest paths, and name of the weight set that it writes."""
    latency_percentile: Annotated[Percentile, Flag("--latency-percentile")] = "p90"
    """Percentile of the measured latencies that costs come from."""
    cost_unit_microseconds: Annotated[int, Flag("--cost-unit-microseconds")] = Field(
        default=COST_UNIT, ge=1, le=1_000_000
    )
    """Microseconds of latency that cost 1, 1 to 1000000; 1000 gives the costs of upstream's controller."""
    prometheus_url: Annotated[str | None, Flag("--prometheus-url")] = None
    """Prometheus server with latencies, such as https://prometheus.monitoring:9090; unset: none is asked."""
    prometheus_preset: Annotated[Preset, Flag("--prometheus-preset")] = "netperf"
    """Meter whose metrics it has; netperf are those of Berth's node agents."""
    prometheus_query: Annotated[str | None, Flag("--prometheus-query")] = None
    """PromQL to ask instead: an instant vector with the labels origin and destination."""
    prometheus_query_unit: Annotated[Unit, Flag("--prometheus-query-unit")] = "seconds"
    """Unit of that query's figures."""
    prometheus_query_level: Annotated[Level, Flag("--prometheus-query-level")] = "node"
    """What that query's labels name."""
    prometheus_token_file: Annotated[Path | None, Flag("--prometheus-token-file")] = None
    """File with the bearer token for Prometheus; the URL must be one of https."""
    prometheus_ca_file: Annotated[Path | None, Flag("--prometheus-ca-file")] = None
    """File with the certificates to trust for Prometheus; unset: the system's."""
    prometheus_timeout: Annotated[float, Flag("--prometheus-timeout")] = Field(default=10.0, ge=0.1, le=60.0)
    """Seconds that a query may take, 0.1 to 60."""

    @field_validator("prometheus_url")
    @classmethod
    def _is_a_server(cls, text: str | None) -> str | None:
        if text is None:
            return None
        url = URL(text)
        if url.scheme not in ("http", "https") or not url.host or url.query_string or url.fragment:
            raise ValueError("write a URL such as https://prometheus.monitoring:9090")
        if url.user is not None or url.password is not None:
            raise ValueError("credentials belong in a file: --prometheus-token-file")
        return text

    @field_validator("prometheus_token_file")
    @classmethod
    def _stays_secret(cls, path: Path | None, info: ValidationInfo) -> Path | None:
        # Of a URL that was refused, that is what to say.
        url = info.data.get("prometheus_url", "https:")
        if path is not None and not (url or "").startswith("https:"):
            raise ValueError("a token is sent over https only; give --prometheus-url such a URL")
        return path

    def of_sources(self) -> SourceSettings:
        """Return what sources are to know of these."""
        if self.prometheus_url is None:
            return SourceSettings(self.latency_percentile)
        if self.prometheus_query is None:
            query = preset_query(self.prometheus_preset, self.latency_percentile)
        else:
            query = own_query(self.prometheus_query, self.prometheus_query_unit, self.prometheus_query_level)
        server = PrometheusServer(
            self.prometheus_url, query, self.prometheus_token_file, self.prometheus_ca_file, self.prometheus_timeout
        )
        return SourceSettings(self.latency_percentile, server)
