"""Optimizers of functions on a box of real and whole numbers. `base` is what all have in common."""
