"""A minimal client of the API server: one keep-alive connection, JSON in and out. For tooling only."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hack.localcluster.errors import ClusterError


class ApiError(ClusterError):
    """The API server answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        """Keep the HTTP *status* beside the message."""
        super().__init__(message)
        self.status = status


class Api:
    """One connection to one server; not for use by several threads at once."""

    def __init__(
        self, server: str, *, token: str = "", ca_file: Path | None = None, timeout: float = 30.0, retries: int = 8
    ) -> None:
        """Prepare a client; nothing is sent yet.

        Args:
            server: URL, http or https.
            token: bearer token, none when empty.
            ca_file: authority of the server's certificate; without it an https server is not verified.
            timeout: seconds that a request may take.
            retries: how often a request is sent again after "too many requests".
        """
        self._server, self._token, self._ca_file = server, token, ca_file
        parts = urllib.parse.urlsplit(server)
        self._address = (parts.hostname or "", parts.port or 443)
        self._context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
            if ca_file is None:
                self._context.check_hostname = False
                self._context.verify_mode = ssl.CERT_NONE
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._retries = retries
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = self._address
            if self._context is None:
                self._connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
            else:
                self._connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._context)
        return self._connection

    def raw(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json"
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request; return status, headers (lower-case names) and body.

        Raises:
            OSError: the server cannot be reached or broke the connection.
        """
        payload = None if body is None else json.dumps(body).encode()
        try:
            connection = self._connect()
            connection.request(method, path, payload, {**self._headers, "Content-Type": content_type})
            answer = connection.getresponse()
            return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
        except http.client.HTTPException as error:
            self.close()
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        except OSError:
            self.close()
            raise

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Any:
        """Send one request and return the decoded answer; waits and repeats on 429 as the server asks.

        Raises:
            ApiError: the status is 400 or higher.
            OSError: the server cannot be reached or broke the connection.
        """
        for attempt in range(self._retries + 1):
            status, headers, content = self.raw(method, path, body, content_type=content_type)
            if status != http.HTTPStatus.TOO_MANY_REQUESTS or attempt == self._retries:
                break
            time.sleep(float(headers.get("retry-after", 1)))
        if status >= http.HTTPStatus.BAD_REQUEST:
            message = content.decode(errors="replace")
            with contextlib.suppress(ValueError, AttributeError):
                message = json.loads(content).get("message", message)
            raise ApiError(status, f"{method} {path}: {status} {message}")
        return json.loads(content) if content else None

    def lines(self, path: str) -> Iterator[bytes]:
        """Yield what a GET is answered with, line by line as it comes, however long that takes: a watch.

        It has a connection of its own, which ends with the answer, or once nobody takes lines any more.

        Raises:
            ApiError: the status is 400 or higher.
            OSError: the server cannot be reached, does not begin to answer in time, or broke the connection.
        """
        client = Api(self._server, token=self._token, ca_file=self._ca_file, timeout=self._timeout)
        try:
            connection = client._connect()
            connection.connect()
            channel = connection.sock
            connection.request("GET", path, headers=client._headers)
            answer = connection.getresponse()
            if answer.status >= http.HTTPStatus.BAD_REQUEST:
                raise ApiError(answer.status, f"GET {path}: {answer.status} {answer.read().decode(errors='replace')}")
            channel.settimeout(None)
            yield from answer
        except http.client.HTTPException as error:
            raise ConnectionError(f"GET {path}: {error!r}") from error
        finally:
            client.close()

    def healthy(self, path: str) -> bool:
        """Whether a GET of *path* succeeds right now."""
        try:
            return self.raw("GET", path)[0] == http.HTTPStatus.OK
        except OSError:
            return False
