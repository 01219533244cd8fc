"""The commands of ``emsopt``, by the table `COMMANDS` of ``emsopt.__main__``; without a command, `st_paul` runs.

Each module has ``add_options(parser)`` and ``run(options)`` and, except `st_paul`, a ``DESCRIPTION``.
"""
