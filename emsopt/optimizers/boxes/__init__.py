"""Optimizers of functions on a box. `_base` contains what all of them share."""
