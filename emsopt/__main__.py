"""The command ``emsopt``: find where the units of a city should wait.

``emsopt`` runs the main job on St. Paul, offline; ``emsopt --city FOLDER`` on a city saved by `City.save`;
``emsopt city CALLS STATIONS`` on a log of past calls. ``emsopt dashboard`` serves the dashboard, and
``emsopt notebooks FOLDER`` copies the notebooks.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from .errors import EmsoptError

COMMANDS = {"city": "own_city", "dashboard": "dashboard", "notebooks": "notebooks"}  # and the module of each


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0, or 2 after an error that was printed, or 130 after Ctrl-C.

    ``arguments`` defaults to ``sys.argv[1:]``. Unknown options and ``--help`` raise SystemExit, as in argparse.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may be unable to show some letters
            stream.reconfigure(errors="backslashreplace")
    try:
        options = _parse(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            options.run(options)
        print(end="", flush=True)
    except (KeyboardInterrupt, SystemError) as error:
        # A library that is interrupted while it is loaded may make a SystemError of it.
        if isinstance(error, SystemError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        print("\nInterrupted. No file was left incomplete.", file=sys.stderr)
        return 130
    except EmsoptError as error:
        print(f"emsopt: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # raised by printing; problems with files are raised as EmsoptError
        if error.filename is not None:
            raise
        # Python flushes the stream again when it exits, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader closed the pipe, as `| head` does
            print(f"emsopt: the output could not be printed: {error.strerror}. Print it elsewhere.", file=sys.stderr)
        return 2
    return 0


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in one line, without the file and line of code that issued it."""
    print(f"emsopt: warning: {message}", file=sys.stderr)


def _parse(given: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments of the command that they name; ``run`` of the result is the function to call."""
    arguments = sys.argv[1:] if given is None else list(given)
    if arguments and arguments[0] in COMMANDS:
        name = arguments.pop(0)
        command = import_module(f".commands.{COMMANDS[name]}", __package__)  # late, as Ctrl-C is caught by now
        parser = argparse.ArgumentParser(prog=f"emsopt {name}", description=command.DESCRIPTION)
    else:
        command = import_module(".commands.st_paul", __package__)
        more = (
            "For a city of your own, from a log of past calls: emsopt city --help. The dashboard in the browser: "
            "emsopt dashboard. A copy of the notebooks: emsopt notebooks FOLDER."
        )
        parser = argparse.ArgumentParser("emsopt", description="Find where units should wait.", epilog=more)
    command.add_options(parser)
    parser.set_defaults(run=command.run)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
