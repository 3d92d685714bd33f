"""The encoders: against NumPy's formulas, in all their forms, saved and read again, and scikit-learn's own checks."""

from __future__ import annotations

import copy
import itertools
import json
import math
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gqlab as gq
from gqlab.encoders import ENCODERS, Encoder, Foreign, as_encoder, encode_row, encoder_from_dict
from gqlab.encoders.fourier import cos_pi
from gqlab.engine.compiled import entry

RNG = np.random.default_rng(5)
DATA = RNG.normal(size=(200, 3)) * [1.0, 10.0, 0.1]
WHOLE = RNG.integers(-3, 4, size=(200, 3)).astype(float)

#: Encoders of three numbers, and what they are fitted to.
CASES = [
    (gq.TileCoder(), DATA),
    (gq.TileCoder(n_tilings=5, bins=[2, 3, 4], low=-1, high=[1, 5, None]), DATA),
    (gq.TileCoder(n_tilings=16, bins=4, groups=[(0, 1), (2,), (1, 0, 2)]), DATA),
    (gq.TileCoder(n_tilings=16, groups=[(0, 1), (2,)], hash_size=1000), DATA),
    (gq.Fourier(), DATA),
    (gq.Fourier(order=2, max_interactions=2, low=[-1, None, -0.1]), DATA),
    (gq.RBF(n_centers=[3, 4, 1]), DATA),
    (gq.RBF(centers=DATA[:7], width=[0.1, 0.2, 0.3]), DATA),
    (gq.OneHot(), WHOLE),
    (gq.OneHot(n_values=[5, 6, 7]), np.abs(WHOLE)),
    (gq.Identity(), DATA),
    (gq.Identity(bias=False, low=-1.0, high=1.0), DATA),
    (gq.Identity(scale=False), DATA),
]
IDS = [" ".join(repr(encoder).split())[:60] for encoder, _ in CASES]
every_case = pytest.mark.parametrize(("encoder", "X"), CASES, ids=IDS)


@entry
def one_row(part, observation, first, index, value, first_out):
    encode_row(part, observation, first, index, value, first_out)


# --- scikit-learn ---------------------------------------------------------------------------------------------------


@parametrize_with_checks(
    # Some checks have 10 dimensions: with the parameters of few dimensions these would have too many features.
    [
        gq.TileCoder(bins=2),
        gq.TileCoder(hash_size=512),
        gq.Fourier(order=2, max_interactions=1),
        gq.RBF(n_centers=2),
        gq.OneHot(),
        gq.Identity(),
    ]
)
def test_scikit_learn_accepts_the_encoder(estimator, check):
    whole_numbers = isinstance(estimator, gq.OneHot) and check.func.__name__ == "check_positive_only_tag_during_fit"
    if whole_numbers and tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8):
        pytest.skip("before 1.8 the check takes a mean from whole numbers in place, which NumPy refuses")
    check(estimator)


def test_an_encoder_works_in_a_pipeline():
    made = make_pipeline(StandardScaler(), gq.TileCoder(n_tilings=4, bins=3)).fit_transform(DATA)
    assert made.shape == (200, 4 * 4**3)


def test_a_frame_with_other_columns_is_refused():
    pandas = pytest.importorskip("pandas")
    encoder = gq.Identity().fit(pandas.DataFrame(DATA, columns=["a", "b", "c"]))
    with pytest.raises(ValueError, match="feature names"):
        encoder.transform(pandas.DataFrame(DATA, columns=["a", "c", "b"]))
    again = encoder_from_dict(json.loads(json.dumps(encoder.to_dict())))
    with pytest.raises(ValueError, match="feature names"):
        again.transform(pandas.DataFrame(DATA, columns=["a", "c", "b"]))


# --- All forms say the same -----------------------------------------------------------------------------------------


def as_dense(encoder: Encoder, encoded: np.ndarray) -> np.ndarray:
    if encoder.kind == "dense":
        return encoded
    out = np.zeros((len(encoded), encoder.n_features_out_))
    np.put_along_axis(out, encoded.astype(int), encoder.value_, axis=1)
    return out


@every_case
def test_one_observation_a_batch_transform_and_the_compiled_row_agree(encoder, X):
    encoder.fit(X)
    batch = encoder.encode_batch(X)
    assert batch.dtype == (np.int32 if encoder.kind == "binary" else np.float64)
    assert batch.shape == (len(X), encoder.n_active_)
    made = encoder.transform(X)
    if encoder.kind == "binary":
        assert made.has_canonical_format
        assert made.format == "csr"
        made = made.toarray()
    assert made.shape == (len(X), encoder.n_features_out_)
    np.testing.assert_array_equal(made, as_dense(encoder, batch))
    index, value = np.full(encoder.n_active_ + 4, -7, np.int32), np.full(encoder.n_active_ + 4, -7.0)
    for x, row in zip(X[:20], batch, strict=False):
        np.testing.assert_allclose(encoder.encode(x), row, rtol=0, atol=1e-15)
        one_row(encoder.compiled, np.r_[9.0, x, 9.0], 1, index, value, 2)
        written, other = (index, value) if encoder.kind == "binary" else (value, index)
        np.testing.assert_allclose(written[2:-2], row, rtol=0, atol=1e-15)
        assert (written[[0, 1, -2, -1]] == -7).all()
        assert (other == -7).all()


@every_case
def test_the_norm_is_at_most_one(encoder, X):
    norms = np.linalg.norm(as_dense(encoder, encoder.fit(X).encode_batch(X)), axis=1)
    if encoder.kind == "binary":
        np.testing.assert_allclose(norms, 1)
    elif getattr(encoder, "scale", True):
        assert norms.max() <= 1 + 1e-12


@every_case
def test_what_is_saved_and_read_again_is_the_same_bit_for_bit(encoder, X):
    encoder.fit(X)
    again = encoder_from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert type(again) is type(encoder)
    assert again.to_dict() == encoder.to_dict()
    for a, b in zip(again.compiled, encoder.compiled, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(again.encode_batch(X), encoder.encode_batch(X))
    np.testing.assert_array_equal(copy.deepcopy(encoder).encode_batch(X), encoder.encode_batch(X))


@every_case
def test_other_types_of_numbers_give_the_same(encoder, X):
    encoder.fit(X)
    single = X[0].astype(np.float32)
    np.testing.assert_allclose(encoder.encode(single), encoder.encode(single.astype(float)), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(encoder.encode(X[0].tolist()), encoder.encode(X[0]))
    np.testing.assert_array_equal(encoder.encode_batch(np.asfortranarray(X)), encoder.encode_batch(X))
    np.testing.assert_array_equal(encoder.encode(np.stack([X[0], X[1]], axis=1)[:, 0]), encoder.encode(X[0]))


@every_case
def test_nothing_leaves_the_arrays_whatever_an_observation_holds(encoder, X):
    encoder.fit(X)
    index, value = np.zeros(encoder.n_active_, np.int32), np.zeros(encoder.n_active_)
    for x in itertools.product([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324], repeat=3):
        one_row(encoder.compiled, np.array(x), 0, index, value, 0)
        assert index.min() >= 0
        assert index.max() < encoder.n_features_out_


@every_case
def test_bad_rows_get_one_line_with_row_and_column(encoder, X):
    encoder.fit(X)
    for bad, shown in ((np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")):
        wrong = X.copy()
        wrong[7, 1] = bad
        for call in (encoder.transform, encoder.encode_batch, encoder.fit):
            with pytest.raises(ValueError, match=rf"^X\[7, 1\] is {shown}, expected a finite number$"):
                call(wrong)
    with pytest.raises(ValueError, match=r"^X has shape \(200, 2\), expected \(n, 3\)$"):
        encoder.encode_batch(X[:, :2])
    with pytest.raises(ValueError, match=r"^observation has shape \(2,\), expected \(3,\)$"):
        encoder.encode(X[0, :2])
    with pytest.raises(ValueError, match=r"^X: .*Reshape your data") as caught:
        encoder.transform(X[0])
    assert "\n" not in str(caught.value)
    assert encoder.encode_batch(X[:0]).shape == (0, encoder.n_active_)


@pytest.mark.parametrize("kind", ENCODERS)
def test_an_encoder_that_is_not_fitted_says_so(kind):
    encoder = kind()
    for call in (
        lambda: encoder.encode(DATA[0]),
        lambda: encoder.encode_batch(DATA),
        lambda: encoder.transform(DATA),
        encoder.to_dict,
    ):
        with pytest.raises(NotFittedError, match="not fitted"):
            call()


def test_a_fit_that_fails_changes_nothing():
    encoder = gq.TileCoder().fit(DATA)
    before = encoder.to_dict()
    with pytest.raises(ValueError, match="NaN"):
        encoder.fit([[np.nan]])
    encoder.set_params(bins=0)
    with pytest.raises(ValueError, match=r"^bins is 0, expected at least 1 and below"):
        encoder.fit(DATA[:, :2])
    encoder.set_params(bins=8)
    assert encoder.to_dict() == before


# --- The formulas ---------------------------------------------------------------------------------------------------


def scaled(X, low, high):
    return np.clip((X - low) / (high - low), 0, 1)


def test_fourier_is_the_formula():
    low, high = np.array([-1.0, -5.0, -0.1]), np.array([1.0, 8.0, 0.2])
    encoder = gq.Fourier(order=3, low=low, high=high).fit(DATA)
    c = np.array(list(itertools.product(range(4), repeat=3)))
    np.testing.assert_array_equal(encoder.frequencies_, c)
    np.testing.assert_allclose(
        encoder.transform(DATA), np.cos(np.pi * scaled(DATA, low, high) @ c.T) / 8, rtol=0, atol=1e-14
    )


def test_fourier_keeps_few_interactions():
    encoder = gq.Fourier(order=2, max_interactions=2).fit(DATA)
    c = np.array([c for c in itertools.product(range(3), repeat=3) if np.count_nonzero(c) <= 2])
    np.testing.assert_array_equal(encoder.frequencies_, c)
    expected = np.cos(np.pi * scaled(DATA, DATA.min(0), DATA.max(0)) @ c.T) / math.sqrt(len(c))
    np.testing.assert_allclose(encoder.transform(DATA), expected, rtol=0, atol=1e-14)


def test_the_cosine_has_all_digits():
    @entry
    def cosines(x, out):
        for k in range(x.size):
            out[k] = cos_pi(x[k])

    x = np.r_[np.linspace(-40, 40, 20001), 0.5, 1.0, 1.5]
    out = np.empty_like(x)
    cosines(x, out)
    np.testing.assert_allclose(out, np.cos(np.pi * np.remainder(x, 2)), rtol=0, atol=2e-15)


def test_rbf_is_the_formula():
    low, high = np.array([-1.0, -5.0, -0.1]), np.array([1.0, 8.0, 0.2])
    encoder = gq.RBF(n_centers=[3, 4, 2], low=low, high=high).fit(DATA)
    places = np.array(list(itertools.product(np.linspace(0, 1, 3), np.linspace(0, 1, 4), np.linspace(0, 1, 2))))
    width = np.array([1 / 2, 1 / 3, 1.0])
    difference = (scaled(DATA, low, high)[:, None] - places) / width
    g = np.exp(-0.5 * (difference**2).sum(axis=2))
    np.testing.assert_allclose(encoder.transform(DATA), g / np.linalg.norm(g, axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(encoder.centers_, low + (high - low) * places, rtol=1e-14)
    np.testing.assert_allclose(encoder.width_, width)


def test_rbf_with_given_centres_is_the_formula():
    low, high, centers, width = -2.0, 3.0, DATA[:5] / [1, 10, 0.1], 0.3
    encoder = gq.RBF(centers=centers, width=width, low=low, high=high).fit(DATA)
    difference = (scaled(DATA, low, high)[:, None] - (centers - low) / (high - low)) / width
    g = np.exp(-0.5 * (difference**2).sum(axis=2))
    np.testing.assert_allclose(encoder.transform(DATA), g / np.linalg.norm(g, axis=1, keepdims=True), rtol=1e-10)


def test_far_from_all_centres_the_nearest_is_left():
    encoder = gq.RBF(centers=[[0.0], [1.0]], width=1e-3, low=0, high=1).fit([[0.0]])
    np.testing.assert_array_equal(encoder.encode(np.array([0.4])).round(12), [1.0, 0.0])


def test_identity_is_the_formula():
    low, high = np.array([-1.0, -5.0, -0.1]), np.array([1.0, 8.0, 0.2])
    made = gq.Identity(low=low, high=high).fit(DATA).transform(DATA)
    expected = np.c_[2 * scaled(DATA, low, high) - 1, np.ones(len(DATA))] / 2
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(gq.Identity(scale=False).fit(DATA).transform(DATA), np.c_[DATA, np.ones(len(DATA))])


def test_one_hot_is_that_of_scikit_learn():
    made = gq.OneHot().fit(WHOLE).transform(WHOLE).toarray() * math.sqrt(3)
    np.testing.assert_allclose(made, OneHotEncoder(sparse_output=False).fit_transform(WHOLE))


def test_a_dimension_that_never_changes_is_constant():
    X = np.c_[DATA[:, 0], np.full(len(DATA), 3.0)]
    for encoder in (gq.TileCoder(), gq.Fourier(), gq.RBF(), gq.Identity()):
        encoder.fit(X)
        a, b = (encoder.encode(np.array([0.3, y])) for y in (3.0, 4.0))
        np.testing.assert_array_equal(a, b)
        assert np.isfinite(a).all()


# --- Messages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (gq.TileCoder(n_tilings=0), "n_tilings is 0, expected at least 1"),
        (gq.TileCoder(bins=[2, 3]), r"bins has shape \(2,\), expected a whole number or \(3,\)"),
        (gq.TileCoder(bins=[2, 3, 0]), r"bins\[2\] is 0, expected at least 1"),
        (gq.TileCoder(bins=2000), "bins is 2000: 8 tilings of 1 groups have .* use fewer bins, smaller groups, or hash_size"),
        (gq.TileCoder(groups=[(0, 3)]), r"groups\[0\]\[1\] is 3, expected at least 0 and below 3"),
        (gq.TileCoder(groups=[(0, 0)]), r"groups\[0\] is \(0, 0\), which has a dimension twice"),
        (gq.TileCoder(groups=[()]), r"groups is \[\(\)\], expected tuples of dimensions"),
        (gq.TileCoder(groups=3), "groups is 3, expected tuples of dimensions"),
        (gq.TileCoder(hash_size=7), "hash_size is 7, expected at least 8"),
        (gq.TileCoder(low=[0, 0]), r"low has shape \(2,\), expected a number or \(3,\)"),
        (gq.TileCoder(low=[0, "a", 0]), r"low\[1\] is 'a', expected a number"),
        (gq.TileCoder(low=np.inf), "low is inf, expected a finite number"),
        (gq.TileCoder(low=1, high=1), r"low\[0\] is 1, expected less than high\[0\], which is 1"),
        (gq.TileCoder(low=1e6), r"low\[0\] is 1e\+06, expected less than high\[0\], which is 2"),
        (gq.Fourier(order=0), "order is 0, expected at least 1"),
        (gq.Fourier(order=200), "order is 200: with 3 dimensions .* use a lower order, or max_interactions=2"),
        (gq.Fourier(max_interactions=0), "max_interactions is 0, expected at least 1"),
        (gq.RBF(n_centers=1000), "n_centers is 1000: that makes 1,000,000,000 centres, .* give centers"),
        (gq.RBF(centers=[[0, 1]]), r"centers has shape \(1, 2\), expected \(\*, 3\)"),
        (gq.RBF(width=0), r"width\[0\] is .*0.0.*, expected a finite number at least 1e-100"),
        (gq.OneHot(), r"X\[0, 0\] is -?\d\.\d+, expected a whole number"),
        (gq.Identity(bias=2), "bias is 2, expected True or False"),
    ],
)  # fmt: skip
def test_bad_parameters_get_one_line(encoder, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        encoder.fit(DATA)
    assert "\n" not in str(caught.value)
    assert not hasattr(encoder, "n_features_in_")


def test_a_value_that_was_never_seen_is_named():
    encoder = gq.OneHot().fit([[1, 10], [2, 30]])
    with pytest.raises(ValueError, match=r"^X\[1, 1\] is 20, expected one of the 2 values 10, ..., 30$"):
        encoder.transform([[1, 30], [2, 20]])
    with pytest.raises(ValueError, match=r"^observation\[1\] is 20, expected one of the 2 values 10, ..., 30$"):
        encoder.encode(np.array([1.0, 20.0]))
    with pytest.raises(ValueError, match=r"^X\[0, 0\] is 3, expected one of the 3 values 0, ..., 2 of n_values$"):
        gq.OneHot(n_values=3).fit([[3]])


# --- Spaces ---------------------------------------------------------------------------------------------------------


def test_bounds_that_were_not_given_come_from_the_space():
    space = gymnasium.make("MountainCar-v0").observation_space
    encoder = gq.TileCoder(low=[-1, None])
    fitted = encoder.for_space(space)
    assert not hasattr(encoder, "low_")
    np.testing.assert_array_equal(fitted.low_, [-1.0, space.low[1]])
    np.testing.assert_array_equal(fitted.high_, space.high.astype(float))


@pytest.mark.parametrize("kind", [gq.TileCoder, gq.Fourier, gq.RBF, gq.Identity])
def test_infinite_bounds_of_a_space_are_named_with_the_way_out(kind):
    space = gymnasium.make("CartPole-v1").observation_space
    with pytest.raises(
        ValueError, match=r"low and high: \w+ has no finite bounds for dimension 1, 3: give low=.* fit\(X\)$"
    ):
        kind().for_space(space)
    fitted = kind(low=[None, -3, None, -3], high=[None, 3, None, 3]).for_space(space)
    assert fitted.high_.tolist() == [space.high[0], 3.0, space.high[2], 3.0]


def test_an_identity_that_does_not_scale_needs_no_bounds():
    assert gq.Identity(scale=False).for_space(gymnasium.make("CartPole-v1").observation_space).n_features_out_ == 5


def test_one_hot_takes_its_values_from_the_space():
    spaces = gymnasium.spaces
    table = gq.OneHot().for_space(spaces.Discrete(4, start=-1))
    assert table.values_[0].tolist() == [-1, 0, 1, 2]
    assert table.encode(np.array([2.0])).tolist() == [3]
    both = gq.OneHot().for_space(spaces.Tuple([spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(1)]))
    assert both.n_features_out_ == 7
    assert both.encode(np.array([1.0, 0.0, 1.0])).tolist() == [1, 2, 6]
    with pytest.raises(ValueError, match=r"^space: dimension 1 is from 0 to 1, expected whole numbers"):
        gq.OneHot().for_space(spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 1, (1,))]))


# --- Other transformers ---------------------------------------------------------------------------------------------


def test_any_transformer_is_an_encoder_in_batches():
    transformer = PolynomialFeatures(2).fit(DATA)
    encoder = as_encoder(transformer)
    assert isinstance(encoder, Foreign)
    assert (encoder.kind, encoder.n_features_in_, encoder.n_features_out_, encoder.n_active_) == ("dense", 3, 10, 10)
    np.testing.assert_array_equal(encoder.encode_batch(DATA), transformer.transform(DATA))
    np.testing.assert_array_equal(encoder.transform(DATA), transformer.transform(DATA))
    np.testing.assert_array_equal(encoder.encode(DATA[0]), transformer.transform(DATA[:1])[0])
    assert not hasattr(encoder, "compiled")
    assert encoder.for_space(gymnasium.spaces.Box(-1, 1, (3,))) is encoder
    with pytest.raises(ValueError, match="transformer expects 3 numbers, observations of the space have 2"):
        encoder.for_space(gymnasium.spaces.Box(-1, 1, (2,)))
    with pytest.raises(ValueError, match=r"^transformer is a PolynomialFeatures, .* with encoder=...$"):
        encoder.to_dict()


def test_a_sparse_or_unfitted_transformer_is_an_encoder_too():
    sparse = as_encoder(OneHotEncoder().fit(WHOLE))
    np.testing.assert_array_equal(sparse.encode_batch(WHOLE), OneHotEncoder(sparse_output=False).fit_transform(WHOLE))
    unfitted = as_encoder(StandardScaler())
    with pytest.raises(ValueError, match="not fitted"):
        unfitted.for_space(gymnasium.spaces.Box(-1, 1, (3,)))
    unfitted.fit(DATA)
    np.testing.assert_allclose(unfitted.encode_batch(DATA), StandardScaler().fit_transform(DATA))
    with pytest.raises(ValueError, match=r"^X: OneHotEncoder refuses it: Found unknown categories"):
        sparse.encode_batch(WHOLE + 100)


def test_as_encoder_gives_an_encoder_back_and_refuses_the_rest():
    encoder = gq.Fourier()
    assert as_encoder(encoder) is encoder
    for wrong in (3, "TileCoder", None, StandardScaler):
        with pytest.raises(ValueError, match=r"^encoder is .*, expected one of TileCoder"):
            as_encoder(wrong)


# --- Saved encoders -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": "os.system"}, r"values\['encoder'\] is 'os.system', expected one of 'TileCoder'"),
        ({"parameters": {"n_tilings": 3}}, r"values\['parameters'\] of TileCoder: bins is missing or unknown"),
        ({"parameters": None}, r"values\['parameters'\] is None, expected a dict"),
        ({"fitted": {"low": [0]}}, r"low has shape \(1,\), expected \(3,\)"),
        ({"fitted": {}}, r"low has shape \(0,\), expected \(3,\)"),
        ({"n_features_in": -1}, r"values\['n_features_in'\] is -1, expected at least 1"),
    ],
)
def test_what_no_encoder_wrote_is_refused(change, message):
    values = gq.TileCoder().fit(DATA).to_dict() | change
    with pytest.raises(ValueError, match=f"^{message}"):
        encoder_from_dict(values)


def test_values_that_no_one_hot_has_are_refused():
    values = gq.OneHot().fit([[1], [2]]).to_dict()
    for wrong in ([[2, 1]], [[1.5]], [[1], [2]], None):
        with pytest.raises(ValueError, match=r"^values"):
            encoder_from_dict(values | {"fitted": {"values": wrong}})


# --- What is imported -----------------------------------------------------------------------------------------------


def test_gqlab_imports_scikit_learn_only_when_an_encoder_is_used():
    code = (
        "import sys, gqlab as gq; assert not {'sklearn', 'pandas', 'pyarrow', 'gymnasium'} & set(sys.modules); "
        "assert 'TileCoder' in dir(gq); gq.TileCoder; assert 'sklearn' in sys.modules; assert 'gymnasium' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_without_scikit_learn_one_line_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import gqlab as gq\ntry: gq.TileCoder\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "encoders need scikit-learn 1.6 or newer: pip install 'gqlab[learn]'\n"


def test_gqlab_has_no_other_names():
    with pytest.raises(AttributeError, match="module 'gqlab' has no attribute 'Tilecoder'"):
        gq.Tilecoder  # noqa: B018
