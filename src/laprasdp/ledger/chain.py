"""The chain of digests over a ledger's entries: a change, a gap or a lost tail shows.

The digest before the first entry is SHA-256 of the settings' text; that of each entry is SHA-256 of the
digest before it, in hexadecimal, followed by the entry's text.
"""

from __future__ import annotations

import hashlib


def first_digest(settings: str) -> str:
    """The digest before the first entry; it binds the chain to the settings."""
    return hashlib.sha256(settings.encode()).hexdigest()


def next_digest(before: str, text: str) -> str:
    """The digest of an entry after the digest `before`."""
    return hashlib.sha256(f"{before}{text}".encode()).hexdigest()
