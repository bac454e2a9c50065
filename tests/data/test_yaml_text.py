import re
from pathlib import Path

import pytest

from bench.data.yaml_text import BYTES, YamlError, parse_yaml, read_yaml

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 10)
)


def test_plain_configuration_is_read() -> None:
    text = "methods: [dp-simple, {cadp: {epsilon: 0.5, seed: 3}}]\n"
    text += "seeds: [0, -1]\nbalance: false\nsize: ~\nn: &n [1]\nm: *n"
    assert parse_yaml(text) == {
        "methods": ["dp-simple", {"cadp": {"epsilon": 0.5, "seed": 3}}],
        "seeds": [0, -1],
        "balance": False,
        "size": None,
        "n": [1],
        "m": [1],
    }
    assert parse_yaml("") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' occurs twice"),
        ("a:\n  1: x\n  true: y\n  true: z", "the key 'true' occurs twice"),
        ("a:\n\t- b", "line 2: found a tab, expected spaces"),
        ("[" * 2000 + "]" * 2000, "nested deeper than 32 levels"),
        ("[" * 2000, "nested deeper than 32 levels"),
        ("{a: " * 2000, "nested deeper than 32 levels"),
        ("- " * 2000 + "x", "nested deeper than 32 levels"),
        ("".join(" " * level + "a:\n" for level in range(2000)), "nested deeper than 32 levels"),
        ("a: &a [" + "[" * 20 + "]" * 20 + "]\nb: " + "[" * 20 + "*a" + "]" * 20, "or 32 levels"),
        (BOMB, "more than 100000 values"),
        ("a: &a [*a]", "has no anchor before it"),
        ("a: *b", "has no anchor before it"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("!!python/name:os.system", "could not determine a constructor"),
        ("a: !mine 3", "could not determine a constructor"),
        ("a:\n\tb: 1", "line 2"),
        ("? [1, 2]\n: x", "expected a plain key"),
        ("seed: " + "9" * 5000, "may be meant as a number or as text"),
        ("seed: 010", "line 1: '010' may be meant as a number"),
        ("seed: 1:30", "'1:30' may be"),
        ("seed: 1_000", "'1_000' may be"),
        ("seed: 0x1F", "'0x1F' may be"),
        ("day: 2024-13-45", "not YAML"),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("a: \0", "not YAML"),
        ("a: [1", "line 1"),
        ("%YAML 9.9\n---\na: 1", "incompatible"),
        ("a: !!float x", "not YAML"),
        ("a: !!int ''", "may be"),
        ("a: !!binary '\u00e4'", "line 1"),
        ("<<: 3", "line 1"),
    ],
)
def test_text_that_may_mean_something_else_is_refused_by_its_line(text: str, reason: str) -> None:
    with pytest.raises(YamlError, match=re.escape(reason)) as caught:
        parse_yaml(text)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("naïve: 1".encode("latin-1"), "expected UTF-8, found another encoding"),
        ("a: 1".encode("utf-16"), "expected UTF-8"),
        (b"a: \xed\xa0\x80", "expected UTF-8"),
        (b"#" * (BYTES + 1), "expected at most"),
    ],
)
def test_files_of_another_encoding_or_size_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(YamlError, match=reason):
        read_yaml(tmp_path / "a.yaml")


def test_a_byte_order_mark_is_passed_over_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_yaml(tmp_path / "a.yaml") == {"a": 1}
    with pytest.raises(YamlError, match="found a folder"):
        read_yaml(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_yaml(tmp_path / "b.yaml")
