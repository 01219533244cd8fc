"""Show how far long work has got, the way the caller wants it."""

from contextlib import contextmanager

from .errors import InputError


@contextmanager
def shown(progress, total, unit):
    """Hand out a function of (number done, a note on the state, total) that shows progress.

    Its ``total`` is left out unless it changes as the work goes on.

    Parameters
    ----------
    progress : bool or callable
        True shows a bar; a function is called with (done, total); False or None shows nothing.
    total : int
    unit : str
        What is counted.
    """
    if progress is False or progress is None:
        yield lambda done, note="", total=total: None
    elif progress is True:
        from tqdm import tqdm

        with tqdm(total=total, unit=unit) as bar:

            def show(done, note="", total=total):
                bar.total = total
                bar.set_postfix_str(note, refresh=False)
                bar.update(done - bar.n)

            yield show
    elif callable(progress):
        yield lambda done, note="", total=total: progress(done, total)
    else:
        msg = f"`progress` must be True, False or a function of (done, total); got {progress!r}."
        raise InputError(msg)
