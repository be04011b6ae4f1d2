"""How alike two words are: the number of typing slips between them. Pure."""

from __future__ import annotations


def slips(one: str, other: str, most: int) -> int:
    """Letters that were left out, put in, mistaken or swapped with their neighbour on the way from one word to the
    other (optimal string alignment; Damerau, "A technique for computer detection and correction of spelling errors",
    1964); more than `most` is said as `most` + 1."""
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for index, letter in enumerate(one, 1):
        current = [index]
        for place, candidate in enumerate(other, 1):
            cost = min(row[place] + 1, current[-1] + 1, row[place - 1] + (letter != candidate))
            if index > 1 and place > 1 and letter == other[place - 2] and one[index - 2] == candidate:
                cost = min(cost, before[place - 2] + 1)
            current.append(cost)
        if min(current) > most and min(row) > most:
            return most + 1
        before, row = row, current
    return min(row[-1], most + 1)


KIN_LETTERS = 4
KIN_SHARE = 0.6


def are_kin(one: str, other: str) -> bool:
    """Whether two different words begin alike for at least `KIN_LETTERS` letters and `KIN_SHARE` of the longer one:
    what stemming leaves apart (adopt, adoptive; in Russian every case)."""
    shared = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if shared is None:
        shared = min(len(one), len(other))
    return shared >= KIN_LETTERS and shared >= KIN_SHARE * max(len(one), len(other)) and one != other
