"""Messages of Kubernetes `core/v1`, as far as a PodTemplateSpec reaches."""

from maserve.wire.pool import lazy

__getattr__, __dir__ = lazy("k8s.io.api.core.v1", globals())
