"""What an HTML widget of a panel shows, as texts."""

import html
import re


def words(widget):
    return html.unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", widget.value, flags=re.DOTALL)).strip()


def cells(widget):
    """Return the cells of a table by the title of their row."""
    rows = re.findall(r"<th scope='row'>(.*?)</th>(.*?)</tr>", widget.value)
    return {html.unescape(title): re.findall(r"<td>(.*?)</td>", found) for title, found in rows}
