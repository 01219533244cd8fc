"""Optimizers of deployments: which site each unit waits at. `base` is what all have in common."""
