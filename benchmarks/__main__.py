"""Run the benchmarks named on the command line; without names, those that take minutes."""

import argparse
import sys
from collections.abc import Callable
from functools import partial

from benchmarks import idle, overhead, soak, store

USUAL: dict[str, Callable[[], bool]] = {
    "overhead": overhead.main,
    "idle": idle.main,
    "store": store.main,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join((*USUAL, "soak")))
    parser.add_argument("--minutes", type=float, default=20.0, help="how long the soak takes")
    given = parser.parse_args()
    known: dict[str, Callable[[], bool]] = {**USUAL, "soak": partial(soak.main, given.minutes)}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    kept = [known[name]() for name in given.names or USUAL]
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
