"""What a model's metadata says about who answers."""

import pytest

from maserve.routing.local.probe import parse_model_name


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"name": "m2", "versions": ["1"]}', "m2"),
        (b'{"error": "unknown model"}', ""),
        (b"[]", ""),
        (b"upstream connect error", ""),
    ],
)
def test_the_name_is_read_from_metadata_only(body: bytes, name: str) -> None:
    assert parse_model_name(body) == name
