"""Control problems: choose a set of variables to control at a cost, while the others vary at random.

`problem` holds the class `ControlProblem`, `marginals` the distributions of uncontrolled variables, and `ready_made`
the ready-made problems.
"""
