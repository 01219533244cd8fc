"""What long work needs: to be seen, stopped and resumed.

`loop` runs the steps of a run; `checkpoint` keeps them in a file of `json_lines`, from which a killed run resumes.
`progress` shows how far work is, `blas_threads` distributes rows of work over threads or restricts linear algebra to one,
and `warn` warns at the caller's line.
"""
