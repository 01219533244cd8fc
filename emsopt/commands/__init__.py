"""The jobs of the command ``emsopt``: the main job, a city built from a log of calls, dashboard and notebooks."""
