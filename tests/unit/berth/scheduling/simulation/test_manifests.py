"""Reading manifests: what is an object, where each field stands, and what is said about text that is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.errors import field_path
from berth.kube.decoding import without_nulls
from berth.scheduling.simulation.manifests import (
    MAX_LINED,
    Document,
    Source,
    path_of,
    read_documents,
)

TWO = """\
# a comment
apiVersion: v1
kind: Node
metadata:
  name: one
  labels:
    a.b/c: x
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    metadata: {name: two}
    spec:
      containers:
        - name: main
          image: x
  - apiVersion: v1
    kind: Pod
    metadata:
      name: three
"""


def documents(text: str) -> list[Document]:
    found, problems = read_documents([Source("m.yaml", text)])
    assert problems == []
    return found


def problem(text: str) -> str:
    found, problems = read_documents([Source("m.yaml", text)])
    assert found == []
    [only] = problems
    return str(only)


def test_documents_and_list_items_come_one_by_one() -> None:
    assert [item.name for item in documents(TWO)] == ["Node one", "Pod two", "Pod three"]


@pytest.mark.parametrize(
    ("index", "path", "line"),
    [
        pytest.param(0, (), 2, id="the object itself, below a comment"),
        pytest.param(0, ("metadata", "name"), 5, id="a field"),
        pytest.param(0, ("metadata", "labels", "a.b/c"), 7, id="a key with dots"),
        pytest.param(0, ("metadata", "annotations", "x"), 4, id="a missing field: its nearest parent"),
        pytest.param(1, (), 12, id="an item of a List"),
        pytest.param(1, ("spec", "containers", 0, "image"), 18, id="a field inside an item"),
        pytest.param(1, ("spec", "containers", 7), 16, id="an index that is not there"),
        pytest.param(2, ("metadata", "name"), 22, id="a field of the last item"),
    ],
)
def test_a_field_knows_its_line(index: int, path: tuple[str | int, ...], line: int) -> None:
    assert documents(TWO)[index].line(path) == line


def test_json_is_read_and_knows_its_lines() -> None:
    body = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}
    first, second = documents(json.dumps(body, indent=1))
    assert (first.name, second.name) == ("Node a", "Node b")
    assert second.line(("metadata", "name")) == json.dumps(body, indent=1).splitlines().index('    "name": "b"') + 1


@pytest.mark.parametrize("indent", [None, 2], ids=["a line each", "indented"])
@pytest.mark.parametrize("between", ["\n", "", "\n\n"], ids=["lines", "nothing between", "empty lines"])
def test_json_documents_one_after_another_are_read_as_kubectl_does(indent: int | None, between: str) -> None:
    items = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in ("one", "two", "three")]
    texts = [json.dumps(item, indent=indent) for item in items]
    found = documents("\n" + between.join(texts) + "\n")
    assert [document.data for document in found] == items
    before = "\n" + between.join([*texts[:2], ""])
    within = texts[2].split('"name"')[0]
    assert found[2].line(("metadata", "name")) == (before + within).count("\n") + 1


@pytest.mark.parametrize("rest", ["{", '{"kind":', "] and words", "{}}"])
def test_what_follows_json_documents_and_is_none_is_said_with_its_line(rest: str) -> None:
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}\n' + rest
    _, problems = read_documents([Source("m.yaml", text)])
    assert "m.yaml:2: not valid YAML or JSON" in "".join(map(str, problems))


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param('"\\ud83d\\ude00"', id="a character escaped in two halves"),
        pytest.param('"\x7f"', id="a character that YAML forbids"),
        pytest.param('{"' + "k" * 2000 + '": 1}', id="a long key"),
    ],
)
def test_json_that_is_no_yaml_is_read_and_has_the_line_where_it_begins(odd: str) -> None:
    body = '{"apiVersion": "v1",\n "kind": "Pod", "metadata": {\n "name": "a"}, "spec": {}, "odd": '
    first, second = documents(f"{body}1}}\n{body}{odd}}}")
    assert (first.line(("metadata", "name")), second.line(("metadata", "name"))) == (3, 4)


def test_flow_style_yaml_is_no_broken_json() -> None:
    assert [item.kind for item in documents("{apiVersion: v1, kind: Pod, metadata: {name: a}}")] == ["Pod"]


def test_dates_stay_text() -> None:
    [found] = documents("apiVersion: v1\nkind: Pod\nmetadata: {name: a, creationTimestamp: 2026-01-02T03:04:05Z}\n")
    assert found.data["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"


def test_nulls_are_absent() -> None:
    [found] = documents("apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: null}\nstatus: null\n")
    assert found.data == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


@pytest.mark.parametrize("content", ["", "---\n---\n", "# only a comment\n"], ids=["empty", "separators", "comment"])
def test_nothing_is_no_problem(content: str) -> None:
    assert documents(content) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("a: [1\nb: 2\n", "m.yaml:2: not valid YAML or JSON: while parsing a flow sequence", id="syntax"),
        pytest.param("a: 1\n\tb: 2\n", "m.yaml:2: not valid YAML", id="tab"),
        pytest.param("- 1\n", "m.yaml:1: document 1 is no object but a list; write a map with", id="list"),
        pytest.param("word\n", "m.yaml:1: document 1 is no object but the value 'word'", id="scalar"),
        pytest.param("kind: Pod\n", "m.yaml:1: Pod ?: apiVersion: missing; every object states both", id="no version"),
        pytest.param("apiVersion: v1\nkind: 7\n", "m.yaml:2: 7 ?: kind: no text; every object", id="kind is a number"),
    ],
)
def test_what_is_no_object_is_said_with_its_line(content: str, said: str) -> None:
    assert problem(content).startswith(said)


HEAD = '{"apiVersion": "v1", "kind": "Pod", "spec": '
BOMB = "a0: &a0 x\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 10}]\n" for n in range(1, 9))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(f"{HEAD}{'[' * 9000}{']' * 9000}}}", "nested too deeply", id="nested lists, JSON"),
        pytest.param(f"# YAML\n{HEAD}{'[' * 9000}{']' * 9000}}}", "nested too deeply", id="nested lists"),
        pytest.param(f"# YAML\n{HEAD}{'[' * 90_000}", "nested too deeply", id="nested lists without end"),
        pytest.param("kind: &a [*a]\n", "nested too deeply", id="an alias inside its own anchor"),
        pytest.param(
            BOMB, "not valid YAML or JSON: aliases that come to more than 1000000 values", id="aliases of aliases"
        ),
        pytest.param(f'{HEAD}{{"priority": {"9" * 5000}}}}}', "cannot be read: Exceeds the limit", id="a long number"),
        pytest.param(f"kind: {'9' * 5000}\n", "cannot be read: Exceeds the limit", id="a long number, YAML"),
        pytest.param(
            HEAD + r'{"nodeName": "a\ud800"}}', "cannot be read: 'utf-8' codec", id="half of a surrogate pair"
        ),
    ],
)
def test_what_would_never_be_read_is_refused(content: str, said: str) -> None:
    assert problem(content).startswith(f"m.yaml: {said}")


def test_whole_surrogate_pairs_are_text() -> None:
    [document] = documents(HEAD + r'{"nodeName": "\ud83d\ude00"}}')
    assert document.data["spec"]["nodeName"] == "\N{GRINNING FACE}"


@pytest.mark.parametrize("text", [r"\ud83d\ude00", "\x7f"], ids=["an escaped emoji", "a control character"])
def test_json_that_is_no_yaml_has_lines_all_the_same(text: str) -> None:
    [document] = documents(f'\n{HEAD}{{"nodeName": "{text}"}}}}')
    assert str(document.problem(("spec",), "odd")) == "m.yaml:2: Pod ?: spec: odd"


def test_aliases_are_written_out() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {labels: &l {app: web}}\nspec: {nodeSelector: *l}\n"
    [document] = documents(text)
    assert document.data["spec"]["nodeSelector"] == document.data["metadata"]["labels"] == {"app": "web"}


def test_a_broken_file_does_not_hide_the_others() -> None:
    good = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
    found, problems = read_documents([Source("bad.yaml", "a: [\n"), Source("good.yaml", good)])
    assert [item.source for item in found] == ["good.yaml"]
    assert [item.source for item in problems] == ["bad.yaml"]


KEYS = st.text(st.characters(categories=["Ll", "Lu", "Nd"], max_codepoint=127), min_size=1, max_size=6)


@settings(deadline=None)
@given(st.lists(st.one_of(KEYS.filter(lambda key: not key.isdigit()), st.integers(0, 99)), min_size=1, max_size=6))
def test_paths_survive_being_written(path: list[str | int]) -> None:
    assert path_of(field_path(tuple(path))) == tuple(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_yaml_and_json_give_the_same_object(body: dict[str, Any]) -> None:
    body = {**body, "apiVersion": "v1", "kind": "Thing"}
    from_yaml, _ = read_documents([Source("a", yaml.safe_dump(body))])
    from_json, _ = read_documents([Source("b", json.dumps(body))])
    assert [item.data for item in from_yaml] == [item.data for item in from_json] == [without_nulls(body)]


class Searched(str):
    """Text that counts how often it is searched from its beginning."""

    searches = 0

    def __contains__(self, part: Any) -> bool:
        self.searches += 1
        return super().__contains__(part)


def test_text_is_not_searched_anew_for_each_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred megabytes of manifests would be, a hundred thousand times."""
    load_all = yaml.load_all  # takes no text of another class
    monkeypatch.setattr(yaml, "load_all", lambda text, Loader: load_all(str(text), Loader=Loader))  # noqa: N803
    one = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
    text = Searched("---\n".join([one] * 9))
    documents, problems = read_documents([Source("nodes.yaml", text)])
    assert (len(documents), problems) == (9, [])
    assert text.searches <= 1


@pytest.mark.parametrize(("size", "line"), [(MAX_LINED, 4), (MAX_LINED + 1, 0)], ids=["as large as that", "larger"])
def test_lines_are_told_of_sources_that_a_parse_tree_has_room_for(size: int, line: int) -> None:
    """A tree takes some thirty times as much as its text."""
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: 1\n# "
    (document,), _ = read_documents([Source("nodes.yaml", text.ljust(size, "."))])
    assert document.line(("spec",)) == line
    at = "nodes.yaml:4: " if line else "nodes.yaml: "
    assert str(document.problem(("spec",), "no map")) == f"{at}Node n: spec: no map"
