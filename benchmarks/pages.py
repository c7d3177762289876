"""Pages whose tables are made from stored figures, each between two marks."""

from collections.abc import Iterable, Mapping, Sequence


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """A page with the tables between its ``<!-- table: NAME -->`` marks made anew."""
    for name, text in tables.items():
        begin, end = f"<!-- table: {name} -->\n", f"<!-- end of table: {name} -->"
        before, rest = page.split(begin)
        page = f"{before}{begin}{text}\n{end}{rest.split(end)[1]}"
    return page


def table(titles: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """In Markdown."""
    return "\n".join([_row(titles), "|---" * len(titles) + "|", *map(_row, rows)])


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
