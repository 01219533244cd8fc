"""Control problems: choose a set of variables to control at a cost, while the others vary at random.

`problem` holds the class `ControlProblem`, `marginals` the distributions of uncontrolled variables, and `ready_made`
the ready-made problems, whose objectives are in `airfoil_noise`, `plant_growth` and `ems_service`. `optimum` searches
for the best expected value of a control set.
"""
