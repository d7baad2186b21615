import pytest

from webhook.config.documents import ConfigError, ConfigWarning, read_file, read_text


def test_reads_every_document_with_the_line_of_each_value():
    text = "a: 1\nb:\n- x\n- {c: 2}\n---\n# nothing\n---\nd: {e: 3}\n"
    documents, errors = read_text(text, "f.yaml")
    assert errors == ()
    assert [d.value for d in documents] == [{"a": 1, "b": ["x", {"c": 2}]}, {"d": {"e": 3}}]
    assert documents[0].line(("b", 1, "c")) == 4
    assert documents[1].line(("d", "e")) == 8
    assert documents[0].line(("b", 7, "nope")) == 2, "the nearest thing around it"


LAUGHS = "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mode: off", {"mode": "off"}),
        ("a: [yes, no, on, y, True, false]", {"a": ["yes", "no", "on", "y", True, False]}),
        ("day: 2024-01-01", {"day": "2024-01-01"}),
        ("cpus: 0-55,112-167", {"cpus": "0-55,112-167"}),
        ("a: [1, 0.5, null, ~, '1']", {"a": [1, 0.5, None, None, "1"]}),
        ('{"json": [true, 1e3]}', {"json": [True, "1e3"]}),
        ("base: &b {x: 1}\nall: {<<: *b, y: 2}", {"base": {"x": 1}, "all": {"x": 1, "y": 2}}),
    ],
)
def test_words_stay_words(text, value):
    documents, errors = read_text(text, "f")
    assert errors == ()
    assert documents[0].value == value


@pytest.mark.parametrize(
    ("text", "line", "path", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "a", "is written twice"),
        ("s: {t: [{x.y/z: 1, x.y/z: 1}]}", 1, "s.t[0][x.y/z]", "is written twice"),
        ("a: [1,\n", 2, "", "is no YAML"),
        ("a:\n\t- b\n", 2, "", "is no YAML"),
        ("? {a: 1}\n: 2\n", 1, "", "is no YAML"),
        ("a: !!python/object:os.system {}\n", 1, "", "is no YAML"),
        ("[" * 5000, 1, "", "nesting depth"),
        ("a: &x [*x]", 0, "", "refers to itself"),
        (
            "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
            0,
            "",
            "at most 300000 values",
        ),
    ],
)
def test_says_where_a_file_is_broken(text, line, path, message):
    _, errors = read_text(text, "f.yaml")
    assert [(e.file, e.line, e.path) for e in errors] == [("f.yaml", line, path)]
    assert message in errors[0].message


def test_the_documents_before_a_broken_one_still_count():
    documents, errors = read_text("a: 1\n---\nb: [\n", "f")
    assert [d.value for d in documents] == [{"a": 1}]
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read"), (b"a: \xff\n", "expected UTF-8"), (b"#" * (8 * 1024**2 + 1), "expected at most")],
)
def test_files_that_cannot_be_read_are_errors(tmp_path, content, message):
    file = tmp_path / "f.yaml"
    if content is not None:
        file.write_bytes(content)
    documents, errors = read_file(file)
    assert documents == ()
    assert [e.file for e in errors] == [str(file)]
    assert message in errors[0].message


def test_an_item_keeps_its_lines():
    documents, _ = read_text("items:\n- a: 1\n- b:\n    c: 2\n", "f")
    item = documents[0].item(("items", 1), documents[0].value["items"][1])
    assert (item.value, item.line(("b", "c"))) == ({"b": {"c": 2}}, 4)


def test_findings_read_top_down():
    assert str(ConfigError("f.yaml", 3, "spec.mode", "is wrong")) == "f.yaml:3: spec.mode: is wrong"
    assert str(ConfigWarning("f.yaml", 0, "", "is odd")) == "f.yaml: is odd"
