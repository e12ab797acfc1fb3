"""Whether a Model's artifact is there, asked while its rollout is prepared."""

from maserve.artifacts import Artifacts, ArtifactUri
from maserve.base.errors import Denied, Unavailable


class StoredArtifacts:
    """Looks whether an artifact is there; what cannot be told is left to model-sync to say."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts

    async def check(self, storage_path: str) -> None:
        """See `ArtifactCheck.check`."""
        uri = ArtifactUri.parse(storage_path, "spec.deployable_artifact_uri")
        try:
            await self._artifacts.check_exists(uri)
        except (Denied, Unavailable):
            return
