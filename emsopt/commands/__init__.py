"""The commands of ``emsopt`` and the module of each; without a command, `st_paul` runs.

A file has a ``DESCRIPTION``, ``add_options(parser)`` and ``run(options)``; `emsopt.__main__` loads the one asked for.
"""

COMMANDS = {"city": "own_city", "dashboard": "dashboard", "notebooks": "notebooks"}
