"""Control problems: sets of variables to control at a cost, while the others vary.

`problem` is the class; `marginals` say how uncontrolled variables vary; `examples` and the modules beside it make problems.
"""
