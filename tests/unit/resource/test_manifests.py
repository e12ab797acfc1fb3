import json

import pytest
import yaml

from maserve.base.errors import Invalid
from maserve.resource import from_yaml, to_yaml
from maserve.wire import v2

HEAD = "apiVersion: michelangelo.api/v2\nkind: Model\n"


def refused(text: str) -> list[str]:
    with pytest.raises(Invalid) as caught:
        from_yaml(text, source="m.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_several_documents_are_read_in_order() -> None:
    text = f"# first\n---\n{HEAD}metadata: {{name: a}}\n---\n\n---\n{HEAD}metadata: {{name: b}}\n"
    found = from_yaml(text, source="m.yaml")
    assert [(each.resource.metadata.name, each.source, each.line) for each in found] == [
        ("a", "m.yaml", 3),
        ("b", "m.yaml", 9),
    ]


@pytest.mark.parametrize("text", ["", "---\n", "# only a comment\n", "---\n---\n"])
def test_nothing_is_read_from_nothing(text: str) -> None:
    assert from_yaml(text) == ()


def test_only_the_scalars_of_json_are_no_text() -> None:
    labels = "{a: yes, b: off, c: 2026-01-31, d: 1:30, e: 0x1f, f: 1_000, g: .inf, h: 'true'}"
    (found,) = from_yaml(f"{HEAD}metadata: {{name: on, labels: {labels}}}")
    assert found.resource.metadata.name == "on"
    assert dict(found.resource.metadata.labels) == {
        "a": "yes",
        "b": "off",
        "c": "2026-01-31",
        "d": "1:30",
        "e": "0x1f",
        "f": "1_000",
        "g": ".inf",
        "h": "true",
    }


def test_tags_of_json_types_are_followed() -> None:
    text = f"{HEAD}metadata: !!map {{name: !!str 5, labels: {{!!str a: !!str true}}}}\n"
    text += "spec: {deployableArtifactUri: !!seq [! x], revisionId: !!int 3}"
    (found,) = from_yaml(text)
    model = found.resource
    assert isinstance(model, v2.Model)
    assert (model.metadata.name, dict(model.metadata.labels)) == ("5", {"a": "true"})
    assert (list(model.spec.deployable_artifact_uri), model.spec.revision_id) == (["x"], 3)


def test_characters_may_be_escaped_as_json_does() -> None:
    text = json.dumps({**yaml.safe_load(HEAD), "spec": {"source": "\U0001f600"}})
    assert "\\ud83d\\ude00" in text
    (found,) = from_yaml(text)
    assert isinstance(found.resource, v2.Model)
    assert found.resource.spec.source == "\U0001f600"


def test_anchors_and_merges_are_followed() -> None:
    labels = "  labels: &l {x: y, z: w}\n  annotations: {<<: *l, z: v}\n"
    text = f"{HEAD}metadata:\n  name: a\n{labels}"
    (found,) = from_yaml(text)
    assert dict(found.resource.metadata.annotations) == {"x": "y", "z": "v"}


def test_problems_are_told_with_their_lines() -> None:
    text = f"{HEAD}metadata:\n  name: 5\nspec:\n  revisionId: abc\n  qualityScores:\n  - nme: x\n"
    assert refused(text) == [
        "metadata.name must be a string (put it in quotes), not 5 (m.yaml:4)",
        "spec.revisionId must be a number, not 'abc' (m.yaml:6)",
        "spec.qualityScores[0].nme is no field of ModelQualityScore; did you mean name? (m.yaml:8)",
    ]


def test_problems_of_all_documents_are_told() -> None:
    text = f"{HEAD}specs: 1\n---\n{HEAD}spec: 1\n---\nkind: Pod\n"
    lines = [problem.rpartition("(")[2] for problem in refused(text)]
    assert lines == ["m.yaml:3)", "m.yaml:7)", "m.yaml:9)", "m.yaml:9)"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "m.yaml:1:5 cannot be read"),
        ("a: b: c", "m.yaml:1:5 cannot be read"),
        ("\tx: 1", "m.yaml:1:1 cannot be read"),
        ("a: 1\nb: 2\na: 3\n", "m.yaml:3 has the key 'a' a second time"),
        (f"{HEAD}spec: {{x: {{a: 1, a: 2}}}}", "m.yaml:3 has the key 'a' a second time"),
        ("a: *none", "m.yaml:1:4 cannot be read"),
        ("a: &a [*a]", "unfolds without bound"),
        ("a: !!python/object:os.system {}", "m.yaml:1"),
        ("a: !!binary x", "has a tag that is not known here"),
        ('a: "\\ud800"', "m.yaml:1 has half a character"),
        ('"\\udc00": 1', "m.yaml:1 has half a character"),
        ("a: !x {}", "has a tag that is not known here: !x"),
        ("a: [!x []]", "has a tag that is not known here: !x"),
        ("a: !!set {b}", "has a tag that is not known here"),
        ("a: !!omap [b: 1]", "has a tag that is not known here"),
        ("!x a: 1", "has a tag that is not known here: !x"),
        ("<<: !x {}", "has a tag that is not known here: !x"),
        ("<<: !x [{}]", "has a tag that is not known here: !x"),
        ("a: !!map []", "has a tag that is not known here"),
        ("a: !!int b", "has a tag that is not known here"),
        ("a: !!bool b", "has a tag that is not known here"),
        ("a: " + "1" * 5000, "m.yaml:1 has a number that cannot be read"),
        ("? [a]\n: b", "has a key that is no text"),
        ("<<: 1", "merges what is no object"),
        ("- a", "a manifest must be an object"),
        ("text", "a manifest must be an object"),
        ("a: \x00", "cannot be read"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_bad_yaml_is_told(text: str, said: str) -> None:
    assert said in refused(text)[0]


@pytest.mark.slow  # reads a million values before it says so
def test_aliases_cannot_unfold_without_bound() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "unfolds without bound" in refused("\n".join(lines))[0]


def test_unknown_fields_are_named_in_a_comment() -> None:
    model = v2.Model.FromString(b"\xf8\x3f\x01")
    model.metadata.name = "m"
    assert to_yaml([model]).startswith("# not shown, of a newer version: #1023\napiVersion:")


WRITTEN = """\
apiVersion: michelangelo.api/v2
kind: Model
metadata:
  name: m
spec:
  deployableArtifactUri:
    - file:///models/é
"""


def test_written_manifests_read_well() -> None:
    model = v2.Model()
    model.metadata.name = "m"
    model.spec.deployable_artifact_uri.append("file:///models/é")
    assert to_yaml([model, model]) == f"{WRITTEN}---\n{WRITTEN}"
