"""The commands of the command line, by name, and the file of each; without a name it is `st_paul`.

A file has a ``DESCRIPTION``, ``add_options(parser)`` and ``run(options)``; `emsopt.__main__` loads the one asked for.
"""

COMMANDS = {"city": "own_city", "dashboard": "dashboard", "notebooks": "notebooks"}
