import pytest

from maserve.artifacts import S3Settings, parse_storage_settings
from maserve.base.errors import Invalid


def test_nothing_given_is_the_default() -> None:
    assert parse_storage_settings({}).s3 == S3Settings()


def test_usual_s3_variables_are_read() -> None:
    s3 = parse_storage_settings(
        {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9000/",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
    ).s3
    assert (s3.endpoint, s3.region, s3.allow_http) == ("http://127.0.0.1:9000", "eu-west-1", True)
    assert (s3.access_key_id, s3.secret_access_key) == ("id", "secret")


def test_encrypted_endpoint_does_not_allow_plain_traffic() -> None:
    assert not parse_storage_settings({"AWS_ENDPOINT_URL": "https://minio"}).s3.allow_http


def test_every_wrong_variable_is_reported() -> None:
    with pytest.raises(Invalid) as caught:
        parse_storage_settings({"AWS_ENDPOINT_URL": "minio:9000", "AWS_SKIP_SIGNATURE": "maybe"})
    fields = [problem.field for problem in caught.value.problems]
    assert sorted(fields) == ["AWS_ENDPOINT_URL", "AWS_SKIP_SIGNATURE"]


def test_secrets_are_not_shown() -> None:
    settings = parse_storage_settings(
        {"AWS_SECRET_ACCESS_KEY": "hidden", "AZURE_STORAGE_ACCOUNT_KEY": "hidden"}
    )
    assert "hidden" not in repr(settings)
