"""How many attacks the guard catches and how many innocent texts it refuses, on its corpus; and what a look costs."""

from __future__ import annotations

import time
from collections import Counter

from core.guard.guard import threat
from tests.fixtures.lures_corpus import Sample, samples

NOTE_CHARS = 2_200


def measure() -> str:
    """Two Markdown tables: by set, tuned and held out, and by language over both."""
    sets = {name: samples(name) for name in ("attacks", "attacks_held_out", "innocent", "innocent_held_out")}
    lines = ["| set | attacks | caught | innocent | refused |", "|---|---|---|---|---|"]
    for label, end in (("tuned on", ""), ("held out", "_held_out")):
        bad, good = sets[f"attacks{end}"], sets[f"innocent{end}"]
        lines.append(f"| {label} | {len(bad)} | {_share(bad)} | {len(good)} | {_share(good)} |")
    bad = sets["attacks"] + sets["attacks_held_out"]
    good = sets["innocent"] + sets["innocent_held_out"]
    lines += ["", "| language | attacks | caught | innocent | refused |", "|---|---|---|---|---|"]
    languages = Counter(sample.language for sample in bad + good)
    for language, _ in languages.most_common():
        attacks, notes = _spoken(bad, language), _spoken(good, language)
        lines.append(f"| {language} | {len(attacks)} | {_share(attacks)} | {len(notes)} | {_share(notes)} |")
    return "\n".join([*lines, "", _cost(good)])


def _spoken(texts: list[Sample], language: str) -> list[Sample]:
    return [sample for sample in texts if sample.language == language]


def _share(texts: list[Sample]) -> str:
    if not texts:
        return ""
    found = sum(threat(sample.text) is not None for sample in texts)
    return f"{100 * found / len(texts):.1f} %"


def _cost(texts: list[Sample]) -> str:
    begun_s = time.perf_counter()
    for sample in texts:
        threat(sample.text)
    each_ms = 1000 * (time.perf_counter() - begun_s) / len(texts)
    note = " ".join(sample.text for sample in texts if sample.language == "en" and "\n" not in sample.text)[:NOTE_CHARS]
    begun_s = time.perf_counter()
    threat(note)
    full_ms = 1000 * (time.perf_counter() - begun_s)
    return f"A look at one text takes {each_ms:.1f} ms, at {NOTE_CHARS:,} characters of notes {full_ms:.0f} ms."
