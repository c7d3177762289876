"""Tables for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape


def table(caption: str, rows: Iterable[Sequence[str]], header: Iterable[str] = ()) -> str:
    """Return an HTML table of texts; without a header, the first column names the rows."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = [f"<tr>{head}</tr>"] if head else []
    for first, *rest in rows:
        name = f"<td>{escape(first)}</td>" if head else f"<th>{escape(first)}</th>"
        cells = "".join(f"<td>{escape(text)}</td>" for text in rest)
        lines.append(f"<tr>{name}{cells}</tr>")
    style = "caption-side: top; text-align: left; white-space: pre-wrap"
    return f'<table><caption style="{style}">{escape(caption)}</caption>{"".join(lines)}</table>'
