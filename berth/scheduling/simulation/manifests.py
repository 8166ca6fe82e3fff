"""Manifests as text: YAML and JSON documents with the file and line that each field comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from berth.api.errors import field_path, object_name
from berth.kube.decoding import without_nulls
from berth.kube.yaml_depth import check_depth

Path = tuple[str | int, ...]
"""Keys and list indices that lead to a field."""

PROGRESS_EVERY = 200
"""Documents between two reports of progress."""

MAX_ALIASED = 1_000_000
"""Values in a document with aliases, once these are written out: aliases of aliases of aliases come to any number."""

MAX_LINED = 16_000_000
"""Characters of a source in which fields are looked for: its parse tree takes some thirty times as much memory."""

_SPACE = re.compile(r"\s*")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair: JSON may have one without the other, and no text can."""

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.CSafeLoader):
    """Kubernetes reads manifests as JSON: what looks like a date is text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or what else manifests come from."""

    name: str
    """file name as the user gave it, ``-`` for standard input"""
    text: str
    """contents"""


@dataclass(frozen=True, slots=True)
class InputProblem:
    """One thing that is wrong with the input."""

    source: str
    """file, or ``cluster``"""
    line: int
    """line of the field, 0 when not known"""
    what: str
    """object, field, problem and remedy in one sentence"""

    def __str__(self) -> str:
        """``file:line: Kind namespace/name: field: problem; remedy``."""
        return f"{self.source}:{self.line}: {self.what}" if self.line else f"{self.source}: {self.what}"


class _Text:
    """The parse tree of a source, made when the first line number is asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._trees: list[tuple[int, yaml.Node | None]] | None = None

    def line(self, document: int, path: Path) -> int:
        if len(self._source.text) > MAX_LINED:
            return 0
        if self._trees is None:
            try:
                self._trees = list(_trees(self._source.text))
            except yaml.YAMLError:
                self._trees = []  # JSON that is no YAML, as with control characters
        if document >= len(self._trees):
            return 0
        before, node = self._trees[document]
        line = (node.start_mark.line if node is not None else 0) + 1 + before
        for part in path:
            found = _child(node, part)
            if found is None:
                return line
            key, node = found
            line = key.start_mark.line + 1 + before
        return line


def _trees(text: str) -> Iterator[tuple[int, yaml.Node | None]]:
    """(lines before it, parse tree) of each document; no tree of JSON that is no YAML, as with halves of characters."""
    several = _json_documents(text)
    if not several:
        yield from ((0, node) for node in yaml.compose_all(text, Loader=_Loader))
    line = known = 0
    for begin, end, _ in several:
        line, known = line + text.count("\n", known, begin), begin
        tree = None
        with suppress(yaml.YAMLError):
            tree = yaml.compose(text[begin:end], Loader=_Loader)
        yield line, tree


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """(node whose mark says where the child begins, the child)."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a source."""

    source: str
    """file name"""
    number: int
    """YAML document in the file, from 0"""
    data: dict[str, Any]
    """the object, nulls left out"""
    at: Path = ()
    """where the object is inside its YAML document, for items of a List"""
    _text: _Text | None = field(default=None, repr=False, compare=False)

    @property
    def group(self) -> str:
        """API group, empty for the core group."""
        return str(self.data["apiVersion"]).rpartition("/")[0]

    @property
    def kind(self) -> str:
        """Kind."""
        return str(self.data["kind"])

    @property
    def name(self) -> str:
        """``Kind namespace/name`` for people."""
        return object_name(self.data)

    def line(self, path: Path = ()) -> int:
        """Line of a field, or of its nearest parent that the text has; from 1, 0 when not known."""
        return self._text.line(self.number, (*self.at, *path)) if self._text is not None else 0

    def problem(self, path: Path, what: str) -> InputProblem:
        """A problem with one field of this object."""
        return InputProblem(self.source, self.line(path), f"{self.name}: {field_path(path)}: {what}")


_PART = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def path_of(text: str) -> Path:
    """The inverse of :func:`berth.api.errors.field_path`."""
    return tuple(match[1] if match[1] is not None else int(match[2]) for match in _PART.finditer(text))


def read_documents(
    sources: Sequence[Source], *, progress: Callable[[int], None] | None = None
) -> tuple[list[Document], list[InputProblem]]:
    """Read every object of every source, items of Lists one by one; broken sources become problems.

    Args:
        sources: files in the order of the command line.
        progress: told now and then how many objects have been read.
    """
    documents: list[Document] = []
    problems: list[InputProblem] = []
    for source in sources:
        text = _Text(source)
        try:
            for number, data in enumerate(_parse(source.text)):
                _collect(Document(source.name, number, data, _text=text), documents, problems)
                if progress is not None and number % PROGRESS_EVERY == 0:
                    progress(len(documents))
        except yaml.YAMLError as error:
            problems.append(_syntax(source.name, error))
        except ValueError as error:  # such as a number of more digits than Python reads
            problems.append(InputProblem(source.name, 0, f"cannot be read: {error}; correct the value"))
        except RecursionError:
            what = "nested too deeply, or an alias stands inside its own anchor; write objects of Kubernetes"
            problems.append(InputProblem(source.name, 0, what))
    return documents, problems


def _parse(text: str) -> Iterator[Any]:
    aliases = "*" in text
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield msgspec.json.decode(text)
        except msgspec.DecodeError:
            pass  # YAML in flow style, or several documents
        else:
            return
    if several := _json_documents(text):
        yield from (data for *_, data in several)
        return
    check_depth(text)
    for data in yaml.load_all(text, Loader=_Loader):
        if aliases and _values(data, {}) > MAX_ALIASED:
            raise yaml.YAMLError(f"aliases that come to more than {MAX_ALIASED} values")
        yield data


def _json_documents(text: str) -> list[tuple[int, int, Any]]:
    """(beginning, end, value) of JSON documents one after another, as `jq` prints them; none if it is anything else.

    Raises:
        ValueError: a text in it is none.
    """
    found: list[tuple[int, int, Any]] = []
    position, decoder = _after_space(text, 0), json.JSONDecoder()
    while text[position : position + 1] in ("{", "["):
        begin = position
        try:
            value, end = decoder.raw_decode(text, begin)
        except ValueError:
            return []
        if _HALF.search(text, begin, end):
            json.dumps(value, ensure_ascii=False).encode()
        found.append((begin, end, value))
        position = _after_space(text, end)
    return found if position == len(text) else []


def _after_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _values(value: Any, known: dict[int, int]) -> int:
    """Number of values that a value comes to with aliases written out; `known` has those of its parts by identity."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(value)]


def _syntax(source: str, error: yaml.YAMLError) -> InputProblem:
    mark = getattr(error, "problem_mark", None)
    detail = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    where = f" {context}" if context else ""
    return InputProblem(
        source, mark.line + 1 if mark else 0, f"not valid YAML or JSON:{where} {detail}; correct the syntax"
    )


def _collect(document: Document, documents: list[Document], problems: list[InputProblem]) -> None:
    """Check what makes a document an object, and take Lists apart."""
    data = document.data
    if data is None:
        return
    if not isinstance(data, dict):
        what = f"document {document.number + 1} is no object but {_shape(data)}; write a map with apiVersion and kind"
        problems.append(InputProblem(document.source, document.line(), what))
        return
    for name in ("apiVersion", "kind"):
        if not isinstance(data.get(name), str) or not data[name]:
            problems.append(document.problem((name,), f"{'missing' if name not in data else 'no text'}; {_REMEDY}"))
            return
    if not document.kind.endswith("List") or not isinstance(data.get("items", []), list):
        stripped = without_nulls(data)
        documents.append(
            Document(document.source, document.number, stripped, document.at, document._text)
            if stripped is not data
            else document
        )
        return
    kind = document.kind.removesuffix("List")
    items = data.get("items") or []
    for number, item in enumerate(items):
        items[number] = None  # a large List need not be in memory twice
        # Typed lists, as the API server sends them, state the kind only once.
        typed = isinstance(item, dict) and kind
        found = {"apiVersion": data["apiVersion"], "kind": kind, **item} if typed else item
        at = (*document.at, "items", number)
        _collect(Document(document.source, document.number, found, at, document._text), documents, problems)


_REMEDY = "every object states both, such as apiVersion: apps/v1 and kind: Deployment"


def _shape(value: Any) -> str:
    return "a list" if isinstance(value, list) else f"the value {str(value)[:40]!r}"
