"""The text of a configuration file, made a configuration."""

from __future__ import annotations

import yaml

from berth.scheduling.configuration import ConfigurationError, PlacementConfiguration, parse_configuration


def configuration_of(text: str, *, source: str) -> PlacementConfiguration:
    """Read the text of a configuration file.

    Args:
        text: YAML; nothing at all gives the defaults.
        source: file name, for messages.

    Raises:
        ConfigurationError: a field is unknown or has a wrong value, or the text is no YAML; in one line, as
            commands end with it.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{source}:{mark.line + 1}" if mark else source
        detail = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigurationError(f"{place}: not valid YAML: {detail}; correct the syntax") from error
    return parse_configuration(document, source=source)
