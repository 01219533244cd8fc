"""Progress bars, time limits, checkpoints and parallel work of long computations.

`loop` runs the steps of a run and shows a bar; `checkpoint` stores them in a file of `json_lines`, from which a stopped
run resumes. `parallel` uses several cores; `study`, which users know as `emsopt.study`, runs a task over many cases;
`compiled` chooses the folder for compiled code.
"""
