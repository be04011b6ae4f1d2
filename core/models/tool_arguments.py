"""Reads what a model gave to a tool; what does not fit the tool's schema goes back to it as a sentence."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from core.errors import ToolError
from core.types import Json

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], arguments: Json) -> M:
    """The arguments as a value of `model`, whose schema the tool announced; a null is what was not given. Raises
    ToolError that names the field."""
    try:
        return model.model_validate({name: value for name, value in arguments.items() if value is not None})
    except ValidationError as error:
        first = error.errors()[0]
        raise ToolError(f"{'.'.join(map(str, first['loc'])) or 'arguments'}: {first['msg']}") from error
