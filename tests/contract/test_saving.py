"""Pickles and files: a search resumes from either with identical results; a file runs no code."""

import copy
import io
import json
import pickle
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

import fmnes
from contract.common import assert_same_bits, drive, ellipsoid, sphere, start
from fmnes.storage import npz

SETTINGS = [
    fmnes.CRFMNES(variant="paper"),
    fmnes.CRFMNES(D=[1.0, 2.0, 3.0, 4.0, 5.0], v=np.ones(5)),
    fmnes.CRFMNES(eta_B=0.05, c_1=0.0, eta_sigma=np.float32(0.5), distance_weights=False),
    fmnes.FMNES(eta_B=0.1, C=np.diag([1.0, 2.0, 3.0, 4.0, 5.0])),
    fmnes.CMAES(active=False),
    fmnes.SNES(eta_sigma=0.2),
    fmnes.R1NES(eta=0.2),
    fmnes.SepCMA(rates="pycma"),
]


def round_trips(opt, tmp_path):
    """The search after a pickle, after a copy, and after a file."""
    path = tmp_path / "search.npz"
    opt.save(path)
    yield pickle.loads(pickle.dumps(opt))
    yield copy.deepcopy(opt)
    yield copy.copy(opt)
    yield fmnes.Optimizer.load(path)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("generations", [0, 1, 70])  # 70: beyond the first rows of the history
def test_it_goes_on_to_the_bit(method, dtype, generations, tmp_path):
    opt = drive(start(method, dtype=dtype, ftarget=-1.0, maxfevals=10_000), generations)
    others = list(round_trips(opt, tmp_path))
    for other in others:
        assert_same_bits(opt, other)
    drive(opt, 30)
    for other in others:
        assert_same_bits(opt, drive(other, 30))
        assert other.ask().dtype == dtype


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_settings_go_along(settings, tmp_path):
    opt = drive(start(settings), 5)
    for other in round_trips(opt, tmp_path):
        assert type(other.setup.settings) is type(settings)
        assert_same_bits(drive(copy.deepcopy(opt), 20), drive(other, 20))
    again = pickle.loads(pickle.dumps(settings))
    assert type(again) is type(settings)
    assert repr(again) == repr(settings)


def test_a_pending_population_goes_along(method, tmp_path):
    """Asked before, told after: the draws are made again."""
    opt = drive(start(method), 3)
    x = opt.ask()
    others = list(round_trips(opt, tmp_path))
    opt.tell(ellipsoid(x))
    for other in others:
        other.tell(x, ellipsoid(x))
        assert_same_bits(opt, other)


def test_bounds_limits_and_budgets_go_along(method, tmp_path):
    opt = start(
        method,
        bounds=[(-4, 5), (None, 5), (0, None), (None, None), (3, 3)],
        ftarget=1e-9,
        maxfevals=400,
        maxiter=60,
        timeout=3600,
        stopping=fmnes.Stopping(tolx=1e-9, flat=7, stagnation=333),
    )
    drive(opt, 5, sphere)
    for other in round_trips(opt, tmp_path):
        assert other.budget == opt.budget
        assert other.setup.stopping == opt.setup.stopping
        mine = copy.deepcopy(opt)
        while not mine.stop():
            drive(mine, 1, sphere)
        while not other.stop():
            drive(other, 1, sphere)
        assert_same_bits(mine, other)


@pytest.mark.parametrize("f", [np.nan, np.inf, -np.inf])
def test_a_search_without_a_finite_value(f, tmp_path):
    opt = start("cr-fm-nes")
    opt.ask()
    opt.tell(np.full(opt.popsize, f))
    for other in round_trips(opt, tmp_path):
        assert other.stop() == opt.stop()
        assert other.result.fun == opt.result.fun


def test_a_result_can_be_pickled(method):
    result = drive(start(method), 5).result
    again = pickle.loads(pickle.dumps(result))
    for name in ("fun", "nfev", "nit", "success", "status", "message", "sigma", "restarts"):
        assert getattr(again, name) == getattr(result, name), name
    np.testing.assert_array_equal(again.x, result.x)
    np.testing.assert_array_equal(again.mean, result.mean)
    assert again.history.to_array().tobytes() == result.history.to_array().tobytes()
    a, b = (fmnes.Optimizer(r, method=method, rng=2) for r in (result, again))
    assert_same_bits(drive(a, 5), drive(b, 5))


# --- The file -------------------------------------------------------------------------------------


def test_a_file_holds_arrays_and_json_only(method, tmp_path):
    path = tmp_path / "search.npz"
    drive(start(method), 3).save(path)
    with np.load(path, allow_pickle=False) as file:
        for name in file.files:
            assert not file[name].dtype.hasobject
        header = json.loads(file["header"].tobytes())
    assert header["format"] == 6
    assert list(tmp_path.iterdir()) == [path]  # nothing is left beside it


def test_saving_again_replaces_the_file(tmp_path):
    path = tmp_path / "search.npz"
    opt = start("cr-fm-nes")
    opt.save(path)
    drive(opt, 3).save(str(path))
    assert fmnes.Optimizer.load(path).nit == 3
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of a file."""
    path = tmp_path_factory.mktemp("saved") / "search.npz"
    drive(start("cr-fm-nes", 3), 3).save(path)
    return path.read_bytes()


def refused(path):
    with pytest.raises(ValueError, match=f"^path: .*{re.escape(str(path))}") as caught:
        fmnes.Optimizer.load(path)
    return str(caught.value)


@pytest.mark.parametrize("tenths", range(10))
def test_a_truncated_file_is_refused(tenths, saved, tmp_path):
    path = tmp_path / "cut.npz"
    path.write_bytes(saved[: len(saved) * tenths // 10])
    refused(path)


def test_no_flipped_bit_goes_unnoticed(saved, tmp_path):
    """Refused, or (where the bit does not matter, as in a file's date) read as it was."""
    path = tmp_path / "flipped.npz"
    path.write_bytes(saved)
    whole = fmnes.Optimizer.load(path)
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        damaged = bytearray(saved)
        damaged[rng.integers(len(saved))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            assert_same_bits(fmnes.Optimizer.load(path), whole)
            outcomes.add("read")
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017  either way is right
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "other"
    path.write_bytes(b"no search at all")
    refused(path)
    with path.open("wb") as file:
        np.savez(file, x=np.ones(3))
    assert "(it has no 'header')" in refused(path)
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    refused(path)
    path.write_bytes(pickle.dumps(start("cr-fm-nes")))
    refused(path)


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"format": 3}',
        b'{"format": 3, "content": {"dict": {}}}',
        b'{"format": 3, "content": {"record": "os.system", "fields": {}}}',
        b'{"format": 3, "content": {"array": "x", "library": "os"}}',
        b'{"format": 3, "content": {"array": "missing", "library": "numpy"}}',
    ],
)
def test_a_header_of_another_kind_is_refused(header, tmp_path):
    path = tmp_path / "other.npz"
    arrays = {"header": np.frombuffer(header, np.uint8), "x": np.ones(3)}
    np.savez(path, **arrays, checksum=npz.checksum(arrays))
    assert "checksum" not in refused(path)
    np.savez(path, **arrays, checksum=npz.checksum({}))
    refused(path)


@pytest.mark.parametrize("count", [10**12, 2**61, -1])
def test_no_memory_is_taken_for_what_a_file_only_claims(count, saved, tmp_path):
    """An array whose header claims more, or less, than there is."""
    path = tmp_path / "claims.npz"
    body = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        body, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", body.getvalue() + bytes(80))
    tracemalloc.start()
    try:
        message = refused(path)
        assert str(8 * count) in message
        assert "80" in message
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def with_header(path, saved, **changes):
    """Write the bytes of a file with some fields of its header changed, and the right checksum."""
    with np.load(io.BytesIO(saved)) as file:
        arrays = {name: file[name] for name in file.files if name != "checksum"}
    header = {**json.loads(arrays["header"].tobytes()), **changes}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(path, **arrays, checksum=npz.checksum(arrays))


@pytest.mark.parametrize("popsize", [10**12, -4, 0, "x", None, 8.0])
def test_no_population_is_taken_that_a_file_only_claims(popsize, saved, tmp_path):
    path = tmp_path / "claims.npz"
    with np.load(io.BytesIO(saved)) as file:
        content = json.loads(file["header"].tobytes())["content"]
    content["dict"]["popsize"] = popsize
    with_header(path, saved, content=content)
    with pytest.raises(ValueError, match=f"popsize: .* 16777216, got {popsize!r}"):
        fmnes.Optimizer.load(path)


def test_compressed_arrays_are_refused(tmp_path):
    """A few bytes of them may stand for more than there is memory."""
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, header=np.zeros(10**6, np.uint8))
    assert str(path.stat().st_size) in refused(path)
    np.savez_compressed(path, header=np.frombuffer(b"{}", np.uint8))
    assert "compressed" in refused(path)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("state.D", np.ones(4)),
        ("state.v", np.ones(5, np.float32)),
        ("state.mean", np.ones((5, 1))),
        ("state.sigma", np.ones(1)),
        ("best", np.ones(6)),
        ("initial", np.ones(6)),
    ],
)
def test_arrays_that_do_not_fit_are_named(field, wrong, tmp_path):
    path = tmp_path / "search.npz"
    content = drive(start("cr-fm-nes"), 3).to_saved()
    record, _, name = field.rpartition(".")
    if record:
        content[record] = content[record]._replace(**{name: wrong})
    else:
        content[name] = wrong
    npz.write(path, content)
    with pytest.raises(ValueError, match=rf"^path: .*{field}: expected shape .*got shape"):
        fmnes.Optimizer.load(path)


def test_more_axes_than_a_small_search_has_variables(tmp_path):
    """The layout of a state is compared with that of a search of seven variables."""
    opt = drive(start(fmnes.Auto(axes=20), dim=40), 12)
    for other in round_trips(opt, tmp_path):
        assert_same_bits(drive(copy.deepcopy(opt), 12), drive(other, 12))


def rotated_ellipsoid(x):
    """All axes oblique and of different lengths: the method auto ends with a full matrix."""
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(x.shape[-1],) * 2)).Q
    return ellipsoid(x @ Q)


def test_arrays_that_change_their_shape_go_along(tmp_path):
    """Before, at and after the generation in which a full matrix takes the place of the axes."""
    opt, path = start("auto", dim=10, rng=3), tmp_path / "search.npz"
    while opt._state.B.size == 0 and opt.nit < 400:
        drive(opt, 1, rotated_ellipsoid)
    full_from, end = opt.nit, opt.nit + 20
    assert opt._state.B.shape == (10, 10)
    assert (opt._state.V.shape, opt._state.S.shape) == ((10, 0), (0,))
    assert full_from % 10 == 0
    drive(opt, end - opt.nit, rotated_ellipsoid)
    for saved_at in (full_from - 1, full_from, full_from + 7):
        drive(start("auto", dim=10, rng=3), saved_at, rotated_ellipsoid).save(path)
        other = fmnes.Optimizer.load(path)
        assert (other._state.B.size > 0) == (saved_at >= full_from)
        assert_same_bits(opt, drive(other, end - saved_at, rotated_ellipsoid))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("V", np.zeros((9, 4))),
        ("V", np.zeros((10, 11))),
        ("V", np.zeros(10)),
        ("V", np.zeros((10, 0))),
        ("V", np.zeros((10, 4, 1))),
        ("V", np.zeros((10, 4), np.float32)),
        ("S", np.ones(3)),
        ("S", np.ones(0)),
        ("S", np.ones((4, 1))),
        ("S", np.ones(())),
        ("B", np.eye(9)),
        ("B", np.zeros((0, 10))),
        ("B", np.zeros((10, 0))),
        ("B", np.zeros(10)),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.shape}-{value.dtype}",
)
def test_axes_that_do_not_fit_are_refused(field, wrong, tmp_path):
    path = tmp_path / "search.npz"
    content = drive(start("auto", dim=10), 3).to_saved()
    assert content["state"].V.shape == (10, 4)
    content["state"] = content["state"]._replace(**{field: wrong})
    npz.write(path, content)
    with pytest.raises(ValueError, match=r"^path: .*state\.[VSB]: expected "):
        fmnes.Optimizer.load(path)


def test_a_search_from_before_learning_rates_adapted_goes_on_without_them(tmp_path):
    """Files of format 5 know neither the setting nor the fields of the state."""
    path = tmp_path / "search.npz"
    opt = drive(start(fmnes.Auto(adapt=None), dim=10), 3)
    opt.save(path)
    with np.load(path) as file:
        content = json.loads(file["header"].tobytes())["content"]
    del content["dict"]["setup"]["fields"]["settings"]["fields"]["adapt"]
    for name in ("eta", "m_gradient", "m_averages", "sigma_averages"):
        del content["dict"]["state"]["fields"][name]
    with_header(path, path.read_bytes(), content=content)
    old = fmnes.Optimizer.load(path)
    one, other = drive(old, 3), drive(opt, 3)
    np.testing.assert_array_equal(one.ask(), other.ask())


def test_a_state_with_neither_axes_nor_a_matrix_is_refused(tmp_path):
    path = tmp_path / "search.npz"
    content = drive(start("auto", dim=10), 3).to_saved()
    nothing = {"V": np.zeros((10, 0)), "S": np.ones(0)}
    content["state"] = content["state"]._replace(**nothing)
    npz.write(path, content)
    with pytest.raises(ValueError, match=r"^path: .*state"):
        fmnes.Optimizer.load(path)


def test_a_file_of_another_version_loads_with_a_warning(tmp_path, caplog):
    path = tmp_path / "search.npz"
    opt = drive(start("cr-fm-nes"), 3)
    opt.save(path)
    assert_same_bits(fmnes.Optimizer.load(path), opt)
    assert caplog.records == []
    with_header(path, path.read_bytes(), numpy="1.0")
    assert_same_bits(fmnes.Optimizer.load(path), opt)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "'numpy': '1.0'" in record.getMessage()


def test_a_later_format_is_refused_by_its_number(tmp_path):
    path = tmp_path / "later.npz"
    header = b'{"format": 99, "content": {"dict": {}}}'
    np.savez(path, header=np.frombuffer(header, np.uint8))
    assert "format is 99" in refused(path)


class Trap:
    """Unpickling one would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_no_code_of_a_file_runs(tmp_path):
    path, sprung = tmp_path / "trap.npz", tmp_path / "sprung"
    np.savez(path, header=np.array([Trap(sprung)], dtype=object))
    refused(path)
    assert not sprung.exists()


def test_a_file_of_minimize_is_told_apart(tmp_path):
    path = tmp_path / "run.npz"
    fmnes.minimize(sphere, [3.0] * 3, 2.0, maxiter=3, rng=1, checkpoint=path)
    assert "minimize(..., checkpoint=path)" in refused(path)
    start("cr-fm-nes", 3).save(path)
    with pytest.raises(ValueError, match=r"^checkpoint: "):
        fmnes.minimize(sphere, [3.0] * 3, 2.0, maxiter=3, rng=1, checkpoint=path)


def test_objects_are_not_saved(tmp_path):
    """An object array would need a pickle."""
    opt = start(fmnes.SNES(D=np.array([1.0] * 5, dtype=object)))
    with pytest.raises(TypeError, match="dtype object"):
        opt.save(tmp_path / "search.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        fmnes.Optimizer.load(tmp_path / "nowhere.npz")
    with pytest.raises(FileNotFoundError):
        start("cr-fm-nes").save(tmp_path / "no" / "folder.npz")
