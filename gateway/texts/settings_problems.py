"""Translates problems in the settings, which `config.settings` describes in English."""

from __future__ import annotations

import re

from config.settings import SettingsError
from core.text.normalize import join_sentences
from gateway.texts.catalog import Texts
from gateway.texts.text_files import list_patterns

_LINE = re.compile(r" \(line (\d+)\)\Z")


def word_problem(texts: Texts, problem: str) -> str:
    """Translate a problem in the settings: ``path: explanation (line 7)``.

    Explanations that come from a library aren't translated.
    """
    path, separator, explanation = problem.partition(": ")
    table = texts.table("SETTINGS_PROBLEMS")
    line = _LINE.search(explanation)
    place = ""
    if line is not None:
        explanation = explanation[: line.start()]
        place = f" {table['line'].format(number=line[1])}"
    for key, pattern in list_patterns("SETTINGS_PROBLEMS"):
        match = pattern.fullmatch(explanation)
        if match is not None:
            values = match.groupdict()
            if "choices" in values:
                values["choices"] = values["choices"].replace(" or ", ", ")
            if "error" in values:
                values["error"] = texts.word_stored(values["error"])
            explanation = table[key].format(**values)
            break
    return f"{path}{separator}{explanation}{place}"


def word_settings_advice(texts: Texts, advice: str) -> str:
    """Translate the sentences of `Settings.advice`, which say which options to rename."""
    table = texts.table("SETTINGS_ADVICE")
    sentences = []
    for sentence in re.split(r"(?<=\.) ", advice):
        for key, pattern in list_patterns("SETTINGS_ADVICE"):
            match = pattern.fullmatch(sentence)
            if match is not None:
                sentence = table[key].format(**match.groupdict())
                break
        sentences.append(sentence)
    return join_sentences(sentences)


def word_settings_error(texts: Texts, error: SettingsError) -> str:
    """Return all problems in the settings, one per line."""
    count = len(error.problems)
    heading = texts.choose_plural(texts.table("SETTINGS_MISTAKES"), count)
    lines = [heading.format(count=texts.format_number(count), file=error.file)]
    lines += [f"  {word_problem(texts, problem)}" for problem in error.located_problems]
    return "\n".join(lines)
