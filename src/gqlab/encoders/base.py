"""What an encoder is: observations ↦ features φ of the state, as a scikit-learn transformer with a compiled part.

==============  ====================================================================================================
symbol          meaning
==============  ====================================================================================================
X (n, n_in)     observations, one per row
K               features of a state, ``n_features_out_``
binary          every state has ``n_active_`` features of the value ``value_`` = 1/√n_active, the others are 0
dense           every state has K features of any value
==============  ====================================================================================================

‖φ‖ = 1 where an encoder is binary and ‖φ‖ ≤ 1 where it is dense (but for an ``Identity`` that does not scale), so that
step sizes mean the same for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from gqlab.encoders.spaces import Flattener
from gqlab.engine.compiled import entry
from gqlab.rules.dispatch import by_type, require
from gqlab.support import checks
from gqlab.support.checks import FloatArray
from gqlab.support.files import one_line

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ImportError("encoders need scikit-learn 1.6 or newer: pip install 'gqlab[learn]'") from None

if TYPE_CHECKING:
    import gymnasium

#: Indices are 32-bit numbers.
MOST_FEATURES = 2**31 - 1

#: The dtypes that compiled code reads without a copy.
DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

#: Every feature of a dense encoder costs time in every step: more than this is taken for a mistake.
MOST_DENSE_FEATURES = 2**20


@by_type
def encode_row(self, observation, first, index, value, first_out):
    """Encode the numbers observation[first], observation[first + 1], …

    A binary encoder writes the active features to index[first_out + j], j < n_active; a dense one writes all features
    to value[first_out + k], k < K. Numbers outside the bounds, and NaN, never cause an access outside the arrays.
    """


@entry
def _encode_rows(part, X, index, value, n_rows, n_in, n_out):
    """Rows of n_in numbers each, one after another in X, to rows of n_out."""
    for row in range(n_rows):
        encode_row(part, X, row * n_in, index, value, row * n_out)


class Encoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all encoders can do. Each is a scikit-learn transformer: ``fit``, ``transform``, pipelines, ``clone``.

    To act, use ``encode``; for many observations ``encode_batch``; for scikit-learn ``transform``.

    Attributes
    ----------
    kind : {"binary", "dense"}
    n_features_in_ : int
        Numbers of an observation.
    n_features_out_ : int
        K, features of a state.
    n_active_ : int
        Features of every state that are not 0: the tilings of a tile coder; K where the encoder is dense.
    value_ : float
        Binary encoders: the value of every active feature, 1/√n_active, so that ‖φ‖ = 1.

    Examples
    --------
    >>> import numpy as np, gqlab as gq
    >>> coder = gq.TileCoder(n_tilings=4, bins=2, low=[0, 0], high=[1, 1]).fit(np.zeros((1, 2)))
    >>> coder.encode(np.array([0.9, 0.2]))
    array([ 3, 16, 24, 33], dtype=int32)
    >>> coder.transform([[0.9, 0.2]]).shape, coder.value_
    ((1, 36), 0.5)
    """

    kind: ClassVar[Literal["binary", "dense"]]
    n_features_in_: int
    n_features_out_: int
    n_active_: int
    value_: float

    #: The compiled function that encodes one observation: (*fields of the part, observation, out). Passing a
    #: named tuple would take longer than the encoding itself.
    _encode_one: Any
    _part: Any

    # --- What each kind of encoder provides --------------------------------------------------------------------------

    def _fit_data(self, X: FloatArray) -> None:
        """Learn from observations, and call :meth:`_set`."""
        raise NotImplementedError

    def _fit_space(self, flat: Flattener) -> None:
        """Learn from a space, and call :meth:`_set`."""
        raise NotImplementedError

    def _fitted(self) -> dict[str, Any]:
        """What was learned, ready for JSON."""
        raise NotImplementedError

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        """Take what :meth:`_fitted` gave, and call :meth:`_set`."""
        raise NotImplementedError

    def _set(self, part: Any, n_features_out: int, n_active: int) -> None:
        """Keep the compiled part and the sizes."""
        require(type(part), [encode_row], f"encoder {type(self).__name__}")
        self.n_features_out_ = n_features_out
        self.n_active_ = n_active
        if self.kind == "binary":
            self.value_ = float(1 / np.sqrt(n_active))
        self._part = part

    # --- Fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn from observations X (n, n_in) what was not given: bounds, or values. ``y`` is not read."""
        before = self.__dict__.copy()
        try:
            self._fit_data(self._validated(X, reset=True))
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def for_space(self, space: gymnasium.Space[Any]) -> Self:
        """A fitted copy for the observations of a Gymnasium space: what was not given is taken from the space.

        >>> import gymnasium, gqlab as gq
        >>> space = gymnasium.make("MountainCar-v0").observation_space
        >>> gq.TileCoder(n_tilings=16, bins=8).for_space(space).n_features_out_
        1296
        """
        flat = Flattener(space)
        made = clone(self)
        made.n_features_in_ = flat.size
        made._fit_space(flat)
        return made

    def check_space(self, flat: Flattener) -> None:  # most encoders take every number
        """``ValueError`` where observations of a space are none that the fitted encoder can tell apart."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_out_")

    @property
    def _n_features_out(self) -> int:
        return self.n_features_out_

    @property
    def compiled(self) -> Any:
        """The compiled part, with :func:`encode_row`: what an agent's step calls."""
        check_is_fitted(self)
        return self._part

    # --- Encoding ----------------------------------------------------------------------------------------------------

    def encode(self, observation: NDArray[Any]) -> NDArray[Any]:
        """One observation (n_in,): the active features, int32 (n_active,), or all features, float64 (K,).

        As fast as a call from Python can be; it does not check for NaN and infinities.
        """
        try:
            part = self._part
        except AttributeError:
            check_is_fitted(self)
            raise
        plain = type(observation) is np.ndarray and (observation.dtype is DOUBLE or observation.dtype is SINGLE)
        if not plain or observation.shape != (self.n_features_in_,):
            observation = checks.array("observation", observation, (self.n_features_in_,))
        out = np.empty(self.n_active_, np.int32 if self.kind == "binary" else np.float64)
        self._encode_one(*part, observation, out)
        return out

    def encode_batch(self, X: ArrayLike) -> NDArray[Any]:
        """Observations (n, n_in): the active features, int32 (n, n_active), or all features, float64 (n, K)."""
        check_is_fitted(self)
        rows = X if type(X) is np.ndarray and X.dtype == np.float64 else checks.numbers("X", X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(f"X has shape {rows.shape}, expected (n, {self.n_features_in_})")
        _finite(rows)
        return self._batch(rows)

    def _batch(self, X: FloatArray) -> NDArray[Any]:
        binary = self.kind == "binary"
        n, width = len(X), self.n_active_
        checks.memory("X", f"{n} rows", n * width, 4 if binary else 8)
        index = np.empty(n * width if binary else 0, np.int32)
        value = np.empty(0 if binary else n * width)
        _encode_rows(self._part, np.ascontiguousarray(X).reshape(-1), index, value, n, X.shape[1], width)
        return (index if binary else value).reshape(n, width)

    def transform(self, X: ArrayLike) -> Any:
        """Observations (n, n_in) ↦ φ (n, K): a CSR array where the encoder is binary, else an array."""
        check_is_fitted(self)
        encoded = self._batch(self._validated(X, reset=False))
        if self.kind == "dense":
            return encoded
        n, width = encoded.shape
        parts = np.full(n * width, self.value_), encoded.reshape(-1), np.arange(0, n * width + 1, width)
        return scipy.sparse.csr_array(parts, shape=(n, self.n_features_out_))

    def _validated(self, X: Any, *, reset: bool) -> FloatArray:
        """X as scikit-learn checks it, with its messages in one line."""
        try:
            rows = validate_data(self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite=False)
        except Exception as error:  # what NumPy cannot convert may raise anything
            text = one_line(error)
            text = text if len(text) < 400 else f"{text[:200]} … {text[-200:]}"  # scikit-learn shows whole arrays
            raise (TypeError if isinstance(error, TypeError) else ValueError)(f"X: {text}") from None
        _finite(rows)
        return rows

    # --- Saving ------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything that defines this encoder, ready for JSON; :func:`gqlab.encoders.encoder_from_dict` reads it.

        >>> import numpy as np, gqlab as gq
        >>> gq.Identity().fit([[0.0], [2.0]]).to_dict()["fitted"]
        {'low': [0.0], 'high': [2.0]}
        """
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        return {
            "encoder": type(self).__name__,
            "parameters": {name: _plain(name, value) for name, value in parameters.items()},
            "n_features_in": self.n_features_in_,
            "feature_names": list(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None,
            "fitted": self._fitted(),
        }


def _finite(X: FloatArray) -> None:
    good = np.isfinite(X)
    if not good.all():
        row, column = np.argwhere(~good)[0]
        shown = "NaN" if np.isnan(X[row, column]) else X[row, column]
        raise ValueError(f"X[{row}, {column}] is {shown}, expected a finite number")


def _plain(name: str, value: Any) -> Any:
    """A parameter, ready for JSON: arrays and tuples become lists."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(name, value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(name, inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{name} is {checks.shown(value)}, which cannot be saved")


def counts(name: str, value: Any, n_in: int) -> NDArray[np.int64]:
    """A positive whole number for each of ``n_in`` dimensions: one of each, or one for all."""
    given = checks.plain_array(name, value)
    if given.ndim == 0:
        return np.full(n_in, checks.integer(name, value, least=1, below=MOST_FEATURES))
    if given.shape != (n_in,):
        raise ValueError(f"{name} has shape {given.shape}, expected a whole number or ({n_in},)")
    each = [checks.integer(f"{name}[{i}]", n, least=1, below=MOST_FEATURES) for i, n in enumerate(given.tolist())]
    return np.array(each, np.int64)
