"""Files that the sidecar writes and the server reads."""

from __future__ import annotations

from pathlib import Path


def replace(file: Path, text: str) -> bool:
    """Put a text in place of a file's at once, and only where it differs; tell whether it does."""
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return False
    fresh = file.with_name(f".{file.name}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)
    return True
