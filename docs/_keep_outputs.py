"""A plugin of pytest: what the cells show that nbval runs is kept, and the site need not run the notebooks again.

nbclient records outputs and widgets, as for the site. `_notebook_pages` finds them if all cells of a notebook passed.
"""

import sys
from contextlib import suppress
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionComplete
from nbval.plugin import IPyNbCell

sys.path.append(str(Path(__file__).parent))

import _notebook_pages


class Record:
    """A notebook, and what its kernel says of the cells."""

    def __init__(self, file):
        self.notebook, self.passed = nbformat.read(file.path, as_version=4), 0
        self.places = [k for k, cell in enumerate(self.notebook.cells) if cell.cell_type == "code"]
        self.client = NotebookClient(self.notebook, store_widget_state=True, record_timing=False)
        self.client.reset_execution_trackers()
        self.client.kc, self.client.clear_before_next_output = file.kernel.kc, False
        self.ask, self.hear = file.kernel.execute_cell_input, file.get_kernel_message
        file.kernel.execute_cell_input, file.get_kernel_message = self.execute, self.message

    def execute(self, *arguments, **options):
        """Let the kernel run a cell."""
        self.asked = self.ask(*arguments, **options)
        return self.asked

    def message(self, *arguments, **options):
        """Return the kernel's next message, and record it if it belongs to the cell."""
        message = self.hear(*arguments, **options)
        if message["parent_header"].get("msg_id") == self.asked:
            with suppress(CellExecutionComplete):
                self.client.process_message(message, self.notebook.cells[self.place], self.place)
        return message


RECORD = pytest.StashKey[Record]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Record a cell, and keep the notebook after its last one."""
    if not isinstance(item, IPyNbCell) or item.path not in _notebook_pages.SOURCES:
        return (yield)
    if RECORD not in item.parent.stash:
        item.parent.stash[RECORD] = Record(item.parent)
    record = item.parent.stash[RECORD]
    record.place = record.places[item.cell_num]
    result = yield
    record.passed += 1
    record.notebook.cells[record.place].execution_count = record.passed
    if record.passed == len(record.places):
        record.client.set_widgets_metadata()
        _notebook_pages.keep(item.path, record.notebook)
    return result
