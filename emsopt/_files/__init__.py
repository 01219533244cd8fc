"""Find, read and write files.

`locate` finds data (in ``EMSOPT_DATA``, the package or the cache); `formats` reads CSV, JSON and GeoJSON with
size limits, `sheets` workbooks and geographic files; `columns` reads names and numbers from tables; `geography`
converts coordinates and checks outlines; `inflate` reads compressed files with size limits; `pickles` reads two
published pickles as data; `atomic` writes files and folders atomically. Nothing here depends on the definition of a
city.
"""
