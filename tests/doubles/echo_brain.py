"""A model without a mind, good for tests of the whole house: what it answers follows from the request alone.

* ``[call memory {"action": "list"}]`` in the text of the last message calls that tool; several markers are several
  calls side by side. A tool that the request does not offer is named in the answer instead.
* After tool results it says them: ``The tool says: ...``.
* ``[long 9000]`` is answered with about that many characters of numbered sentences.
* Anything else comes back as ``You said: ...``.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.doubles.model_reply import ModelReply

FENCE = "<memory-context"
_CALL = re.compile(r"\[call ([a-zA-Z0-9_-]{1,128}) ?")
_LONG = re.compile(r"\[long (\d{1,6})\]")


def echo(body: dict[str, Any]) -> ModelReply:
    """The reply to a request of the Messages API."""
    content = body["messages"][-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    results = [_result(block) for block in blocks if block["type"] == "tool_result"]
    if results:
        return ModelReply.say("\n".join(f"The tool says: {result}" for result in results))
    text = said(blocks)
    offered = {tool["name"] for tool in body.get("tools", ())}
    calls = _calls(text)
    if unknown := [name for name, _ in calls if name not in offered]:
        return ModelReply.say(f"I have no tool {', '.join(unknown)}.")
    if calls:
        return ModelReply.call(*calls)
    if match := _LONG.search(text):
        return ModelReply.say(_sentences(int(match[1])))
    return ModelReply.say(f"You said: {text}")


def said(blocks: list[dict[str, Any]]) -> str:
    """What the person said: the last text of the message that is not the recalled background."""
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return next((text for text in reversed(texts) if not text.startswith(FENCE)), "")


def _calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    decoder = json.JSONDecoder()
    calls = []
    for match in _CALL.finditer(text):
        try:
            arguments, _ = decoder.raw_decode(text, match.end())
        except ValueError:
            arguments = {}
        calls.append((match[1], arguments if isinstance(arguments, dict) else {}))
    return calls


def _result(block: dict[str, Any]) -> str:
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _sentences(chars: int) -> str:
    lines: list[str] = []
    left = chars
    while left > 0:
        lines.append(f"{len(lines) + 1}. This is a sentence that only wants to be long.")
        left -= len(lines[-1]) + 2
    return "\n\n".join(lines)
