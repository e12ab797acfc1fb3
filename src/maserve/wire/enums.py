"""What stands for an enum type at run time."""

from __future__ import annotations

from typing import Any

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper


class Enum(EnumTypeWrapper):
    """An enum as protoc's modules have it, which may also be used the way its stub is typed.

    The stubs declare each enum as a subclass of int; hence annotations such as
    `v2.DeploymentStage | None` and conversions such as `v2.DeploymentStage(3)` type-check, and
    so they must not fail when they are evaluated. Values are plain ints.
    """

    def __call__(self, number: int) -> int:
        return int(number)

    def __or__(self, other: Any) -> Any:
        return int | (int if isinstance(other, Enum) else other)

    def __ror__(self, other: Any) -> Any:
        return other | int
