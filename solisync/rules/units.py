"""Numbers with units, for people."""


def bytes_shown(count: float) -> str:
    """A number of bytes with a binary unit."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.{0 if unit == 'B' else 1}f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
