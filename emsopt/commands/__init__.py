"""The commands of ``emsopt`` and the module of each; without a command, `st_paul` runs.

Each module has ``add_options(parser)`` and ``run(options)`` and, except `st_paul`, a ``DESCRIPTION``.
"""

COMMANDS = {"city": "own_city", "dashboard": "dashboard", "notebooks": "notebooks"}
