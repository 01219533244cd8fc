"""Find, read and write files.

`locate` finds data; `formats` reads CSV, JSON and GeoJSON, packed or not, `sheets` workbooks and geographic files;
`columns` reads names and numbers from tables; `geography` converts coordinates; `pickles` reads two published pickles
as data; `atomic` writes files and folders atomically. Nothing here depends on the definition of a city.
"""
