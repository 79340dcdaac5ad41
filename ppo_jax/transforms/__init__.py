"""Gradient transformations in the manner of optax.

`optax.inject_hyperparams` takes functions for schedules: those that a transformation is
given, such as `statistic` and `combine`, have to be among its `static_args`.
"""
