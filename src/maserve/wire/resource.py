"""Kubernetes' `Quantity`."""

from maserve.wire.pool import lazy

__getattr__, __dir__ = lazy("k8s.io.apimachinery.pkg.api.resource", globals())
