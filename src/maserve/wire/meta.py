"""Messages of Kubernetes `meta/v1`."""

from maserve.wire.pool import lazy

__getattr__, __dir__ = lazy("k8s.io.apimachinery.pkg.apis.meta.v1", globals())
