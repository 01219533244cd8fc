"""Find, read and write files.

`locate` finds data; `formats` reads CSV, JSON, workbooks and Parquet files; `columns` reads names and numbers from
tables; `geography` reads GeoJSON and layers and converts coordinates; `pickles` reads two published pickles as data;
`atomic` writes files and folders atomically; `version` has the version of the package that wrote them.
"""
