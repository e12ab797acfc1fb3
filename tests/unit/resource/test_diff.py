from maserve.resource import clone, list_changed_parts, list_differences
from maserve.wire import v2


def a_model() -> v2.Model:
    model = v2.Model()
    model.metadata.name, model.metadata.resourceVersion = "m", "1"
    model.metadata.labels["a"] = "1"
    model.spec.revision_id = 3
    model.spec.deployable_artifact_uri.extend(["x", "y"])
    return model


def test_equal_resources_do_not_differ() -> None:
    assert list_changed_parts(a_model(), a_model()) == ()
    assert list_differences(a_model(), a_model()) == ()


def test_the_stores_bookkeeping_is_no_difference() -> None:
    later = a_model()
    later.metadata.resourceVersion, later.metadata.generation = "9", 4
    assert list_changed_parts(a_model(), later) == ()
    assert list_differences(a_model(), later) == ()


def test_differences_are_told_by_path() -> None:
    later = clone(a_model())
    later.metadata.labels["b"] = "2"
    later.spec.ClearField("revision_id")
    later.spec.deployable_artifact_uri[1] = "z"
    later.spec.deployable_artifact_uri.append("w")
    assert [str(each) for each in list_differences(a_model(), later)] == [
        "metadata.labels.b: not set → 2",
        "spec.deployableArtifactUri[1]: y → z",
        "spec.deployableArtifactUri[2]: not set → w",
        "spec.revisionId: 3 → not set",
    ]
    assert list_changed_parts(a_model(), later) == ("metadata", "spec")


def test_long_values_are_shortened_for_people() -> None:
    later = clone(a_model())
    later.spec.description = "x" * 100
    (found,) = list_differences(a_model(), later)
    assert str(found) == f"spec.description: not set → {'x' * 57}…"
    assert found.after == "x" * 100
