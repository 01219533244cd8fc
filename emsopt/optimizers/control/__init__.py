"""Optimizers of control problems, in which every evaluation (a play) has a cost: learners, model, search, regrets."""
