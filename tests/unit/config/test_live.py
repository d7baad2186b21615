"""The set in force: what changes on disk comes in as a whole, and what is bad stays out. No clock: each look is asked for."""

import json
import os
import threading
from copy import deepcopy

import pytest
import yaml

from webhook.config import live as live_module
from webhook.config.live import Live
from webhook.core.policy import Mode


def write(path, content):
    """Replace a file as an editor does: the inode changes, however coarse the file system's clock is."""
    new = path.with_suffix(".new")
    new.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    new.replace(path)


def policy(mode):
    return {"apiVersion": "numalign.io/v1alpha1", "kind": "Policy", "spec": {"mode": mode}}


@pytest.fixture
def files(tmp_path, document):
    classes = tmp_path / "classes"
    classes.mkdir()
    write(tmp_path / "policy.yaml", policy("audit"))
    write(classes / "box.yaml", document)
    return tmp_path


@pytest.fixture
def live(files):
    return Live(policy=files / "policy.yaml", classes=[files / "classes"])


def names(live):
    return [kubelet.node_class.name for kubelet in live.current().classes]


def other(document):
    document = deepcopy(document)
    document["metadata"]["name"] = "other"
    document["spec"]["selector"] = {"example.com/machine": "other"}
    return document


def test_the_first_set_is_there_at_once(live):
    assert (live.current().policy.mode, names(live), live.current().generation) == (Mode.AUDIT, ["box"], 1)
    assert (live.status.ok, live.status.generation, live.status.last_error) == (True, 1, "")


def test_without_files_the_shipped_policy_is_in_force():
    assert Live().current().policy.mode is Mode.STRICT
    assert names(Live()) == []
    assert len(names(Live(all_builtin=True))) >= 12


def test_what_did_not_change_is_not_loaded_again(live):
    before = live.current()
    assert live.check_now() is False
    assert live.current() is before


def test_a_changed_policy_comes_in(live, files):
    write(files / "policy.yaml", policy("strict"))
    assert live.check_now() is True
    assert (live.current().policy.mode, live.current().generation) == (Mode.STRICT, 2)


def test_a_new_and_a_removed_class_come_in(live, files, document):
    write(files / "classes" / "other.yaml", other(document))
    assert live.check_now()
    assert names(live) == ["box", "other"]
    (files / "classes" / "box.yaml").unlink()
    assert live.check_now()
    assert names(live) == ["other"]


def test_a_bad_file_keeps_the_last_good_set_until_it_is_repaired(live, files, document):
    before = live.current()
    write(files / "classes" / "box.yaml", "kind: [")
    assert live.check_now()
    assert live.current() is before
    assert (live.status.ok, live.status.generation) == (False, 1)
    assert "box.yaml:2: is no YAML" in live.status.last_error
    assert live.check_now() is False, "the same bad file is not read again"
    document["spec"]["labels"] = {"repaired": "yes"}
    write(files / "classes" / "box.yaml", document)
    assert live.check_now()
    assert (live.status.ok, live.current().generation) == (True, 2)
    assert live.current().classes[0].node_class.labels == {"repaired": "yes"}


def test_nothing_of_a_half_bad_set_comes_in(live, files):
    write(files / "policy.yaml", policy("strict"))
    write(files / "classes" / "bad.yaml", "kind: NodeClass\n")
    assert live.check_now()
    assert live.current().policy.mode is Mode.AUDIT


def test_a_kubelet_that_would_not_start_keeps_the_last_good_set(live, files, document):
    document["spec"]["kubelet"]["topologyManagerPolicy"] = "strictest"
    write(files / "classes" / "box.yaml", document)
    assert live.check_now()
    assert "would not start" in live.status.last_error
    assert names(live) == ["box"]


def test_a_vanished_file_keeps_the_last_good_set(live, files):
    (files / "policy.yaml").unlink()
    assert live.check_now()
    assert (live.status.ok, live.current().policy.mode) == (False, Mode.AUDIT)


def test_a_set_that_was_never_good_is_empty(tmp_path):
    live = Live(policy=tmp_path / "nope.yaml")
    assert (live.current().generation, live.current().classes, live.status.ok) == (0, (), False)
    assert live.current().catalogue.find("nvidia.com/gpu"), "the shipped catalogue needs no file of the operator's"
    write(tmp_path / "nope.yaml", policy("best-effort"))
    assert live.check_now()
    assert (live.current().generation, live.current().policy.mode) == (1, Mode.BEST_EFFORT)


def test_a_config_map_swap_is_noticed(tmp_path, document):
    """A kubelet writes a new directory, then swaps the link `..data`; the files are links through it and stay as they are."""
    volume = tmp_path / "volume"
    volume.mkdir()

    def publish(stamp, mode, classes):
        data = volume / f"..{stamp}"
        data.mkdir()
        (data / "policy.yaml").write_text(yaml.safe_dump(policy(mode)))
        (data / "classes.yaml").write_text(yaml.safe_dump(classes))
        link = volume / "..data_tmp"
        link.symlink_to(data.name)
        link.replace(volume / "..data")

    publish("2026_01", "audit", [document])
    for name in ("policy.yaml", "classes.yaml"):
        (volume / name).symlink_to(f"..data/{name}")
    live = Live(policy=volume / "policy.yaml", classes=[volume / "classes.yaml"])
    assert (live.current().policy.mode, names(live)) == (Mode.AUDIT, ["box"])
    publish("2026_02", "strict", [document, other(document)])
    assert live.check_now()
    assert (live.current().policy.mode, names(live)) == (Mode.STRICT, ["box", "other"])
    assert live.check_now() is False


def test_a_directory_of_links_is_followed(tmp_path, document):
    for stamp, content in (("one", document), ("two", other(document))):
        (tmp_path / f"..{stamp}").mkdir()
        (tmp_path / f"..{stamp}" / "class.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "class.yaml").symlink_to("..data/class.yaml")
    live = Live(classes=[tmp_path])
    assert names(live) == ["box"]
    (tmp_path / "..new").symlink_to("..two")
    (tmp_path / "..new").replace(tmp_path / "..data")
    assert live.check_now()
    assert names(live) == ["other"]


def test_a_change_in_place_is_noticed_by_its_time(live, files):
    file = files / "policy.yaml"
    stat = file.stat()
    file.write_text(yaml.safe_dump(policy("audit")))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert live.check_now()


def test_listeners_hear_of_the_first_and_of_every_later_look(live, files):
    heard = []
    live.subscribe(heard.append)
    assert [(status.ok, status.generation) for status in heard] == [(True, 1)]
    write(files / "policy.yaml", policy("nonsense"))
    live.check_now()
    write(files / "policy.yaml", policy("strict"))
    live.check_now()
    live.check_now()
    assert [(status.ok, status.generation) for status in heard] == [(True, 1), (False, 1), (True, 2)]


def test_warnings_are_in_the_status(files, document):
    document["spec"]["kubernetes"] = "1.50"
    write(files / "classes" / "box.yaml", document)
    status = Live(classes=[files / "classes"]).status
    assert status.ok
    assert [warning.path for warning in status.warnings] == ["spec.kubernetes"]


def test_built_in_classes_come_with_the_policy(live, files, document):
    document["spec"]["labels"] = {"nvidia.com/gpu.machine": "BOX"}
    write(files / "classes" / "box.yaml", document)
    write(files / "policy.yaml", {**policy("strict"), "spec": {"builtinClasses": ["dgx-h100"]}})
    live.check_now()
    assert names(live) == ["box", "dgx-h100"]


def test_a_policys_accelerators_are_in_the_catalogue(live, files):
    entry = {"name": "example.com/npu", "kind": "device", "vendor": "Example"}
    assert live.current().catalogue.find("example.com/npu") is None
    write(files / "policy.yaml", {**policy("strict"), "spec": {"accelerators": [entry]}})
    live.check_now()
    assert live.current().catalogue.find("example.com/npu").vendor == "Example"


def test_an_error_of_our_own_keeps_the_last_good_set(live, files, monkeypatch):
    def broken(_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(live_module, "load_policy", broken)
    write(files / "policy.yaml", policy("strict"))
    assert live.check_now()
    assert live.current().policy.mode is Mode.AUDIT
    assert "a bug" in live.status.last_error


def test_the_thread_looks_by_itself(files):
    live = Live(policy=files / "policy.yaml", every=0.001)
    changed = threading.Event()
    live.subscribe(lambda status: changed.set() if status.generation == 2 else None)
    live.start()
    live.start()
    try:
        write(files / "policy.yaml", policy("strict"))
        assert changed.wait(30)
        assert live.current().policy.mode is Mode.STRICT
    finally:
        live.stop()
    assert live.check_now() is False


def limits(most):
    spec = {"limits": [{"type": "Pod", "max": {"cpu": most}}]}
    return json.dumps({"items": [{"metadata": {"namespace": "team", "name": "bounds"}, "spec": spec}]})


def most(live):
    return [bound.amount // 10**9 for bound in live.current().limits.get("team", ())]


@pytest.fixture
def with_limits(files):
    return Live(policy=files / "policy.yaml", classes=[files / "classes"], limits=files / "limits.json")


def test_limit_ranges_may_come_later_and_change(with_limits, files):
    before = with_limits.current()
    assert most(with_limits) == []
    write(files / "limits.json", limits("6"))
    assert with_limits.check_limits() is True
    assert most(with_limits) == [6]
    assert with_limits.check_limits() is False
    write(files / "limits.json", limits("4"))
    assert with_limits.check_limits() is True
    assert most(with_limits) == [4]
    after = with_limits.current()
    assert (after.generation, after.candidates is before.candidates, after.remembered is before.remembered) == (1, True, True)
    (files / "limits.json").unlink()
    assert with_limits.check_limits() is True
    assert most(with_limits) == []


def test_limit_ranges_stay_when_the_rest_is_loaded_anew(with_limits, files):
    write(files / "limits.json", limits("6"))
    with_limits.check_limits()
    write(files / "policy.yaml", policy("strict"))
    assert with_limits.check_now()
    assert (most(with_limits), with_limits.current().generation) == ([6], 2)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '{"items": {}}', "[" * 100_000, "\xff"])
def test_bad_limit_ranges_are_told_and_the_last_good_ones_stay(with_limits, files, text):
    write(files / "limits.json", limits("6"))
    with_limits.check_limits()
    told = []
    with_limits.subscribe(told.append)
    write(files / "limits.json", text)
    assert with_limits.check_limits() is True
    assert most(with_limits) == [6]
    assert "LimitRanges stay as they were" in str(told[-1].warnings[0])
    assert told[-1].ok
    assert with_limits.status.warnings == ()


def test_a_file_that_is_bad_at_the_start_keeps_nothing_from_starting(files):
    write(files / "limits.json", "{")
    live = Live(policy=files / "policy.yaml", classes=[files / "classes"], limits=files / "limits.json")
    assert (live.status.ok, live.current().generation, most(live)) == (True, 1, [])


def test_it_may_begin_without_node_classes_but_not_lose_them(tmp_path, document):
    """A directory without files is how an empty ConfigMap looks: installed so, the webhook judges nothing yet."""
    live = Live(classes=[tmp_path])
    assert (live.status.ok, live.current().generation, names(live)) == (True, 1, [])
    assert "no node classes here" in str(live.status.warnings[0])
    write(tmp_path / "box.yaml", document)
    assert live.check_now()
    assert names(live) == ["box"]
    (tmp_path / "box.yaml").unlink()
    assert live.check_now()
    assert (live.status.ok, names(live)) == (False, ["box"])
    assert "found none" in live.status.last_error
