"""Define the limits of model APIs for requests with pictures.

Source: the pages "Vision" and "Errors" of the documentation of the Messages API (November 2026).
PDF files are sent to a model as text by page, so the limits for PDF files aren't needed. Other APIs
accept at least as many pictures of the same size.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiLimits:
    """The limits for a request with pictures."""

    # The types of pictures.
    picture_types: frozenset[str]
    # Models scale down pictures with a longer edge themselves.
    useful_edge_px: int
    # The longest edge of a picture, and of each picture if a request has more than
    # `many_pictures`.
    edge_px: int
    edge_of_many_px: int
    many_pictures: int
    pictures: int
    # The maximum sizes of a picture in Base64, and of the whole request.
    picture_bytes: int
    request_bytes: int


API_LIMITS = ApiLimits(
    picture_types=frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"}),
    useful_edge_px=1_568,
    edge_px=8_000,
    edge_of_many_px=2_000,
    many_pictures=20,
    pictures=100,
    picture_bytes=5_000_000,
    request_bytes=32_000_000,
)
