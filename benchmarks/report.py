"""One line a figure, with what was promised."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured number in `unit`; `promise` is its upper bound, None when nothing is promised."""

    name: str
    value: float
    unit: str
    promise: float | None = None

    @property
    def is_kept(self) -> bool:
        return self.promise is None or self.value <= self.promise


def print_figures(title: str, figures: list[Figure]) -> bool:
    """Print the figures; tell whether every promise is kept."""
    print(f"\n{title}")
    for figure in figures:
        bound = "" if figure.promise is None else f"  promised <= {figure.promise:g} {figure.unit}"
        verdict = "" if figure.promise is None else ("  kept" if figure.is_kept else "  BROKEN")
        print(f"  {figure.name:<62} {figure.value:10.3f} {figure.unit}{bound}{verdict}", flush=True)
    return all(figure.is_kept for figure in figures)
