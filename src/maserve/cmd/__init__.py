"""Composition roots: the only place that knows concrete classes and the container.

To extend the control plane copy `controllermgr.py`, edit the list in `options()`, and have your
copy call `main.main(options)`.
"""
