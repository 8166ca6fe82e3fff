"""What all parts of the placement configuration have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ConfigurationModel(BaseModel):
    """A part of the configuration: camelCase in the file, no unknown fields, no infinite numbers."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, allow_inf_nan=False
    )
