"""The same through S3, against a server in this process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from made.moody_folder import crew
from made.results_folders import CARRIED, files, folder

from bench.cli import main
from bench.results.results import Results
from bench.transfer.pull import pull
from bench.transfer.push import push
from bench.transfer.target import Target

moto = pytest.importorskip("moto.server", reason="moto is not installed: nothing is tried with S3")
pytest.importorskip("s3fs", reason="s3fs is not installed: nothing is tried with S3")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in {"ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "mine", "ENDPOINT_URL": server}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    import boto3

    name = f"b-{uuid.uuid4().hex}"
    boto3.client("s3").create_bucket(Bucket=name)
    return f"s3://{name}/results"


def test_what_is_pushed_to_s3_comes_back_the_same(bucket: str, tmp_path: Path) -> None:
    results, back = folder(tmp_path / "r"), Results(tmp_path / "back")
    target = Target.open(bucket)
    assert target.objects
    first = push(results, target, crew(target), named=False, check=False, step=lambda *_: None)
    assert (first.of("moved"), first.of("refused")) == (9, 0)
    again = push(results, target, crew(target), named=False, check=True, step=lambda *_: None)
    assert (again.of("there"), again.of("moved"), again.of("refused")) == (9, 0, 0)
    tally = pull(back, target, crew(target), prefer=None, step=lambda *_: None)
    assert (tally.of("moved"), tally.of("refused")) == (9, 0)
    assert files(back.root, *CARRIED) == files(results.root, *CARRIED)


def test_altered_objects_are_refused_and_sent_again(bucket: str, tmp_path: Path) -> None:
    results, back = folder(tmp_path / "r", count=1), Results(tmp_path / "back")
    target = Target.open(bucket)
    push(results, target, crew(target), named=False, check=False, step=lambda *_: None)
    for name in target.listed()[0]:
        if name.startswith("blobs/"):
            target.fs.pipe_file(f"{target.root}/{name}", b"cut short")
    tally = pull(back, target, crew(target), prefer=None, step=lambda *_: None)
    assert (tally.told("moved"), tally.told("refused")) == ("1 record", "1 detector, 1 record, 1 scheme")
    assert push(results, target, crew(target), named=False, check=False, step=lambda *_: None).of("moved") == 3
    assert pull(back, target, crew(target), prefer=None, step=lambda *_: None).of("refused") == 0
    assert files(back.root, *CARRIED) == files(results.root, *CARRIED)


def test_a_bucket_that_is_not_there_is_named(bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = folder(tmp_path / "r", count=1)
    assert main(["push", "s3://nobody-made-this/results", "--results", str(results.root)]) in (1, 2)
    assert "bucket does not exist" in capsys.readouterr().err
    assert main(["pull", f"{bucket}-empty", "--results", str(tmp_path / "back")]) == 2
    assert "there is nothing" in capsys.readouterr().err
