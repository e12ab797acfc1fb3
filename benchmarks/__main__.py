"""Run the benchmarks named on the command line, or all of them."""

import sys

from benchmarks import idle, overhead, store

ALL = {"overhead": overhead.main, "idle": idle.main, "store": store.main}


def main() -> None:
    names = sys.argv[1:] or list(ALL)
    unknown = [name for name in names if name not in ALL]
    if unknown:
        sys.exit(f"error: no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
    kept = [ALL[name]() for name in names]
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
