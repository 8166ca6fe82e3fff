"""PHARE's importance and affinity functions (Filaferro and Nicosia, 2021), as the source states them.

For a component j with demand d_j and neighbours k at relative traffic theta(j, k) = bw(j, k) / max bw:

    z_j = d_j + sum over k of theta(j, k) d_k          (importance: what should stay together)
    y_j = d_j + sum over k of d_k                      (the whole neighbourhood)
    Phi(j, v) = 1 if y_j <= free_v, else exp(-c (y_j - free_v) / (y_j - z_j)),   c = 0.287682
    Psi(j, v) = 1 if ybw_j <= freebw_v, else exp(-a (ybw_j / freebw_v - 1)),
                a = sigmoid(8 (y_j - free_v) / (y_j - z_j) - 4)

c makes Phi 0.75 when the free amount equals z_j. With several resources each function is the minimum over them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

DECAY = 0.287682
"""The constant c, -ln 0.75 to six digits."""


def neighbourhood(requests: Floats, traffic: Floats, linked: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return importance z and neighbourhood demand y, float64[J, R] each.

    `requests` is float64[J, R]; `traffic` float64[J, J] symmetric demand, `linked` bool[J, J] its edges. An edge
    without demand counts in y with all of the neighbour, in z with nothing.
    """
    peak = float(traffic.max(initial=0.0))
    theta = traffic / peak if peak > 0 else np.zeros_like(traffic)
    return requests + theta @ requests, requests + linked.astype(np.float64) @ requests


def _shortfall(y: float, z: float, free: Floats) -> Floats:
    """Return (y - free) / (y - z), the missing amount in units of what matters less; infinite when y = z."""
    missing: Floats = y - free
    if y > z:
        return missing / (y - z)
    return np.where(missing > 0, np.inf, np.where(missing < 0, -np.inf, 0.0))


def computing_affinity(y: float, z: float, free: Floats) -> Floats:
    """Return Phi(j, v), float64[N] in [0, 1], for one resource and the free amounts of all nodes."""
    return np.where(y <= free, 1.0, np.exp(-DECAY * np.maximum(_shortfall(y, z, free), 0.0)))


def communication_affinity(traffic: float, bandwidth: Floats, y: float, z: float, free: Floats) -> Floats:
    """Return Psi(j, v), float64[N] in [0, 1]; `traffic` is the demand of all edges of the component."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        steepness = 1.0 / (1.0 + np.exp(-(8.0 * _shortfall(y, z, free) - 4.0)))
        excess = np.where(bandwidth > 0, traffic / np.where(bandwidth > 0, bandwidth, 1.0) - 1.0, np.inf)
        decayed = np.exp(-np.where(steepness > 0, steepness * excess, 0.0))
    return np.where(traffic <= bandwidth, 1.0, decayed)
