"""Optimizers of control problems, where each play has a cost: learners, their model, the loop and regrets."""
