"""The command line: what people type to use a control plane.

Invariant: speaks to the API server like any other client and to the gateway like any caller; knows
no controller, no store and no concrete data plane. Starting a control plane is `maserve.cmd`'s.
"""
