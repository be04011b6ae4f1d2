"""Prints the words of a recording: ``python -m tests.speech.listen PYTHON GRAMMAR FILE``.

PYTHON is the interpreter with pocketsphinx, and GRAMMAR a file with the sentences that it knows.
pocketsphinx doesn't read Opus, so PyAV decodes the recording first.
"""

from __future__ import annotations

import subprocess
import sys

import av
from av.audio.resampler import AudioResampler

SAMPLE_RATE = 16_000
DECODE = """
import sys
from pocketsphinx import Decoder
decoder = Decoder(lm=None, jsgf=sys.argv[1], samprate=16000, loglevel="FATAL")
decoder.start_utt()
decoder.process_raw(sys.stdin.buffer.read(), full_utt=True)
decoder.end_utt()
print(decoder.hyp().hypstr if decoder.hyp() else "")
"""


def read_samples(path: str) -> bytes:
    """Return a recording as 16-bit samples of one channel."""
    resampler = AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE)
    pieces: list[bytes] = []
    with av.open(path) as container:
        for frame in container.decode(audio=0):
            pieces += [bytes(piece.planes[0]) for piece in resampler.resample(frame)]
    return b"".join(pieces)


def main(python: str, grammar: str, path: str) -> None:
    command = [python, "-c", DECODE, grammar]
    result = subprocess.run(command, input=read_samples(path), stdout=subprocess.PIPE, check=True)
    sys.stdout.write(result.stdout.decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
