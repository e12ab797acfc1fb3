"""Reads a Triton `config.pbtxt` as far as needed here: is it well-formed, which model does it name.

The full message is the serving framework's own and changes with it; a wrong value is its to report,
but it answers a broken file with no reason at all, so that is found here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<open>[{\[<]) | (?P<close>[}\]>])
      | (?P<word>[A-Za-z0-9_.+\-/]+)
      | (?P<mark>[:;,])""",
    re.VERBOSE,
)
_CLOSES = {"{": "}", "[": "]", "<": ">"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigText:
    """What was read. `name` is empty when none is named, `fault` when the file is well-formed."""

    name: str = ""
    fault: str = ""


def parse_config_text(text: str) -> ConfigText:
    """Scan the file; never raises."""
    waiting: list[str] = []
    before: tuple[str, str] = ("", "")
    name = ""
    for kind, token, line in _tokens(text):
        if kind == "wrong":
            return ConfigText(fault=f"line {line}: unexpected {token!r}")
        if kind == "open":
            waiting.append(_CLOSES[token])
        if kind == "close" and (not waiting or waiting.pop() != token):
            return ConfigText(fault=f"line {line}: {token!r} closes nothing")
        if kind == "text" and not waiting and before == ("name", ":"):
            name = token[1:-1]
        before = (before[1], token)
    if waiting:
        return ConfigText(fault=f"ends before {waiting[-1]!r}")
    return ConfigText(name=name)


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            yield "wrong", text[position], text.count("\n", 0, position) + 1
            return
        if found.lastgroup != "space":
            yield found.lastgroup, found.group(), text.count("\n", 0, position) + 1
        position = found.end()
