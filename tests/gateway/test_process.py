"""How much memory the process keeps."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

KEEP_AND_RELEASE = """
import asyncio
from gateway import process

def read_resident_kb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

async def main():
    begin_kb = read_resident_kb()
    blocks = [bytes(4_000) for _ in range(20_000)]
    filled_kb = read_resident_kb() - begin_kb
    # Every tenth block stays, so the free memory is never at the end of the heap.
    del blocks[1:10_000], blocks[2::2], blocks[3::2], blocks[4::2]
    process.RELEASE_INTERVAL_S = 0.05
    releasing = asyncio.create_task(process.release_memory_regularly())
    for _ in range(600):
        await asyncio.sleep(0.1)
        kept_kb = read_resident_kb() - begin_kb
        if kept_kb < filled_kb / 2:
            break
    releasing.cancel()
    print(len(blocks) > 1_000, kept_kb < filled_kb / 2)

process.configure_malloc()
asyncio.run(main())
"""

FREE_LARGE_AND_ALLOCATE = """
import ctypes
from gateway import process

class MallInfo(ctypes.Structure):
    _fields_ = [(f"field_{number}", ctypes.c_size_t) for number in range(10)]

def count_mapped_blocks():
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = MallInfo
    return library.mallinfo2().field_3

process.configure_malloc()
large = bytes(8_000_000)
del large
count = count_mapped_blocks()
block = bytes(1_000_000)
print(count_mapped_blocks() - count)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed memory")
def test_memory_that_was_freed_between_used_blocks_is_given_back() -> None:
    result = subprocess.run(
        [sys.executable, "-c", KEEP_AND_RELEASE], capture_output=True, text=True, timeout=120
    )
    assert result.stdout.split() == ["True", "True"], result.stderr


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc moves its threshold")
def test_large_memory_block_is_mapped_separately_after_a_larger_block_was_freed() -> None:
    result = subprocess.run(
        [sys.executable, "-c", FREE_LARGE_AND_ALLOCATE], capture_output=True, text=True, timeout=120
    )
    assert result.stdout.split() == ["1"], result.stderr
