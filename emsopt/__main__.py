"""The command ``emsopt``: find where the units of a city should wait.

``emsopt`` runs the main job on St. Paul, offline; ``emsopt --city FOLDER`` on a city that was saved;
``emsopt city CALLS STATIONS`` on a log of past calls.
"""

import argparse
import os
import sys

from .commands import main_job, own_city
from .errors import EmsoptError


def main(arguments=None):
    """Run the command; return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # an old terminal may lack letters of a name
            stream.reconfigure(errors="backslashreplace")
    options = _parse(arguments)
    try:
        options.run(options)
        print(end="", flush=True)
    except KeyboardInterrupt:
        print("\nInterrupted; nothing was written that is not complete.", file=sys.stderr)
        return 130
    except EmsoptError as error:
        print(f"emsopt: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # from printing: trouble with files ends in an EmsoptError
        if error.filename is not None:
            raise
        # What Python prints as it ends goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # one means that nobody reads on, as after `| head`
            msg = f"emsopt: the output could not be printed: {error.strerror}. Print it elsewhere."
            print(msg, file=sys.stderr)
        return 2
    return 0


def _parse(arguments):
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["city"]:
        parser = argparse.ArgumentParser(prog="emsopt city", description=own_city.DESCRIPTION)
        own_city.add_options(parser)
        parser.set_defaults(run=own_city.run)
        return parser.parse_args(arguments[1:])
    parser = argparse.ArgumentParser(
        prog="emsopt",
        description="Find where the units of a city should wait.",
        epilog="For a city of your own, from a log of past calls: emsopt city --help",
    )
    main_job.add_options(parser)
    parser.set_defaults(run=main_job.run)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
