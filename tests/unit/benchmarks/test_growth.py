"""What the soak calls growth."""

from collections.abc import Sequence

from benchmarks.growth import Growth, judge


def judged(**series: Sequence[float]) -> dict[str, Growth]:
    """Judge series by name; `_at_` stands for the sign before a pid."""
    length = max(len(values) for values in series.values())
    named = {name.replace("_at_", "@"): values for name, values in series.items()}
    samples = [
        {name: values[at] for name, values in named.items() if at < len(values)}
        for at in range(length)
    ]
    return {found.measure: found for found in judge(samples)}


def test_what_swings_does_not_grow_and_what_leaks_does() -> None:
    found = judged(swing=[3, 1, 5, 2] * 6, leak=list(range(24)), warm=[0] * 8 + [9] * 16)

    assert found["swing"].growth == 0
    assert found["leak"] == Growth(measure="leak", level=10, growth=8, peak=23)
    assert found["warm"].growth == 0


def test_of_processes_the_worst_counts_and_short_lives_do_not() -> None:
    found = judged(rss_at_1=[5] * 12, rss_at_2=list(range(12)), rss_at_3=[1, 100])

    assert found == {"rss": Growth(measure="rss", level=5, growth=4, peak=11)}
