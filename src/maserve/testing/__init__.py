"""Fakes, builders and contract suites for tests of this project and of its extensions.

Invariant: shipped, but imported by tests only.
"""

import pkgutil
import sys

if "pytest" in sys.modules:  # the load generator's process does without
    import pytest

    # An assertion of a contract then shows what it compared, as one of a test file does.
    pytest.register_assert_rewrite(
        *(f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    )
