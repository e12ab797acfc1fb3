"""Fakes, builders and contract suites for tests of this project and of its extensions.

Invariant: shipped, but imported by tests only.
"""
