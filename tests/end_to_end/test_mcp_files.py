"""Sound and documents that tools of a real MCP server return."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.test_mcp import open_diary, result_of
from tests.fixtures.media_samples import make_pdf
from tests.fixtures.scripted_model import calls, says

pytestmark = pytest.mark.slow


async def test_sound_and_document_of_an_mcp_tool_are_kept_and_its_other_content_is_named(
    home: Path,
) -> None:
    async with open_diary(home, "--draw") as (harness, model, _):
        model.script = [calls(("diary__publish", {})), says("It is printed.")]
        await harness.say("Publish my diary")
        result = result_of(model.requests[-1])
        assert "The tool's recording is kept as file 1." in result
        assert "The tool's file is kept as file 2." in result
        assert "Files of the tool that are too many or damaged: 1." in result
        assert "[resource: diary://notice]\nEntry 7 is missing." in result
        assert "[link: index] https://diary.test/index" in result
        assert "diary.pdf, page 7" in (await harness.say("/recall boiler has:file")).text
        for number, name, content in (
            ("1", "publish.ogg", b"OggS" + bytes(300)),
            ("2", "diary.pdf", make_pdf()),
        ):
            answer = (await harness.say(f"/files send {number}")).answer
            assert answer is not None
            (file,) = answer.files
            assert (file.name, file.content) == (name, content)
