"""A routing Manager in memory, whose data plane acknowledges at once or when it is told to."""

from dataclasses import dataclass, field

from maserve.base.errors import NotFound
from maserve.base.keys import ClusterId, Key
from maserve.resource import names
from maserve.routing import RouteConfig, RouteId, Rule
from maserve.testing.faults import Faults
from maserve.wire import v2

_Place = tuple[str, str, str]


@dataclass(slots=True)
class _Route:
    rules: dict[str, Rule] = field(default_factory=dict)


class FakeRoutingManager(Faults):
    """Keeps routes. `calls` lists every write.

    After `hold()` nothing is acknowledged: `is_live` is False for whatever is changed from then on,
    until `acknowledge()`. `live_rules` is what the data plane serves meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self._routes: dict[_Place, _Route] = {}
        self._live: dict[_Place, tuple[Rule, ...]] = {}
        self._is_held = False

    def hold(self) -> None:
        """Let the data plane fall behind from now on."""
        self._is_held = True

    def acknowledge(self) -> None:
        """Let the data plane catch up, and keep up from now on."""
        self._is_held = False
        self._flip()

    def live_rules(self, cluster: str | None, route: RouteId) -> tuple[Rule, ...]:
        """Return what the data plane serves of a route; no call of the port."""
        return self._live.get((cluster or "", route.key.namespace, route.key.name), ())

    def clusters_of(self, server: Key) -> tuple[ClusterId, ...]:
        """Return the clusters in which a server has a traffic route that is served."""
        wanted = server.namespace, names.traffic_route(server.name)
        places = sorted(place for place in self._live if place[1:] == wanted)
        return tuple(ClusterId(cluster) for cluster, _, _ in places if cluster)

    async def create(
        self, target: v2.ClusterTarget | None, route: RouteId, config: RouteConfig
    ) -> None:
        self.write("create", *_place(target, route))
        rules = {rule.match_path: rule for rule in config.rules}
        self._routes.setdefault(_place(target, route), _Route(rules))
        self._flip()

    async def exists(self, target: v2.ClusterTarget | None, route: RouteId) -> bool:
        self.read("exists")
        return _place(target, route) in self._routes

    async def delete(self, target: v2.ClusterTarget | None, route: RouteId) -> None:
        self.write("delete", *_place(target, route))
        self._routes.pop(_place(target, route), None)
        self._flip()

    async def add_rules(
        self, target: v2.ClusterTarget | None, route: RouteId, *rules: Rule
    ) -> None:
        self.write("add_rules", *_place(target, route), *(rule.match_path for rule in rules))
        found = self._routes.get(_place(target, route))
        if found is None:
            raise NotFound("route", route.key)
        found.rules.update({rule.match_path: rule for rule in rules})
        self._flip()

    async def remove_rules(
        self, target: v2.ClusterTarget | None, route: RouteId, *match_paths: str
    ) -> None:
        self.write("remove_rules", *_place(target, route), *match_paths)
        found = self._routes.get(_place(target, route), _Route())
        for path in match_paths:
            found.rules.pop(path, None)
        self._flip()

    async def list_rules(self, target: v2.ClusterTarget | None, route: RouteId) -> tuple[Rule, ...]:
        self.read("list_rules")
        return self._stored(_place(target, route))

    async def is_live(self, target: v2.ClusterTarget | None, route: RouteId) -> bool:
        self.read("is_live")
        place = _place(target, route)
        return self._live.get(place, ()) == self._stored(place)

    def _stored(self, place: _Place) -> tuple[Rule, ...]:
        return tuple(self._routes.get(place, _Route()).rules.values())

    def _flip(self) -> None:
        if not self._is_held:
            self._live = {place: self._stored(place) for place in self._routes}


def _place(target: v2.ClusterTarget | None, route: RouteId) -> _Place:
    cluster = target.cluster_id if target is not None else ""
    return cluster, route.key.namespace, route.key.name
