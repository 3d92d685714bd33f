from gqlab.theory.choose import schedule, step_sizes
__all__ = ["schedule", "step_sizes"]
