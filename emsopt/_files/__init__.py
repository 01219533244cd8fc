"""Find, read and write files.

`locate` finds data (in ``EMSOPT_DATA``, the package or the cache); `formats` reads CSV, JSON and GeoJSON, `sheets`
workbooks and geographic files; `columns` reads names and numbers from tables; `geography` converts coordinates and
checks outlines; `inflate` unpacks files; `pickles` reads two published pickles as data; `atomic` writes files and
folders atomically. Nothing here depends on the definition of a city.
"""
