"""LinearQ: action values that are linear in the features of a state, and the policy that they make."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab import operators
from gqlab.encoders import as_encoder, encoder_from_dict
from gqlab.encoders.foreign import Foreign
from gqlab.learn.fit.log_table import probabilities_of
from gqlab.operators import FixedPolicy, Greedy, Operator
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import read_arrays, write_arrays

#: What a saved model says of itself.
FORMAT = "gqlab.LinearQ 1"


class Evaluation(NamedTuple):
    """The episodes of a policy: their returns, not discounted, with mean and standard deviation."""

    mean: float
    std: float
    returns: FloatArray  # (n_episodes,)
    lengths: NDArray[np.int64]  # (n_episodes,)


@dataclass(frozen=True)
class LinearQ:
    """Q(s, a) = φ(s)ᵀθ_a, with the encoder that makes φ and the operator that makes a policy of Q.

    Parameters
    ----------
    theta : (n_actions, K) array
        One row of weights for each action.
    encoder : encoder
        A fitted one, such as :class:`gqlab.TileCoder`, or any fitted scikit-learn transformer.
    target : Operator
        The policy-improvement operator that Q was learned with.
    discount : float
    history : mapping of arrays
        What learning recorded on the way.
    metadata : mapping
        How the model came about, ready for JSON.
    offset : float
        What is added to all action values.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> model = gq.LinearQ([[0.0, 1.0], [1.0, 0.0]], gq.Identity(bias=False, scale=False).fit([[0, 0]]))
    >>> model.q([0.5, 0.25])
    array([0.25, 0.5 ])
    >>> model.predict([0.5, 0.25]), model.predict([[0.5, 0.25], [0.0, 1.0]])
    (1, array([1, 0]))
    """

    theta: FloatArray
    encoder: Any
    target: Operator = field(default_factory=Greedy)
    discount: float = 0.99
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    offset: float = 0.0

    def __post_init__(self) -> None:
        encoder = as_encoder(self.encoder)
        theta = checks.array("theta", self.theta, (None, encoder.n_features_out_))
        checks.finite("theta", theta)
        checks.instance("target", self.target, Operator, "an operator such as gqlab.Greedy()")
        object.__setattr__(self, "encoder", encoder)
        object.__setattr__(self, "theta", checks.frozen(theta))
        object.__setattr__(self, "discount", checks.number("discount", self.discount, least=0, below=1))
        object.__setattr__(self, "offset", checks.number("offset", self.offset))

    def __repr__(self) -> str:
        return f"LinearQ({self.n_actions} actions, {self.encoder.n_features_out_} features of a state)"

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return len(self.theta)

    def q(self, observation: ArrayLike) -> FloatArray:
        """The action values of one observation, (n_actions,), or of several, (n, n_actions)."""
        rows, single = self._rows(observation)
        values = self._values(rows)
        return values[0] if single else values

    def policy(self, observation: ArrayLike) -> FloatArray:
        """The probabilities of the actions under the target's policy: (n_actions,), or (n, n_actions)."""
        rows, single = self._rows(observation)
        values = self._policy(rows, self._values(rows))
        return values[0] if single else values

    def _policy(self, rows: FloatArray, q: FloatArray) -> FloatArray:
        """The target's policy at observations with these action values."""
        if self.metadata.get("evaluates") == "a function of observations":
            raise ValueError("policy: this model evaluates a function of observations, which it does not hold: give it")
        given = probabilities_of(self.target, rows, self.n_actions)
        return self.target.policy(q) if given is None else given

    def predict(self, observation: ArrayLike, deterministic: bool = True, seed: int | None = None) -> Any:
        """The action for one observation, or those for several, (n,).

        The first of the best actions, or with ``deterministic=False`` one drawn from the target's policy.
        """
        rows, single = self._rows(observation)
        values = self._values(rows)
        if deterministic:
            actions = values.argmax(axis=1)
        else:
            cumulated = np.cumsum(self._policy(rows, values), axis=1)
            chance = np.random.default_rng(seed).random((len(rows), 1)) * cumulated[:, -1:]
            actions = np.minimum((cumulated <= chance).sum(axis=1), self.n_actions - 1)
        return int(actions[0]) if single else actions

    def value(self, observation: ArrayLike, policy: Any = None) -> Any:
        """Σ_a π(a|s) Q(s, a) of one observation, or of several, (n,): under the target's policy, or a given one.

        ``policy`` is a function of observations (n, size) that gives probabilities (n, n_actions), such as the one that
        :func:`gqlab.fit` evaluated.
        """
        rows, single = self._rows(observation)
        q = self._values(rows)
        if policy is None:
            p = self._policy(rows, q)
        else:
            p = checks.array("policy(observation)", policy(rows), q.shape)
            checks.probabilities("policy(observation)", p)
        values = (p * q).sum(axis=1)
        return float(values[0]) if single else values

    def _values(self, rows: FloatArray) -> FloatArray:
        """The action values of observations, (n, n_actions)."""
        return action_values(self.encoder, self.theta, rows) + self.offset

    def _rows(self, observation: ArrayLike) -> tuple[FloatArray, bool]:
        given = checks.numbers("observation", observation)
        n_in = self.encoder.n_features_in_
        single = given.shape == (n_in,) or (n_in == 1 and given.ndim == 0)
        rows = given.reshape(1, -1) if single else given
        if rows.ndim != 2 or rows.shape[1] != n_in:
            raise ValueError(f"observation has shape {given.shape}, expected ({n_in},) or (n, {n_in})")
        checks.finite("observation", rows)
        return rows, single

    def evaluate(
        self, env: Any, n_episodes: int = 100, deterministic: bool = True, seed: int = 1_000_000
    ) -> Evaluation:
        """Returns of so many episodes in an environment, each begun with a seed of its own.

        Examples
        --------
        >>> import gqlab as gq
        >>> encoder = gq.TileCoder(n_tilings=4, bins=4, low=[-1.2, -0.07], high=[0.6, 0.07]).fit([[0, 0]])
        >>> gq.LinearQ(np.zeros((3, encoder.n_features_out_)), encoder).evaluate("MountainCar-v0", n_episodes=2).mean
        -200.0
        """
        from gqlab.learn.environments import play

        n = checks.integer("n_episodes", n_episodes, least=1)
        return play(self, env, n, deterministic, checks.integer("seed", seed, least=0, below=2**63))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as an .npz file with a JSON header, whole or not at all; no pickle."""
        header = {
            "format": FORMAT,
            "encoder": encoder_to_dict(self.encoder),
            "target": operator_to_dict(self.target),
            "discount": self.discount,
            "offset": self.offset,
            "metadata": dict(self.metadata),
        }
        arrays = {f"history.{name}": np.asarray(values) for name, values in self.history.items()}
        if isinstance(self.target, FixedPolicy):
            arrays["policy"] = self.target.table
        write_arrays(
            Path(checks.path("path", path)), {"header": np.array(json.dumps(header)), "theta": self.theta, **arrays}
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], encoder: Any = None) -> LinearQ:
        """The model that :meth:`save` wrote; ``encoder`` where it had one that cannot be saved."""
        arrays = read_arrays(checks.path("path", path))
        header = read_header(arrays, FORMAT, path, ("encoder", "target", "discount", "metadata"))
        return cls(
            theta=arrays["theta"],
            encoder=saved_encoder(header, encoder),
            target=FixedPolicy(arrays["policy"]) if "policy" in arrays else operator_from_dict(header["target"]),
            discount=header["discount"],
            history={name.removeprefix("history."): v for name, v in arrays.items() if name.startswith("history.")},
            metadata=header["metadata"],
            offset=header.get("offset", 0.0),
        )


def read_header(arrays: Mapping[str, NDArray[Any]], wanted: str, path: Any, keys: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON header of a file; ``ValueError`` where it is of another kind."""
    try:
        header = json.loads(str(arrays["header"]))
        if header["format"] == wanted and all(key in header for key in keys):
            return dict(header)
    except (KeyError, TypeError, json.JSONDecodeError):
        pass
    raise ValueError(f"{os.fspath(path)} is not a file of {wanted.split()[0]}")


def action_values(encoder: Any, theta: FloatArray, rows: FloatArray) -> FloatArray:
    """Q of observations (n, n_in), (n, n_actions)."""
    encoded = encoder.encode_batch(rows)
    if encoder.kind == "dense":
        return encoded @ theta.T
    out = np.empty((len(rows), len(theta)))
    for a, weights in enumerate(theta):
        out[:, a] = weights[encoded].sum(axis=1)
    return out * encoder.value_


def encoder_to_dict(encoder: Any) -> dict[str, Any] | None:
    """An encoder of gqlab, ready for JSON; None for another transformer, which is not saved."""
    return None if isinstance(encoder, Foreign) else encoder.to_dict()


def saved_encoder(header: Mapping[str, Any], given: Any) -> Any:
    """The encoder that a file holds, or the one that is given in its place."""
    if given is not None:
        return given
    if header["encoder"] is None:
        raise ValueError("encoder is missing: the file was saved with a transformer that is not gqlab's; give it again")
    return encoder_from_dict(header["encoder"])


def operator_to_dict(target: Operator) -> dict[str, Any]:
    """An operator with numbers alone, ready for JSON."""
    values: Any = target
    if not is_dataclass(values) or isinstance(values, type):
        return {"name": "Greedy"}  # a policy that was evaluated is not part of Q; what Q offers is the greedy one
    return {"name": type(target).__name__, **asdict(values)}


def operator_from_dict(values: Mapping[str, Any]) -> Operator:
    """What :func:`operator_to_dict` wrote."""
    known = {kind.__name__: kind for kind in operators.OPERATORS}
    if values.get("name") not in known:
        raise ValueError(f"unknown operator {values.get('name')!r}, expected one of {', '.join(known)}")
    return known[values["name"]](**{name: value for name, value in values.items() if name != "name"})
