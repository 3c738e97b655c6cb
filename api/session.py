"""The page's session: a cookie that proves that its browser once had the token, and when that ends.

An EventSource cannot send an Authorization header, and a token within reach of scripts can be stolen by one. The value
is `<expiry>.<hmac-sha256 of the expiry under the token>`: nothing is stored, and a new token ends every session.
"""

from __future__ import annotations

import hashlib
import hmac

COOKIE = "blockwright_session"
LIFETIME_S = 12 * 3600
MAX_BODY_SIZE = 4096  # bytes of a sign-in: whoever sends it has shown no token yet


def issue(token: bytes, now: float) -> str:
    """A value for the cookie.

    Args:
        token: the service's.
        now: seconds since 1970.
    """
    expiry = str(int(now) + LIFETIME_S)
    return f"{expiry}.{_signature(token, expiry)}"


def holds(token: bytes, value: str, now: float) -> bool:
    """Whether we issued this value under this token and it has not expired; the comparison takes constant time."""
    expiry, _, signature = value.partition(".")
    if not (expiry.isascii() and expiry.isdecimal() and len(expiry) <= 12):
        return False
    signed = hmac.compare_digest(signature.encode(errors="replace"), _signature(token, expiry).encode())
    return signed and now < int(expiry)


def _signature(token: bytes, expiry: str) -> str:
    return hmac.new(token, expiry.encode(), hashlib.sha256).hexdigest()
