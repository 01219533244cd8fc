"""Equation (8) by hand and by adding up forces, the direction of both efficiencies, and standardised contexts."""

import numpy as np
import pytest
from refusals import refused

from emsopt.roads import energy as car
from emsopt.roads.energy import edge_energy, standardize_columns


def test_hand_values_on_the_flat_and_on_a_slope():
    """1830 kg · 9.82 · 0.01 · 100 m = 17970.6 J; 0.5 · 0.35 · 2.6 · 1.2 · 100 · 13.89² = 10534.09 J.

    With 10 m on 100 m of road, down 0.96 of what is left of the potential energy, and no more; up all forces, over 0.98.
    Divided by 0.96 it would be more than what is left.
    """
    climb, rolling, air = 1830 * 9.82 * 10, 17970.6, 10534.09  # J
    flat, down, up = edge_energy([100.0] * 3, [13.89] * 3, np.arcsin([0, -0.1, 0.1]))
    others = rolling * np.sqrt(0.99) + air
    assert (round(flat, 3), flat) == (8.080, pytest.approx((rolling + air) / (3600 * 0.98), abs=2e-6))
    assert down == pytest.approx(-0.96 * (climb - others) / 3600, abs=2e-6)
    assert up == pytest.approx((climb + others) / (3600 * 0.98), abs=2e-6)
    assert abs(down) <= (climb - others) / 3600 < abs(down) / 0.96**2


def test_parameters_are_table_2():
    assert (car.MASS_KG, car.ROLLING_COEFFICIENT, car.FRONT_AREA_M2, car.DRAG_COEFFICIENT) == (1830, 0.01, 2.6, 0.35)
    assert (car.DRIVE_EFFICIENCY, car.RECUPERATION_EFFICIENCY) == (0.98, 0.96)
    assert (car.GRAVITY, car.AIR_DENSITY) == (9.82, 1.2)


def test_contexts_have_unit_variance_and_a_constant_column_stays_finite():
    rng = np.random.default_rng(1)
    columns = np.column_stack([rng.lognormal(4, 1, 301), np.full(301, 13.89), rng.normal(size=301), np.zeros(301)])
    scaled = standardize_columns(columns)
    assert np.allclose(scaled.var(axis=0), [1, 0, 1, 0], atol=1e-12)
    assert np.abs(scaled.mean(axis=0)).max() < 1e-12
    assert np.allclose(standardize_columns([[1e-9], [3e-9]]), [[-1], [1]])
    refused("`lengths` must be greater than 0", edge_energy, [0.0], [10.0])
    refused("not degrees", edge_energy, [10.0], [10.0], [5.0])
