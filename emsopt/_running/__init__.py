"""Progress bars, time limits and checkpoints for long computations.

`loop` runs the steps of a run; `checkpoint` stores them in a file of `json_lines`, from which a stopped run resumes.
`progress` shows a bar, `workers` distributes calls over processes, `blas_threads` distributes rows of work over threads
or restricts linear algebra to one thread, `warn` issues warnings that point to the
caller's line, and `compiled` finds a place for compiled code.
"""
