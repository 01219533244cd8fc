"""Optimizers of functions on a box. `_base` holds their common base class."""
