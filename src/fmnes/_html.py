"""Tables for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape

_CAPTION = "caption-side: top; text-align: left; font-weight: bold; white-space: normal"
_LEFT = ' style="text-align: left"'


def table(caption: str, rows: Iterable[Sequence[str]], header: Iterable[str] = ()) -> str:
    """Return an HTML table of texts; without a header, the first column names the rows."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = [f"<tr>{head}</tr>"] if head else []
    for row in rows:
        cells = [f"<td{'' if head else _LEFT}>{escape(text)}</td>" for text in row]
        if not head:
            cells[0] = f"<th{_LEFT}>{escape(row[0])}</th>"
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return (
        '<table style="white-space: nowrap">'
        f'<caption style="{_CAPTION}">{escape(caption)}</caption>{"".join(lines)}</table>'
    )
