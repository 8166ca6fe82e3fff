"""Options that cannot be right are refused by name."""

from __future__ import annotations

import pytest

from agents.router.agent import END_SECONDS
from agents.router.settings import RouterSettings
from berth.runtime.process import SHUTDOWN_GRACE
from berth.runtime.settings import SettingsError, settings_from


@pytest.mark.parametrize(
    ("flag", "value", "text"),
    [
        pytest.param("--router-steer-url", "http://somewhere", "write a URL with {address} or {node}", id="one router"),
        pytest.param("--router-steer-url", "{address}:8000", "write a URL with", id="no URL"),
        pytest.param("--router-controller", "http://c", "a token goes there", id="a token in the clear"),
        pytest.param("--router-port", "70000", "less than or equal to 65535", id="port"),
        pytest.param("--router-users", "1", "greater than or equal to 5", id="users"),
    ],
)
def test_what_is_refused(flag: str, value: str, text: str) -> None:
    with pytest.raises(SettingsError, match=f"{flag}.*{text.replace('{', '.').replace('}', '.')}"):
        settings_from(RouterSettings, "router", {flag: value})


def test_the_longest_end_is_within_what_a_process_has() -> None:
    settings = settings_from(RouterSettings, "router", {"--router-linger": 7.0})
    assert settings.linger + END_SECONDS < SHUTDOWN_GRACE
