"""Cluster targets as they are remembered in annotations (behaviour 5.6)."""

import json

from maserve.base.keys import ClusterId
from maserve.wire import v2


def cluster_id(target: v2.ClusterTarget) -> ClusterId:
    return ClusterId(target.cluster_id)


def render_targets(targets: "tuple[v2.ClusterTarget, ...]") -> str:
    """Render targets as JSON, empty fields left out, in the given order."""
    return json.dumps([_row(target) for target in targets], separators=(",", ":"))


def parse_targets(text: str) -> "tuple[v2.ClusterTarget, ...]":
    """Parse what `render_targets` wrote. Raises ValueError for anything else."""
    rows = json.loads(text) if text else []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a list of clusters")
    return tuple(_target(row) for row in rows)


def _row(target: v2.ClusterTarget) -> dict[str, str]:
    connection = target.kubernetes
    row = {
        "clusterId": target.cluster_id,
        "host": connection.host,
        "port": connection.port,
        "tokenTag": connection.token_tag,
        "caDataTag": connection.ca_data_tag,
    }
    return {name: value for name, value in row.items() if value}


def _target(row: "dict[str, str]") -> v2.ClusterTarget:
    target = v2.ClusterTarget(cluster_id=str(row.get("clusterId", "")))
    if row.get("host"):
        target.kubernetes.host = row["host"]
        target.kubernetes.port = row.get("port", "")
        target.kubernetes.token_tag = row.get("tokenTag", "")
        target.kubernetes.ca_data_tag = row.get("caDataTag", "")
    return target
