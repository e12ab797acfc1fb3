"""maserve: a control plane for machine-learning model serving."""

__version__ = "0.1.0"
