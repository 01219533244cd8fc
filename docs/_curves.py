"""The measured curves of the page on choosing a method, drawn from the stored studies."""

import io

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from papers.study_figures import study_curves

import emsopt as eo

SECONDS = np.geomspace(1e-5, 100, 71)  # per evaluation


def time_to_one_percent():
    """Draw the time until a search of 20 units among 50 sites is within 1 % of the best known, by evaluation cost."""
    grid = eo.datasets.load_study("location_grid").query("n_sites == 50 and units == 20")
    long = eo.datasets.load_study("location_long")  # methods without a model, with as many evaluations as they need
    runs = pd.concat([grid[~grid["method"].isin(long["method"])], long])
    runs["best_known"] = runs.groupby("seed")["best_known"].transform("min")
    near = eo.study.outcomes(runs, within=1.0)
    often = near.groupby("method")["reached"].mean() > 0.5  # a median needs more than half of the runs
    fig = Figure(figsize=(9, 5), layout="constrained")
    ax = fig.subplots()
    for k, (method, ends) in enumerate(near[near["method"].map(often)].groupby("method")):
        total = [(ends["evaluations"] * cost + ends["cpu_seconds"]).median() for cost in SECONDS]
        ax.plot(SECONDS, total, label=method, linestyle=("-", "--", ":", "-.")[k % 4], lw=2)
    ax.set(xscale="log", yscale="log", xlabel="Seconds per evaluation", ylabel="Median seconds until within 1 %")
    ax.legend()
    ax.grid(alpha=0.3)
    return fig


def functions_on_boxes():
    """Draw the median regret of the methods on six functions without noise."""
    return study_curves(eo.datasets.load_study("boke_noise_free_curves"), lowest=1e-8)[0]


def drawn():
    """Return the curves as PNG files by name."""
    files = {}
    for draw in (time_to_one_percent, functions_on_boxes):
        buffer = io.BytesIO()
        draw().savefig(buffer, format="png", dpi=80)
        files[f"curves/{draw.__name__}.png"] = buffer.getvalue()
    return files
