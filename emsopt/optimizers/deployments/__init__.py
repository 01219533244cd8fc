"""Optimizers of deployments, which choose the site of each unit. `_base` holds their common base class."""
