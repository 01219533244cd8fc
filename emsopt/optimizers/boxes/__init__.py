"""Optimizers of functions on a box of real and whole numbers. The module `base` contains what all of them share."""
