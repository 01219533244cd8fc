"""Optimizers of functions on a box of real and whole numbers. `_base` contains what all of them share."""
