"""`fmnes watch` without a browser: what it says of a folder, and whom it says it to."""

import http.client
import json
import math
import os
import re
import threading
import time
import tracemalloc

import pytest

from cli.common import history, nrows, result, start, until
from fmnes.cli import main
from fmnes.cli._folder import Folder
from fmnes.cli._view import View
from fmnes.cli._watch import Server


@pytest.fixture
def server(tmp_path):
    with Server(Folder(tmp_path / "out"), 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, path="/data", host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    headers = {"Host": f"127.0.0.1:{server.server_port}" if host is None else host}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def run(tmp_path, words):
    out = str(tmp_path / "out")
    assert main(["run", *words.split(), "--quiet", "--no-plot", "--rng", "1", "--out", out]) == 0


def test_it_follows_a_run(server, tmp_path):
    data = json.loads(ask(server)[1])
    assert (data["state"], data["rows"], data["last"]["best"]) == ("waiting", 0, None)
    words = "cli.common:holes --x0 3 --dim 5 --sigma0 2 --maxfevals 402"
    run(tmp_path, words)
    data = json.loads(ask(server)[1])
    columns = history(tmp_path / "out")
    assert (data["state"], data["status"], data["rows"]) == ("ended", "maxfevals", 50)
    assert (data["title"], data["dim"], data["maxfevals"]) == ("cli.common:holes", 5, 402)
    for name, column in columns.items():
        shown = [value if math.isfinite(value) else None for value in column]
        assert data["curves"][name] == shown, name
        assert data["last"][name] == shown[-1]
    assert data["last"]["nfailed"] > 0
    first, *rest = columns["seconds_objective"]
    seconds = [first / 10, *(s / 8 for s in rest)]  # with the first generation, x0 twice
    assert data["curves"]["evaluation"] == seconds


def test_long_runs_are_thinned(tmp_path):
    run(tmp_path, "cli.common:rows --x0 3 --dim 3 --sigma0 2 --vectorized")
    first = View(Folder(tmp_path / "out")).data()
    assert len(first["curves"]["nfev"]) == first["rows"] == len(history(tmp_path / "out")["nfev"])
    path = tmp_path / "out" / "history.csv"
    header, *lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([header, *lines * 30]))
    data = View(Folder(tmp_path / "out")).data()
    assert data["rows"] == 30 * len(lines) > 2000
    assert len(data["curves"]["nfev"]) <= 801
    assert data["curves"]["nfev"][-1] == data["last"]["nfev"] == first["last"]["nfev"]


def test_a_long_history_is_not_held_in_memory(tmp_path):
    run(tmp_path, "cli.common:rows --x0 3 --dim 3 --sigma0 2 --vectorized")
    path = tmp_path / "out" / "history.csv"
    header, *lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"".join(lines) * (20_000_000 // len(b"".join(lines))))
    view = View(Folder(tmp_path / "out"))
    tracemalloc.start()
    try:
        data = view.data()
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 2
    finally:
        tracemalloc.stop()
    assert data["rows"] % len(lines) == 0
    assert 400 <= len(data["curves"]["best"]) <= 801
    path.write_bytes(path.read_bytes() + lines[0])
    assert view.data()["rows"] == data["rows"] + 1


def test_an_infinite_target_is_valid_json(server, tmp_path):
    run(tmp_path, "cli.common:sphere --x0 3 --dim 2 --sigma0 2 --maxiter 3 --ftarget=-inf")
    body = ask(server)[1]
    config = (tmp_path / "out" / "config.json").read_bytes()
    for text in (body, config):
        json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert Folder(tmp_path / "out").read_options().ftarget == -math.inf


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"1,2,3", b"a,b", b",".join([b"x"] * 14)])
def test_damaged_rows_are_left_out(server, damage, tmp_path):
    run(tmp_path, "cli.common:sphere --x0 3 --dim 2 --sigma0 2 --maxiter 9")
    path = tmp_path / "out" / "history.csv"
    whole = json.loads(ask(server)[1])
    lines = path.read_bytes().splitlines()
    path.unlink()
    path.write_bytes(b"\n".join([*lines[:4], damage, *lines[5:], damage, b""]))
    data = json.loads(ask(server)[1])
    assert data["last"] == whole["last"]
    best = whole["curves"]["best"]
    assert data["curves"]["best"] == best[:3] + best[4:]


def test_a_damaged_result_is_named(server, tmp_path):
    run(tmp_path, "cli.common:sphere --x0 3 --dim 2 --sigma0 2 --maxiter 3")
    for name in ("result.json", "config.json"):
        (tmp_path / "out" / name).write_text("{")
        data = json.loads(ask(server)[1])
        assert (data["state"], data["rows"]) == ("stopped", 3)
        assert "DIR: " in data["message"]


def test_the_best_candidate_is_shown(server, tmp_path):
    run(tmp_path, "cli.common:sphere --x0 3 --dim 20 --sigma0 2 --maxiter 30")
    x = result(tmp_path / "out")["x"]
    assert json.loads(ask(server)[1])["x"] == x
    words = ["run", "cli.common:sphere", "--x0", f"@{tmp_path}/out/best.txt", "--sigma0", "1"]
    out = str(tmp_path / "more")
    assert main([*words, "--maxiter", "2", "--quiet", "--no-plot", "--out", out]) == 0
    config = json.loads((tmp_path / "more" / "config.json").read_text())
    assert config["x0"] == x


def test_rows_are_taken_when_they_are_whole(tmp_path):
    run(tmp_path, "cli.common:sphere --x0 3 --dim 3 --sigma0 2 --maxiter 10")
    path = tmp_path / "out" / "history.csv"
    text = path.read_text()
    view = View(Folder(tmp_path / "out"))
    cut = text.rfind("\n", 0, -20) - 30  # within the row before the last
    path.write_text(text[:cut])
    assert view.data()["rows"] == 8
    with path.open("a") as file:
        file.write(text[cut:])
    assert view.data()["rows"] == 10
    assert view.data()["curves"]["best"] == history(tmp_path / "out")["best"]
    path.unlink()
    path.write_text(text[: text.index("\n") + 1])  # it begins anew
    assert view.data()["rows"] == 0


def test_a_run_that_was_killed_is_said_to_have_stopped(server, tmp_path):
    words = "run cli.common:slow --x0 3 --dim 5 --sigma0 1 --quiet --out out"
    process = start(*words.split(), cwd=tmp_path)
    until(lambda: nrows(tmp_path / "out") >= 1)
    data = json.loads(ask(server)[1])
    assert (data["state"], data["title"]) == ("running", "cli.common:slow")
    process.kill()
    process.communicate(timeout=60)
    an_hour_ago = time.time() - 3600
    os.utime(tmp_path / "out" / "history.csv", (an_hour_ago, an_hour_ago))
    data = json.loads(ask(server)[1])
    assert data["state"] == "stopped"
    assert "fmnes resume" in data["message"]


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "localhost:1", "127.0.0.1.nip.io"])
def test_other_hosts_are_refused(server, host):
    for path in ("/", "/data"):
        answer, body = ask(server, path, host)
        assert answer.status == 403
        assert body.startswith(b"Host: ")


@pytest.mark.parametrize(
    "path",
    [
        "/config.json",
        "/../config.json",
        "/%2e%2e/config.json",
        "/page/watch.js",
        "/etc/passwd",
    ],
)
def test_there_is_no_way_to_other_files(server, path, tmp_path):
    run(tmp_path, "cli.common:sphere --x0 3 --dim 1 --sigma0 2 --maxiter 2")
    assert ask(server, path)[0].status == 404


def test_the_page_loads_nothing_from_elsewhere(server):
    host = f"localhost:{server.server_port}"
    for path, kind in {"/": "html", "/watch.css": "css", "/watch.js": "javascript"}.items():
        answer, body = ask(server, path, host)
        assert answer.status == 200
        assert kind in answer.headers["Content-Type"]
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; ")
        assert re.findall(rb"https?://[^\s\"]*", body) in ([], [b"http://www.w3.org/2000/svg"])
    assert server.server_address[0] == "127.0.0.1"


def test_other_ways_of_asking_are_refused(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    connection.request("POST", "/data", body="{}")
    assert connection.getresponse().status == 501
    connection.close()


def test_a_port_that_is_taken(server, tmp_path, capsys):
    assert main(["watch", str(tmp_path / "out"), "--port", str(server.server_port)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fmnes watch: --port: ")
    assert str(server.server_port) in line
    (tmp_path / "file").touch()
    assert main(["watch", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.startswith("fmnes watch: DIR: ")
