"""Optimizers of deployments, which choose the site of each unit. `base` holds their common base class."""
