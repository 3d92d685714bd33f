"""What an estimator is: a part with a ``step``, and the memory that it declares.

An estimator is a named tuple. Its fields annotated ``int`` or ``float`` are parameters of the algorithm, by name; every
other field is an array that ``memory`` declares. Its methods:

* ``step(self, world, point, cursor, u, rates, d, A)`` makes update number u (from 0): it draws what it needs
  (``draw(world.stream, world.run, cursor, t)``), moves the point, and returns whether the move was made and the new
  cursor.
* ``begin(self, world, point, cursor, u, d, A)`` comes before update 0, and before every update that ``next_begin``
  names: a new batch, say. It returns the new cursor.
* ``next_begin(self, u)``: the first update, u or later, that ``begin`` comes before.
* ``answer(self, point, out, d)``: the vector that is recorded, watched and drawn as the output; without it θ.
* ``memory(n)``, a static method: its arrays, for a problem of the sizes ``n``.

Two more static methods say where it runs:

* ``needs()``, what it needs of the data beyond the next sample: see :mod:`gqlab.estimators.needs`.
* ``drifts()``: it reads and moves θ and ω through the functions of ``rules.vectors`` and ``rules.point`` alone, so that
  on sparse features they can be scaled vectors (False), or lagged ones that drift along a mean (True), and a step costs
  as much as features have entries. Without it they are arrays. ``sparse_form()`` is another estimator that does the
  same on such vectors, and ``kept_form()`` one over samples that an agent keeps: see :mod:`gqlab.estimators.kept`.

All but ``step`` and ``memory`` have a default. Arrays that must survive from one call to the next (``resume``) are
declared with ``kept=True``; everything else must be rebuilt by ``begin``.
"""

from __future__ import annotations

from gqlab.rules.dispatch import by_type
from gqlab.rules.vectors import entry_of

#: No run gets this far.
NEVER = 1 << 62


@by_type
def begin(self, world, point, cursor, u, d, A):
    """Estimator: what comes before update u, where ``next_begin`` names it."""
    return cursor


@by_type
def next_begin(self, u):
    """Estimator: the first update, u or later, that ``begin`` comes before."""
    return 0 if u == 0 else NEVER


@by_type
def step(self, world, point, cursor, u, rates, d, A):
    """Estimator: update number u."""


@by_type
def answer(self, point, out, d):
    """Estimator: the vector that it offers as θ, into ``out``."""
    for i in range(d):
        out[i] = entry_of(point.theta, i)


@by_type
def move(self, samples, x, point, rates, d, A):
    """Estimator: the move for a given sample, for estimators that use one sample at a time."""
