"""Letters that look like others, as a table: the few hundred that are used to write a word so that no search finds it.

Data only. NFKC has already undone full-width, mathematical, circled and superscript letters when these are applied.
"""

from __future__ import annotations

_LATIN = {
    "a": "\u0430\u03b1\u0251\u1d00\u2c6d\u0250\u13aa\u0391\u0410\u2200",
    "b": "\u0432\u0412\u0392\u0299\u13f4\u0184\u044c\u042c\u0253\u1472",
    "c": "\u0441\u0421\u03f2\u1d04\u2ca5\u13df\u2ca4\u0254\u1455\u03f9",
    "d": "\u0501\u1d05\u0257\u13a0\u13e7\u0256\u146f",
    "e": "\u0435\u0415\u0395\u03b5\u1d07\u04bd\u212e\u13ac\u01dd\u0259\u0454\u0404\u025b",
    "f": "\u0493\ua730\u0192\u03dd\u0584\u025f\u0562",
    "g": "\u0261\u0262\u0581\u13c0\u050c\u050d\u018d\u0260\u0183",
    "h": "\u04bb\u029c\u041d\u0397\u13bb\u043d\u0570\u13c2\u0265\u0266",
    "i": "\u0456\u0406\u0399\u03b9\u0131\u026a\u04c0\u04cf\u13a5\u0269\u1d09\u0268\u2071\ua647",
    "j": "\u0458\u0408\u1d0a\u0575\u13ab\u027e\u03f3",
    "k": "\u043a\u041a\u039a\u03ba\u1d0b\u13e6\u029e\u0199",
    "l": "\u029f\u13de\u217c\u2113\u026d\u05c0\u01c0\u026b\u1490",
    "m": "\u043c\u041c\u039c\u1d0d\u13b7\u217f\u026f\u0271",
    "n": "\u0274\u039d\u03b7\u0578\u057c\u0438\u043f\u0272\u014b\u2c9b\u1952",
    "o": "\u043e\u041e\u039f\u03bf\u1d0f\u0585\u0555\u03c3\u2c9f\u0ed0\u05e1\u0275\u00f8\u2c9e",
    "p": "\u0440\u0420\u03a1\u03c1\u1d18\u13e2\u2ca3\u0580\u2374\u2ca2",
    "q": "\u051b\u0566\u0563\u02a0",
    "r": "\u0433\u0280\u027c\u13a1\u0491\u0433\u1d26\u0279\u027d",
    "s": "\u0455\u0405\ua731\u13da\u054f\u0282\u01bd\u10fd",
    "t": "\u0442\u0422\u03a4\u03c4\u1d1b\u13a2\u0287\u01ad\u2ca6",
    "u": "\u03c5\u1d1c\u057d\u0446\u028b\u0574\u0573\u1d7e\u028a",
    "v": "\u0475\u03bd\u1d20\u13d9\u2174\u0474\u028c",
    "w": "\u051d\u1d21\u0448\u0461\u13d4\u13b3\u0428\u03c9\u028d",
    "x": "\u0445\u0425\u03a7\u03c7\u2179\u04b3\u2cad",
    "y": "\u0443\u0423\u03a5\u03b3\u028f\u04af\u04ae\u13a9\u0423\u028e\u0579",
    "z": "\u1d22\u0396\u13c3\u0290\u01b6\u03b6\u0225",
}
"""Latin letters and what is written for them: Cyrillic, Greek, Armenian, Cherokee, Coptic, small capitals, phonetic,
turned and hooked letters."""

TO_LATIN: dict[int, str] = {
    **{ord(sign): letter for letter, signs in _LATIN.items() for sign in signs},
    **{0x1F130 + index: chr(97 + index) for index in range(26)},
    **{0x1F150 + index: chr(97 + index) for index in range(26)},
    **{0x1F170 + index: chr(97 + index) for index in range(26)},
    **{0x1F1E6 + index: chr(97 + index) for index in range(26)},
}
"""For str.translate: each lookalike, also letters in black squares, discs and flags, to its small Latin letter."""

TO_CYRILLIC = str.maketrans(
    "aceopxyikmtbhnur",
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0438\u043a\u043c\u0442\u0432\u043d\u043f\u0438\u0433",
)
"""The other way, for words that are Cyrillic but for some letters."""

FROM_LEET: dict[int, str | int] = {**str.maketrans("0134578@$!|\u20ac", "oieastbasiie")}
"""Digits and signs written for letters; 1 stands for i and is tried as l as well."""
