"""Any scikit-learn transformer as an encoder: not compiled, so fast in batches only."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from gqlab.encoders.base import MOST_DENSE_FEATURES, Encoder
from gqlab.encoders.spaces import Flattener
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import one_line

if TYPE_CHECKING:
    import gymnasium


#: The rows that are kept beside a model, with their features: what a transformer that is given when loading must make.
MOST_PROBES = 8

#: How far the features of a probe may be from those that were kept, in units of the largest: another version of a
#: library may round in another way.
TOLERANCE = 1e-6


class Foreign(Encoder):
    """A scikit-learn transformer, or anything with ``transform`` like one, as an encoder.

    It has no ``compiled`` part: an agent that acts calls ``transform`` for every observation, which takes 100 µs or
    more. Nothing scales its features: ‖φ‖ is what the transformer makes it.

    Parameters
    ----------
    transformer : object
        If it is fitted, it is used as it is; otherwise ``fit`` fits a copy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from gqlab.encoders.foreign import Foreign
    >>> Foreign(PolynomialFeatures(2).fit([[0.0, 0.0]])).encode(np.array([2.0, 3.0]))
    array([1., 2., 3., 4., 6., 9.])
    """

    kind = "dense"

    def __init__(self, transformer: Any) -> None:
        if not callable(getattr(transformer, "transform", None)):
            raise ValueError(f"transformer is {checks.shown(transformer)}, expected an object with transform(X)")
        self.transformer = transformer
        self._probes: list[FloatArray] = []  # the first rows that were encoded
        if hasattr(transformer, "n_features_in_"):
            self._take(transformer)

    def _take(self, transformer: Any) -> None:
        self.transformer_ = transformer
        self.n_features_in_ = checks.integer("n_features_in_", transformer.n_features_in_, least=1)
        try:
            self.n_features_out_ = len(transformer.get_feature_names_out())
        except Exception:  # not every transformer has feature names
            self.n_features_out_ = self._features(np.zeros((1, self.n_features_in_))).shape[1]
        self.n_active_ = self.n_features_out_

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit a copy of the transformer."""
        rows = checks.array("X", X, (None, None))
        try:
            self._take(clone(self.transformer).fit(rows, y))
        except (ValueError, TypeError, AttributeError, IndexError):
            if self.names is None:  # a ColumnTransformer may ask for columns by their names
                raise
            self._take(clone(self.transformer).fit(self._framed(rows, self.names), y))
        return self

    #: What the numbers of an observation are called, for transformers that ask for columns by name.
    names: tuple[str, ...] | None = None

    def _framed(self, X: FloatArray, names: Any) -> Any:
        """Rows with the names of their columns, where there are data frames."""
        try:
            pandas = import_module("pandas")
        except ImportError:
            return X
        return pandas.DataFrame(X, columns=list(names))

    def for_space(self, space: gymnasium.Space[Any]) -> Self:
        """The encoder itself, if it is fitted to observations of that size."""
        size = Flattener(space).size
        if not hasattr(self, "n_features_out_"):
            raise ValueError("transformer is not fitted: call its fit(X) with observations first")
        if size != self.n_features_in_:
            raise ValueError(
                f"transformer expects {self.n_features_in_} numbers, observations of the space have {size}"
            )
        return self

    @property
    def compiled(self) -> Any:
        """Always an ``AttributeError``: there is no compiled part."""
        raise AttributeError(f"{type(self.transformer).__name__} has no compiled part: it works in batches")

    def encode(self, observation: NDArray[Any]) -> NDArray[Any]:
        """One observation, by ``transform`` of one row."""
        return self.encode_batch(np.reshape(observation, (1, -1)))[0]

    def _batch(self, X: FloatArray) -> NDArray[Any]:
        made = self._features(X)
        wanted = min(MOST_PROBES - len(self._probes), len(X))
        if wanted > 0:
            self._probes += [X[k].copy() for k in np.linspace(0, len(X) - 1, wanted).astype(int)]
        return made

    # --- In files ----------------------------------------------------------------------------------------------------

    def probes(self) -> dict[str, NDArray[Any]]:
        """Some rows and their features: what stands in a file in place of the transformer."""
        rows = np.array(self._probes) if self._probes else np.zeros((1, self.n_features_in_))
        try:
            return {"rows": rows, "features": self._features(rows)}
        except ValueError:  # nothing was encoded yet, and zeros are none of its rows
            return {}

    def agreeing(self, rows: FloatArray, features: FloatArray) -> Self:
        """This one, fitted to the ``rows`` if it is not fitted; ``ValueError`` where its features are others."""
        if not hasattr(self, "n_features_out_"):
            self.fit(rows)
        name = type(self.transformer).__name__
        made = self._features(checks.array("probes", rows, (None, self.n_features_in_)))
        if made.shape != features.shape:
            raise ValueError(
                f"encoder: this {name} makes {made.shape[1]} features, that of the file made {features.shape[1]}"
            )
        wrong = np.abs(made - features).max(axis=1) > TOLERANCE * max(1.0, float(np.abs(features).max()))
        if wrong.any():
            raise ValueError(
                f"encoder: this {name} makes other features of {int(wrong.sum())} of {len(rows)} rows than that of the "
                "file did: give the one that the model was fitted with, or one fitted to the same data"
            )
        self._probes = [row.copy() for row in rows]
        return self

    def _features(self, X: FloatArray) -> FloatArray:
        try:
            names = getattr(self.transformer_, "feature_names_in_", None)
            made = self.transformer_.transform(X if names is None else self._framed(X, names))
        except Exception as error:  # a transformer may raise anything
            raise ValueError(f"X: {type(self.transformer_).__name__} refuses it: {one_line(error)}") from None
        if scipy.sparse.issparse(made):
            if made.shape[1] > MOST_DENSE_FEATURES:
                raise ValueError(
                    f"transformer makes {made.shape[1]:,} features, more than the {MOST_DENSE_FEATURES:,} that can be "
                    "kept as dense rows"
                )
            checks.memory("X", f"{len(X)} rows", made.shape[0] * made.shape[1])
            made = made.toarray()
        if len(X) == 0:
            return np.empty((0, self.n_features_out_))
        return checks.array("transformer.transform(X)", made, (len(X), None))

    def to_dict(self) -> dict[str, Any]:
        """A ``ValueError``: gqlab does not write other libraries' objects into files."""
        raise ValueError(
            f"transformer is a {type(self.transformer).__name__}, which is not saved with a model: save it yourself, "
            "and give it when loading, with encoder=..."
        )
