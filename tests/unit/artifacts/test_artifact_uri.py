import pytest

from maserve.artifacts import ArtifactUri
from maserve.base.errors import Invalid


@pytest.mark.parametrize(
    ("text", "scheme", "place", "path", "shown"),
    [
        ("file:///models/m1/", "file", "", "/models/m1", "file:///models/m1"),
        ("file://localhost/models/m1", "file", "", "/models/m1", "file:///models/m1"),
        ("file:///models/a%20b", "file", "", "/models/a b", "file:///models/a b"),
        ("s3://bucket/a/b/", "s3", "bucket", "a/b", "s3://bucket/a/b"),
        ("gs://bucket/m.tar", "gs", "bucket", "m.tar", "gs://bucket/m.tar"),
        ("az://container/m", "az", "container", "m", "az://container/m"),
        ("http://h:81/x/m.zip", "http", "h:81", "x/m.zip", "http://h:81/x/m.zip"),
        ("https://[::1]:8/m.tgz", "https", "[::1]:8", "m.tgz", "https://[::1]:8/m.tgz"),
        ("https://h/m.tar.gz?sig=se%2F", "https", "h", "m.tar.gz", "https://h/m.tar.gz?…"),
    ],
)
def test_uri_is_read_and_shown(text: str, scheme: str, place: str, path: str, shown: str) -> None:
    uri = ArtifactUri.parse(text)
    assert (uri.scheme, uri.place, uri.path, str(uri)) == (scheme, place, path, shown)


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("", "is missing"),
        ("   ", "is missing"),
        ("/models/m1", "no known scheme"),
        ("ftp://host/m.tar", "no known scheme"),
        ("S3://bucket/m", "no known scheme"),
        ("s3:/bucket/m", "no known scheme"),
        ("s3://", "names no bucket"),
        ("s3://bucket", "names no object"),
        ("s3://bucket/", "names no object"),
        ("s3://b!cket/m", "bucket name that cannot be"),
        ("s3://bucket/a/../b", "relative path segment"),
        ("file:///a/../b", "relative path segment"),
        ("file:///a/%2e%2e/b", "relative path segment"),
        ("file://relative/path", "absolute path"),
        ("file:///", "names no object"),
        ("http:///m.tar", "names no host"),
        ("http://user:secret@host/m.tar", "user name or password"),
        ("http://host:notaport/m.tar", "is malformed"),
        ("s3://bucket/a\nb", "control character"),
    ],
)
def test_bad_uri_is_refused_naming_the_field(text: str, needle: str) -> None:
    with pytest.raises(Invalid, match=needle) as caught:
        ArtifactUri.parse(text, "spec.deployable_artifact_uri[0]")
    assert caught.value.problems[0].field == "spec.deployable_artifact_uri[0]"


@pytest.mark.parametrize("text", ["", "ftp://x/y", "nothing"])
def test_unknown_scheme_lists_the_known_ones(text: str) -> None:
    with pytest.raises(Invalid, match="file://, s3://, gs://, az://, http://, https://"):
        ArtifactUri.parse(text)


@pytest.mark.parametrize(
    ("text", "archive"),
    [
        ("s3://bucket/m.tar", ".tar"),
        ("s3://bucket/m.TAR.GZ", ".tar.gz"),
        ("s3://bucket/m.tgz", ".tgz"),
        ("s3://bucket/m.zip", ".zip"),
        ("s3://bucket/m.tar/", ".tar"),
        ("s3://bucket/m.onnx", None),
        ("s3://bucket/m", None),
    ],
)
def test_archive_is_told_by_the_ending(text: str, archive: str | None) -> None:
    assert ArtifactUri.parse(text).archive == archive
