"""What the command ``emsopt`` runs: the main job, and a city from a log of calls."""
