"""Show the progress of long computations."""

from contextlib import contextmanager, nullcontext

from ..errors import InputError

_NOTHING = nullcontext(lambda done, note="", total=None: None)


def shown(progress, total, unit):
    """Return a context that yields a function of (number done, note, total) that shows progress.

    Its ``total`` is needed only if it changes during the work.

    Parameters
    ----------
    progress : bool or callable
        True shows a bar; a function is called with (done, total); False or None shows nothing.
    total : int
    unit : str
        Name of the items counted.
    """
    if progress is None or progress is False:
        return _NOTHING  # a shared instance, to save time in evaluations that take microseconds
    if progress is True:
        return _bar(total, unit)
    if callable(progress):
        return nullcontext(lambda done, note="", total=total: progress(done, total))
    raise InputError(f"`progress` must be True, False or a function of (done, total); got {progress!r}.")


@contextmanager
def _bar(total, unit):
    from tqdm import tqdm

    with tqdm(total=total, unit=unit) as bar:

        def show(done, note="", total=total):
            bar.total = total
            bar.set_postfix_str(note, refresh=False)
            bar.update(done - bar.n)

        yield show
