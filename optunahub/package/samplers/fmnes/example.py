"""Find fifty parameters of very different importance with CR-FM-NES."""

import optuna
import optunahub

DIM = 50


def objective(trial: optuna.Trial) -> float:
    """Return an ellipsoid function with its minimum at 1."""
    x = [trial.suggest_float(f"x{i:02d}", -5, 5) for i in range(DIM)]
    return sum(1000 ** (i / (DIM - 1)) * (value - 1) ** 2 for i, value in enumerate(x))


if __name__ == "__main__":
    module = optunahub.load_module(package="samplers/fmnes")
    study = optuna.create_study(sampler=module.FmnesSampler(seed=1))
    study.optimize(objective, n_trials=2000)
    print(study.best_value)
