"""What long work needs: to be seen, stopped and resumed.

`checkpoint` keeps the steps of a run in a file of `json_lines`, from which a killed run goes on; `progress` shows how far
work is; `threads` spreads rows of work over threads, or keeps linear algebra to one; `warn` warns at the caller's line.
"""
