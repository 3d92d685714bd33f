"""LinearQ: action values that are linear in the features of a state, and the policy that they make."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gqlab.data.schema import Label, Schema
from gqlab.encoders import Flattener, as_encoder, encoder_from_dict
from gqlab.encoders.actions import Actions
from gqlab.encoders.foreign import Foreign
from gqlab.encoders.registry import own_copy
from gqlab.encoders.spaces import Layout, layout_of
from gqlab.learn.playing import EVALUATION, Evaluation, play
from gqlab.operators import FixedPolicy, Greedy, Operator
from gqlab.operators.saved import operator_from_dict, operator_to_dict
from gqlab.policies import Policy, as_policy
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import read_arrays, write_arrays
from gqlab.support.notebook import html_card
from gqlab.support.words import counted

#: What a saved model says of itself.
FORMAT = "gqlab.LinearQ 1"


@dataclass(frozen=True)
class LinearQ(Policy):
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
        How the model came about, ready for JSON. ``action_labels`` in it, and ``observation_columns``, come from data
        whose actions are text, and whose columns have names: ``like=`` of :meth:`gqlab.Transitions.from_csv` reads
        another file as this model needs it.
    space : gymnasium.Space, optional
        Of the observations, where they are no vectors: with it a model takes dictionaries, tuples, arrays of any shape.
    offset : float
        What is added to all action values.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> model = gq.LinearQ([[0.0, 1.0], [1.0, 0.0]], gq.Identity(bias=False, scale=False).fit([[0, 0]]))
    >>> model.q([0.5, 0.25])
    array([0.25, 0.5 ])
    >>> action, _ = model.predict([0.5, 0.25])  # the pair (action, state) of Stable-Baselines3
    >>> action, model.probabilities([[0.5, 0.25], [0.0, 1.0]])
    (1, array([[0., 1.],
               [1., 0.]]))
    """

    theta: FloatArray
    encoder: Any
    target: Operator = field(default_factory=Greedy)
    discount: float = 0.99
    history: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    space: Any = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        encoder = own_copy(as_encoder(self.encoder))
        theta = checks.array("theta", self.theta, (None, encoder.n_features_out_))
        checks.finite("theta", theta)
        checks.instance("target", self.target, Operator, "an operator such as gqlab.Greedy()")
        object.__setattr__(self, "space", _layout(self.space, encoder.n_features_in_))
        object.__setattr__(self, "encoder", encoder)
        object.__setattr__(self, "theta", checks.frozen(theta))
        object.__setattr__(self, "discount", checks.number("discount", self.discount, least=0, below=1))
        object.__setattr__(self, "offset", checks.number("offset", self.offset))
        checks.instance("metadata", self.metadata, Mapping, "a mapping, ready for JSON")
        checks.instance("history", self.history, Mapping, "a mapping of arrays")
        if self.action_labels is not None and len(self.action_labels) != len(theta):
            raise ValueError(
                f"metadata has {len(self.action_labels)} labels of actions, and theta {counted(len(theta), 'action')}"
            )
        if self._actions is not None and self._actions.n != len(theta):
            raise ValueError(f"metadata has {counted(self._actions.n, 'action')}, and theta {len(theta)}")

    def __repr__(self) -> str:
        features = counted(self.encoder.n_features_out_, "feature")
        return f"LinearQ({counted(self.n_actions, 'action')}, {features} of a state)"

    def _repr_html_(self) -> str:
        """For notebooks."""
        recipe = self.metadata.get("env")
        labels = None if self.action_labels is None else ", ".join(map(str, self.action_labels))
        facts = {
            "learned in": recipe["id"] if isinstance(recipe, Mapping) else None,
            "actions": self.n_actions if labels is None else f"{self.n_actions}: {labels}",
            "an observation": counted(self.observation_size, "number"),
            "features": f"{self.encoder.n_features_out_:,} by {self.encoder!r}",
            "target": repr(self.target),
            "discount": self.discount,
        }
        return html_card("LinearQ", {name: value for name, value in facts.items() if value is not None})

    def __getattr__(self, name: str) -> Any:
        if name == "policy":
            raise AttributeError("LinearQ.policy is called LinearQ.probabilities now")
        raise AttributeError(f"'LinearQ' object has no attribute {name!r}")

    @property
    def n_actions(self) -> int:  # type: ignore[override]
        """The number of actions."""
        return len(self.theta)

    @functools.cached_property
    def schema(self) -> Schema:
        """What the numbers of actions and observations stand for in the data that the model was fitted to."""
        return Schema.from_dict(self.metadata)

    @property
    def action_labels(self) -> tuple[Label, ...] | None:
        """What the actions are called; None where they are numbers."""
        return self.schema.action_labels

    @functools.cached_property
    def _actions(self) -> Actions | None:
        """What the environment takes in place of the numbers of actions."""
        found = self.metadata.get("actions")
        return None if found is None else Actions.from_dict(found)

    @property
    def observation_size(self) -> int:  # type: ignore[override]
        """The numbers of an observation."""
        return int(self.encoder.n_features_in_)

    def q(self, observation: ArrayLike) -> FloatArray:
        """The action values of one observation, (n_actions,), or of several, (n, n_actions)."""
        rows, single = self._rows(observation)
        values = self._q(rows)
        return values[0] if single else values

    def _q(self, rows: FloatArray) -> FloatArray:
        """Q of rows that are checked: of one, as when acting, without the costs of a batch."""
        if len(rows) != 1:
            return action_values(self.encoder, self.theta, rows) + self.offset
        encoded = self.encoder.encode(rows[0])
        if self.encoder.kind == "dense":
            return (self.theta @ encoded)[None] + self.offset
        return (self.theta[:, encoded].sum(axis=1) * self.encoder.value_)[None] + self.offset

    def probabilities(self, observations: ArrayLike) -> FloatArray:
        """The probabilities of the actions under the target's policy: (n_actions,), or (n, n_actions)."""
        rows, single = self._rows(observations)
        values = self._own.probabilities(rows)
        return values[0] if single else values

    @property
    def _own(self) -> Policy:
        """The target's policy at these action values."""
        if self.metadata.get("evaluates") == "a policy":
            raise ValueError(
                "this model has the values of a policy, but not the policy itself: ask that one, or give it"
            )
        return as_policy("target", self.target, self.n_actions, self.observation_size, self._q)

    def best(self, observations: ArrayLike) -> NDArray[np.int64]:
        """The first of the best actions of observations (n, size): (n,)."""
        return self._q(self._rows(observations)[0]).argmax(axis=1)

    def predict(
        self,
        observation: ArrayLike,
        *,
        deterministic: bool = True,
        state: Any = None,
        episode_start: Any = None,
        seed: int | None = None,
    ) -> tuple[Any, None]:
        """(action, None) for one observation, or the actions of several, (n,), and None: as Stable-Baselines3 has it.

        The first of the best actions, or with ``deterministic=False`` one drawn from the target's policy, with ``seed``
        where one is given. ``state`` and ``episode_start`` are not read: a linear policy has no memory. Where the
        actions have labels an action is its label, and where the environment's actions are not 0, 1, … it is what the
        environment takes; :meth:`best` has the numbers.
        """
        rows, single = self._rows(observation)
        if seed is not None:
            seed = checks.integer("seed", seed, least=0)
        actions = self.best(rows) if deterministic else self.draw(rows, np.random.default_rng(seed))[0]
        if self.action_labels is not None:
            names = [self.action_labels[action] for action in actions]
            return (names[0] if single else np.array(names)), None
        if self._actions is not None:
            return self._actions.of(actions[0] if single else actions), None
        return (int(actions[0]) if single else actions), None

    def value(self, observation: ArrayLike, policy: Any = None) -> Any:
        """Σ_a π(a|s) Q(s, a) of one observation, or of several, (n,): under the target's policy, or a given one.

        ``policy`` is any policy, such as the one that :func:`gqlab.fit` evaluated, or an operator on these values.
        """
        rows, single = self._rows(observation)
        sizes = self.n_actions, self.observation_size
        asked = self._own if policy is None else as_policy("policy", policy, *sizes, self._q)
        values = (asked.probabilities(rows) * self._q(rows)).sum(axis=1)
        return float(values[0]) if single else values

    def _rows(self, observation: Any) -> tuple[FloatArray, bool]:
        if self.space is not None:
            return self.space.rows(observation)
        n_in = self.encoder.n_features_in_
        plain = type(observation) is np.ndarray and observation.dtype == np.float64
        given = observation if plain else checks.numbers("observation", observation)
        single = given.shape == (n_in,) or (n_in == 1 and given.ndim == 0)
        rows = given.reshape(1, -1) if single else given
        if rows.ndim != 2 or rows.shape[1] != n_in:
            raise ValueError(f"observation has shape {given.shape}, expected ({n_in},) or (n, {n_in})")
        checks.finite("observation", rows)
        return rows, single

    def plot(
        self, over: Any = None, *, at: Mapping[Any, float] | None = None, bounds: Any = None, ax: Any = None
    ) -> Any:
        """A picture of what was learned: values and greedy actions.

        Of an environment whose states are cells (Frozen Lake, Cliff Walking) the grid, with arrows. Else the values
        over one or two numbers of an observation.

        Parameters
        ----------
        over : name, number, or a pair of these, optional
            The numbers of an observation that are varied. Default: the first two.
        at : mapping, optional
            Values of the others, by name or number. Default: their medians in the data of a fit, or in what the policy
            sees in its environment; where neither is known, the middle of the encoder's bounds.
        bounds : (low, high), or one for each, optional
            Default: the encoder's.
        ax : matplotlib Axes, or two of them, optional
            Two numbers take two: for values, and for actions.

        Returns
        -------
        Axes, or an array of two

        Examples
        --------
        >>> import gqlab as gq
        >>> model = gq.LinearQ([[0.0, 1.0], [1.0, 0.0]], gq.Identity(bias=False, scale=False).fit([[0, 0], [1, 1]]))
        >>> [axes.get_title("left") for axes in model.plot(bounds=[(0, 1), (0, 1)])]
        ['value', 'greedy action']
        """
        from gqlab.learn.pictures import plot_model

        return plot_model(self, over, at, bounds, ax)

    def evaluate(
        self, env: Any, n_episodes: int = 100, *, deterministic: bool = True, seed: int = EVALUATION
    ) -> Evaluation:
        """Returns of ``n_episodes`` episodes in an environment, each with a seed of its own.

        The actions are those of :meth:`predict`: the best ones, or with ``deterministic=False`` drawn from the target's
        policy.

        Examples
        --------
        >>> import gqlab as gq
        >>> encoder = gq.TileCoder(n_tilings=4, bins=4, low=[-1.2, -0.07], high=[0.6, 0.07]).fit([[0, 0]])
        >>> gq.LinearQ(np.zeros((3, encoder.n_features_out_)), encoder).evaluate("MountainCar-v0", n_episodes=2).mean
        -200.0
        """
        return play(self, env, n_episodes, deterministic=deterministic, seed=seed)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as an .npz file with a JSON header, whole or not at all; no pickle."""
        header = {
            "format": FORMAT,
            "encoder": encoder_to_dict(self.encoder),
            "target": operator_to_dict(self.target),
            "discount": self.discount,
            "offset": self.offset,
            "metadata": dict(self.metadata),
            "space": None if self.space is None else self.space.parts,
        }
        arrays = {f"history.{name}": np.asarray(values) for name, values in self.history.items()}
        arrays |= probes_of(self.encoder)
        if isinstance(self.target, FixedPolicy):
            arrays["policy"] = self.target.table
        write_arrays(
            Path(checks.path("path", path)), {"header": np.array(json.dumps(header)), "theta": self.theta, **arrays}
        )

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], encoder: Any = None, *, operators: Sequence[type[Operator]] | None = None
    ) -> LinearQ:
        """The model that :meth:`save` wrote.

        Parameters
        ----------
        path : path
        encoder : encoder, optional
            Where it had one that is not gqlab's: it must make the features that the file holds of a few rows. One that
            is not fitted is fitted to these rows, which is enough where fitting learns nothing from data.
        operators : list of classes, optional
            The class of its target, where that is an operator of your own: no file has a module imported.
        """
        arrays = read_arrays(checks.path("path", path))
        header = read_header(arrays, FORMAT, path, ("encoder", "target", "discount", "metadata"))
        return cls(
            theta=arrays["theta"],
            encoder=saved_encoder(header, arrays, encoder),
            target=FixedPolicy(arrays["policy"])
            if "policy" in arrays
            else operator_from_dict(header["target"], operators),
            discount=header["discount"],
            history={name.removeprefix("history."): v for name, v in arrays.items() if name.startswith("history.")},
            metadata=header["metadata"],
            offset=header.get("offset", 0.0),
            space=None if header.get("space") is None else layout_of(header["space"]),
        )


def _layout(space: Any, size: int) -> Layout | None:
    """What makes rows of the observations of a space; None where they are vectors already."""
    if space is None:
        return None
    layout = space if isinstance(space, Layout) else Flattener(space)
    if layout.size != size:
        raise ValueError(f"space has observations of {layout.size} numbers, the encoder takes {size}")
    keys = [key for path, _ in layout.parts for key in path]
    return None if layout.is_vector or not all(type(key) in (str, int) for key in keys) else Layout(layout.parts)


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


def probes_of(encoder: Any) -> dict[str, NDArray[Any]]:
    """A few rows and their features, where the encoder itself is not saved."""
    return {f"probes.{name}": v for name, v in encoder.probes().items()} if isinstance(encoder, Foreign) else {}


def saved_encoder(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], given: Any) -> Any:
    """The encoder that a file holds, or the one that is given in its place, which must make the same features."""
    if given is not None:
        made = as_encoder(given)
        names = ("probes.rows", "probes.features")
        if not isinstance(made, Foreign) or not all(name in arrays for name in names):
            return made
        rows, features = (checks.array(name, arrays[name], (None, None)) for name in names)
        return own_copy(made).agreeing(rows, features)
    if header["encoder"] is None:
        raise ValueError("encoder is missing: the file was saved with a transformer that is not gqlab's; give it again")
    return encoder_from_dict(header["encoder"])
