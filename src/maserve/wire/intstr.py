"""Kubernetes' `IntOrString`."""

from maserve.wire.pool import lazy

__getattr__, __dir__ = lazy("k8s.io.apimachinery.pkg.util.intstr", globals())
