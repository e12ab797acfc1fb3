"""Traffic and discovery routes: the routing Manager port and its values.

Invariant: implementations are sub-packages and are never imported from here.
"""

from maserve.routing.protocol import Manager, TrafficProbe
from maserve.routing.types import MatchType, RewriteType, RouteConfig, RouteId, Rule

__all__ = ["Manager", "MatchType", "RewriteType", "RouteConfig", "RouteId", "Rule", "TrafficProbe"]
