"""What every kind's model is made of: the base model, object metadata and timestamps."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from berth.api.errors import InvalidObjectError

AS_SENT: Final = {"as sent": True}
"""Context of validation: what is read is an object as the API server takes it, not values of a program."""

LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
"""What an odd time counts as."""
_LIKE_RFC_3339: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt].+", re.ASCII)


def _parse_timestamp(value: Any) -> Any:
    """Read RFC 3339 text or a datetime; a datetime without a zone is refused rather than guessed."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:  # overflow: the first or last hours that there are
        raise ValueError(
            f"{value!r} is not a valid timestamp; write RFC 3339 text such as 2026-01-31T12:00:00Z"
        ) from error
    raise ValueError(f"{value!r} has no time zone; write RFC 3339 text such as 2026-01-31T12:00:00Z")


def read_timestamp(text: str) -> datetime | None:
    """Return the moment in UTC that RFC 3339 text states; None if it states none.

    The API server takes more for a time than Python does, such as the years 0 and 10000, even in managedFields.
    """
    try:
        moment: datetime = _parse_timestamp(text)
    except ValueError:
        return None
    return moment


def odd_time(value: Any) -> bool:
    """Return whether text is a time for the API server and none for Python: it says that something was, not when."""
    return isinstance(value, str) and _LIKE_RFC_3339.fullmatch(value) is not None and read_timestamp(value) is None


def format_timestamp(moment: datetime) -> str:
    """Return ``moment`` as metav1.Time writes it: UTC, whole seconds, ``Z``."""
    # strftime leaves out the leading zeros of early years.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


Timestamp = Annotated[
    datetime,
    BeforeValidator(_parse_timestamp),
    PlainSerializer(format_timestamp, return_type=str, when_used="json"),
]
"""metav1.Time: RFC 3339 on the wire, an aware datetime in UTC in Python, whole seconds when written."""

TimestampOrLongAgo = Annotated[Timestamp, BeforeValidator(lambda value: LONG_AGO if odd_time(value) else value)]
"""The same where an odd time, which anybody may write who may edit the object, is not to spoil the rest of it."""
TimestampOrNone = Annotated[Timestamp | None, BeforeValidator(lambda value: None if odd_time(value) else value)]
"""The same of a time that need not be stated."""

Int32 = Annotated[int, Field(json_schema_extra={"format": "int32"})]
"""A 32-bit integer of the API."""
Int64 = Annotated[int, Field(json_schema_extra={"format": "int64"})]
"""A 64-bit integer of the API."""


class ApiModel(BaseModel):
    """Base of every API type: camelCase on the wire, frozen, unknown fields of newer versions ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    def to_api(self) -> dict[str, Any]:
        """Return the object as the API server reads it: camelCase keys, JSON values, no nulls."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class ObjectMeta(ApiModel):
    """metav1.ObjectMeta, cut down to what Berth reads."""

    name: str = Field(default="", description="Name of the object.")
    namespace: str = Field(default="", description="Namespace of the object.")
    uid: str = Field(default="", description="Identity of the object, never reused.")
    resource_version: str = Field(default="", description="Version of the object, for conditional writes.")
    generation: int = Field(default=0, description="Counter of changes of the spec.")
    creation_timestamp: Timestamp | None = Field(default=None, description="When the object was created.")
    deletion_timestamp: Timestamp | None = Field(default=None, description="When the object was marked for deletion.")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Annotations.")


class ApiObject(ApiModel):
    """A whole object: type, metadata; subclasses add spec and status."""

    api_version: str = Field(description="Group and version of the object.")
    kind: str = Field(description="Kind of the object.")
    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description="Standard object metadata.")

    @property
    def key(self) -> str:
        """``namespace/name``, as logs and messages name the object."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @classmethod
    def parse(cls, obj: Any, *, whole: bool = False) -> Self:
        """Return the model of the raw API object ``obj``; a status that cannot be read counts as empty, unless `whole`.

        Statuses are for controllers to compute: what another one left there must not make the spec unusable.

        Raises:
            berth.api.errors.InvalidObjectError: the object does not fit; the message names object, field and remedy.
        """
        try:
            return cls.model_validate(obj, context=AS_SENT)
        except ValidationError as error:
            if isinstance(obj, Mapping) and "status" in obj and not whole:
                return cls.parse({name: value for name, value in obj.items() if name != "status"})
            raise InvalidObjectError(obj, error) from error
