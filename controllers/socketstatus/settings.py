"""What people may set of the socketstatus controller on the command line."""

from __future__ import annotations

from pydantic import Field

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.runtime.settings import ComponentSettings
from berth.scheduling.interference.exchange import COOL_DOWN
from berth.scheduling.interference.slowdown import PRICE


class SocketStatusSettings(ComponentSettings):
    """Settings of the socketstatus controller."""

    class_label: str = LABEL_INTERFERENCE_CLASS
    """Label with the interference class of a pod; the same as placement and pinning read."""
    price: float = Field(default=PRICE, ge=0.01, le=100.0)
    """Harm that has to go for each pod that moves, 0.01 to 100. Below 0.2 pods move that placement has just seated."""
    cool_down: float = Field(default=COOL_DOWN.total_seconds(), ge=0.0, le=86_400.0)
    """Seconds for which a pod stays on a socket at least, 0 to 86400."""
    assign_all: bool = False
    """Assign a socket to pods with a class label that Berth has not placed, too, by the pairing rules."""
