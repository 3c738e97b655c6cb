"""The one Chromium of the tests that look at the page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.end_to_end.browser import NoBrowser, chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    try:
        with chromium() as started:
            yield started
    except NoBrowser as error:
        pytest.skip(str(error))
