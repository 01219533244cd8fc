"""The two jobs of the command ``emsopt``: the main job, and a city built from a log of calls."""
