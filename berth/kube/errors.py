"""What the API server's refusals mean, as exceptions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from berth.kube.decoding import at_any_depth

MAX_RETRY_AFTER = 60.0
"""Longest wait in seconds that a Retry-After header can impose; a broken proxy must not stop a controller for hours."""


class _Details(msgspec.Struct, rename="camel"):
    """metav1.StatusDetails."""

    kind: str = ""
    name: str = ""
    retry_after_seconds: int = 0
    causes: Any = None


class _Status(msgspec.Struct, rename="camel"):
    """metav1.Status, the body of a refusal."""

    message: str = ""
    reason: str = ""
    kind: str = ""
    code: int = 0
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_Status)


class ApiError(Exception):
    """The API server answered with an error status."""

    def __init__(
        self,
        *,
        status: int,
        reason: str,
        message: str,
        retry_after: float | None = None,
        stated: bool = True,
        about: tuple[str, str] = ("", ""),
        causes: Iterable[str] = (),
    ) -> None:
        """Keep the parts; the text shows status, reason and the server's message."""
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        """HTTP status code."""
        self.reason = reason
        """metav1.Status reason such as Conflict or NotFound."""
        self.message = message
        """The server's sentence for people."""
        self.retry_after = retry_after
        """Seconds the server asks to wait, None if it does not say."""
        self.stated = stated
        """True for a metav1.Status; False for a page, of something on the way or for a kind that is not served."""
        self.about = about
        """Plural of the kind and name of the object that the server names, empty if it names none."""
        self.causes = tuple(causes)
        """The server's sentences about causes, such as which PodDisruptionBudget it is: its message leaves that out."""

    @property
    def retryable(self) -> bool:
        """True when the same request may well succeed later: throttling, timeouts, server trouble."""
        return self.status in (408, 429) or (self.status >= 500 and self.status != 501)

    @property
    def unauthorized(self) -> bool:
        """True when the credentials are not (or no longer) accepted; the request had no effect."""
        return self.status == 401

    @property
    def not_found(self) -> bool:
        """True when the object or the kind does not exist."""
        return self.status == 404

    def says_gone(self, plural: str, name: str) -> bool:
        """True when the API server itself says of this object, by its kind's plural and its name, that it is not there.

        Any other 404 tells nothing about the object: it comes from something on the way, or for a kind not served now.
        """
        return self.not_found and self.stated and self.reason == "NotFound" and self.about == (plural, name)

    @property
    def conflict(self) -> bool:
        """True when somebody else changed, created or bound the object first."""
        return self.status == 409

    @property
    def invalid(self) -> bool:
        """True when the object would break the rules of its kind."""
        return self.status == 422

    @property
    def expired(self) -> bool:
        """True when a watch or a list must start over (410 Gone)."""
        return self.status == 410


def error_from_response(status: int, body: bytes, retry_after: str | None) -> ApiError:
    """Make the exception for an HTTP response.

    Args:
        status: HTTP status code.
        body: what came with it; a body that is no metav1.Status (a proxy's page) is shown as it is, cut at 500 bytes.
        retry_after: the Retry-After header. Only its form in seconds is used, as the API server sends it.
    """
    try:
        parsed = at_any_depth(_STATUS.decode, body)
        reason, message, stated = parsed.reason, parsed.message, parsed.kind == "Status"
        details = parsed.details or _Details()
    except ValueError:  # msgspec.DecodeError and UnicodeDecodeError are both among them
        reason, message, stated = "", body[:500].decode(errors="replace").strip(), False
        details = _Details()
    return ApiError(
        status=status,
        reason=reason or f"HTTP{status}",
        message=message or "the server sent no explanation",
        retry_after=retry_after_seconds(retry_after),
        stated=stated,
        about=(details.kind, details.name),
        causes=_messages(details.causes),
    )


def _messages(causes: Any) -> list[str]:
    """What metav1.StatusCauses say; a refusal with odd ones is one all the same."""
    said = [cause.get("message") for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
    return [text for text in said if isinstance(text, str) and text]


def error_from_event(body: bytes | msgspec.Raw) -> ApiError:
    """Make the exception for the object of a watch event ERROR, which ends the watch.

    Its status is the one that the server gives; 410 if it gives none, because then nothing is known but the end.

    Raises:
        msgspec.DecodeError: the object is no metav1.Status.
    """
    parsed = at_any_depth(_STATUS.decode, body)
    wait = parsed.details.retry_after_seconds if parsed.details is not None else 0
    return ApiError(
        status=parsed.code or 410,
        reason=parsed.reason or "Error",
        message=parsed.message,
        retry_after=retry_after_seconds(str(wait)) or None,
    )


def unreadable(status: int, body: bytes, problem: str) -> ApiError:
    """The exception for an answer with a good status that is not the API server's, such as a proxy's page.

    It has the status that a gateway gives for such a thing, so that whatever may be repeated is repeated.
    """
    text = body[:200].decode(errors="replace").strip()
    return ApiError(
        status=502,
        reason="UnreadableAnswer",
        message=f"status {status} with {problem}: {text!r}; look at the proxy or load balancer on the way",
        stated=False,
    )


@contextmanager
def readable(body: bytes) -> Iterator[None]:
    """Turn failures to read an answer into :func:`unreadable`.

    Raises:
        ApiError: the block raised ValueError, LookupError, TypeError or RecursionError.
    """
    try:
        yield
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise unreadable(200, body, str(error) or repr(error)) from error


def retry_after_seconds(retry_after: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, :data:`MAX_RETRY_AFTER` at the most; None for a date, or nothing."""
    try:
        seconds = float(retry_after) if retry_after else math.nan
    except ValueError:  # the form with a date
        return None
    return min(seconds, MAX_RETRY_AFTER) if seconds >= 0 else None
