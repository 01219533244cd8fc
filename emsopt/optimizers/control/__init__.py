"""Choose which variables to control at unknown cost: learners, their model of the values, the loop and regrets."""
