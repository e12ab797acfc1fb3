"""The kinds of resources that are served, and what each is called where."""

from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message

from maserve.base.errors import Unsupported
from maserve.wire import v2

GROUP = "michelangelo.api"
VERSION = "v2"
API_VERSION = f"{GROUP}/{VERSION}"

Resource = (
    v2.Project
    | v2.ModelFamily
    | v2.Model
    | v2.InferenceServer
    | v2.Deployment
    | v2.Revision
    | v2.Cluster
    | v2.RayCluster
)
"""Any resource message: `type_meta`, `metadata`, `spec`, `status`."""

R = TypeVar("R", bound=Resource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind. `field` is its field name in requests and answers, `plural` its collection name."""

    name: str
    message: type[Resource]
    list_message: type[Message]
    field: str

    @property
    def plural(self) -> str:
        return f"{self.name.lower()}s"

    @property
    def service(self) -> str:
        """The full name of its gRPC service."""
        return f"{GROUP}.{VERSION}.{self.name}Service"

    @property
    def list_field(self) -> str:
        return f"{self.field}_list"

    def is_called(self, word: str) -> bool:
        """Tell whether a person may mean this kind by `word`: name, plural or snake case."""
        plain = word.lower().replace("_", "").replace("-", "").removesuffix(f".{GROUP}")
        return plain in (self.name.lower(), self.plural)


KINDS = (
    Kind(name="Project", message=v2.Project, list_message=v2.ProjectList, field="project"),
    Kind(
        name="ModelFamily",
        message=v2.ModelFamily,
        list_message=v2.ModelFamilyList,
        field="model_family",
    ),
    Kind(name="Model", message=v2.Model, list_message=v2.ModelList, field="model"),
    Kind(
        name="InferenceServer",
        message=v2.InferenceServer,
        list_message=v2.InferenceServerList,
        field="inference_server",
    ),
    Kind(
        name="Deployment", message=v2.Deployment, list_message=v2.DeploymentList, field="deployment"
    ),
    Kind(name="Revision", message=v2.Revision, list_message=v2.RevisionList, field="revision"),
    Kind(name="Cluster", message=v2.Cluster, list_message=v2.ClusterList, field="cluster"),
    Kind(
        name="RayCluster",
        message=v2.RayCluster,
        list_message=v2.RayClusterList,
        field="ray_cluster",
    ),
)

_BY_NAME = {kind.name: kind for kind in KINDS}


def kind_of(resource: Resource | type[Resource]) -> Kind:
    """Return the kind of a resource message or its class."""
    return _BY_NAME[resource.DESCRIPTOR.name]


def get_kind(word: str) -> Kind:
    """Return the kind a person means by `word`. Raises `Unsupported` naming the known kinds."""
    found = next((kind for kind in KINDS if kind.is_called(word)), None)
    if found is None:
        known = ", ".join(kind.name for kind in KINDS)
        raise Unsupported(f"unknown kind {word!r}; known kinds: {known}")
    return found
