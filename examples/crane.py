"""A simulator as one inherits them: a crane's trolley moves a load, and the program has its faults.

    python crane.py FILE    (or on its input) accelerations in m/s^2, one to a line

It prints how badly the load was moved by 4 m in 8 s: its distance from the goal on the way, how
far from it and how fast it still is at the end, and the effort. It fails in two ways:

- it stops with an error where the load swings by more than its formulas are good for;
- it hangs where the trolley leans against an end of its rail: at each impact it goes back to the
  instant of contact, and from there it never gets away.
"""

import math
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

GOAL, SECONDS, STEP = 4.0, 8.0, 0.05
RAIL = (-0.3, 4.3)  # m; its ends are springy
SAFE = 0.2  # rad; the formulas hold for so much and no more
State = tuple[float, float, float, float]  # trolley's place and speed, cable's angle and its speed
GRAVITY, CABLE, DAMPING, BOUNCE = 9.81, 3.0, 0.05, 0.5


def main() -> None:
    with open(sys.argv[1]) if len(sys.argv) > 1 else sys.stdin as file:
        controls = [float(line) for line in file]
    print(deque(simulate(controls), maxlen=1).pop())


def simulate(controls: list[float]) -> Iterator[Any]:
    """Yields (time, trolley, load) as it goes along, and the cost at the end."""
    t, way, effort = 0.0, 0.0, 0.0
    state = (0.0, 0.0, 0.0, 0.0)
    while t < SECONDS - 1e-9:
        h = min(STEP, SECONDS - t)
        a = acceleration(controls, t)
        new = runge_kutta(controls, t, state, h)
        if not RAIL[0] <= new[0] <= RAIL[1]:  # back to the instant of the impact
            end = RAIL[new[0] > RAIL[1]]
            h *= (end - state[0]) / (new[0] - state[0])
            _, v, angle, swing = runge_kutta(controls, t, state, h)
            swing += (1 + BOUNCE) * v / (CABLE * math.cos(angle))  # the load keeps its speed
            new = (end, -BOUNCE * v, angle, swing)
        x, _, angle, swing = state = new
        if abs(angle) > SAFE:
            raise RuntimeError(f"the load swings by {angle:.2f} rad after {t:.2f} s")
        load = x + CABLE * math.sin(angle)
        way += h * (load - GOAL) ** 2
        effort += h * a**2
        t += h
        yield t, x, load
    speed = state[1] + CABLE * math.cos(angle) * swing
    yield way / SECONDS + 10 * ((load - GOAL) ** 2 + speed**2 + CABLE**2 * angle**2) + 0.02 * effort


def acceleration(controls: list[float], t: float) -> float:
    """Linear between the controls."""
    place = t / SECONDS * (len(controls) - 1)
    k = min(int(place), len(controls) - 2)
    return controls[k] + (place - k) * (controls[k + 1] - controls[k])


def runge_kutta(controls: list[float], t: float, y: State, h: float) -> State:
    k1 = slope(controls, t, y)
    k2 = slope(controls, t + h / 2, ahead(y, h / 2, k1))
    k3 = slope(controls, t + h / 2, ahead(y, h / 2, k2))
    k4 = slope(controls, t + h, ahead(y, h, k3))
    for k, weight in ((k1, 1), (k2, 2), (k3, 2), (k4, 1)):
        y = ahead(y, h / 6 * weight, k)
    return y


def ahead(y: State, h: float, k: State) -> State:
    return y[0] + h * k[0], y[1] + h * k[1], y[2] + h * k[2], y[3] + h * k[3]


def slope(controls: list[float], t: float, y: State) -> State:
    _, v, angle, swing = y
    a = acceleration(controls, t)
    torque = GRAVITY * math.sin(angle) + a * math.cos(angle)
    return v, a, swing, -torque / CABLE - DAMPING * swing


if __name__ == "__main__":
    main()
