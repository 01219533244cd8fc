"""Where files are, how they are read and written.

`locate` finds data (in ``EMSOPT_DATA``, the package or the cache); `plain` reads CSV, JSON and GeoJSON within bounds, with
`columns` and `shapes` for what is in them; `inflate` reads compressed files within bounds, and `pickles` two published ones
as data; `writing` writes files and folders whole or not at all. Nothing here knows what a city is.
"""
