"""What everything else stands on: clock, errors, keys, durations, backoff, task groups.

Invariant: standard library only. Knows nothing of resources, processes or networks.
"""
