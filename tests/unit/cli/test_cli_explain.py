"""`numalign explain`: manifests in, verdicts, changes, maps and the lines to edit out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from webhook.cli.group import numalign

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {nvidia.com/gpu.machine: DGXH100}
      containers:
      - name: trainer
        image: registry.example/train:1
        resources:
          limits:
            nvidia.com/gpu: %s
"""


def run(*args: str, text: str | None = None) -> Result:
    return CliRunner().invoke(numalign, ["explain", "--class", "dgx-h100", *args], input=text)


def explained(*args: str, text: str | None = None) -> tuple[Result, list[dict[str, Any]]]:
    result = run(*args, "-o", "json", text=text)
    return result, json.loads(result.stdout)


@pytest.fixture
def job(tmp_path: Path) -> Any:
    def write(gpus: int, name: str = "job.yaml") -> str:
        (tmp_path / name).write_text(JOB % gpus)
        return str(tmp_path / name)

    return write


def test_a_pod_that_the_mutation_aligns(job: Any) -> None:
    result, (found,) = explained("-f", job(2))
    assert result.exit_code == 0
    assert (found["object"], found["line"], found["mode"], found["outcome"]) == ("Job/train", 6, "strict", "mutated")
    (on,) = found["classes"]
    assert (on["class"], on["verdict"], on["beforeMutation"]) == ("dgx-h100", "aligned", "admitted")
    assert on["placements"]["trainer"]["devices"] == {"nvidia.com/gpu": {"0": 2}}
    assert {operation["op"] for operation in found["patch"]} == {"add"}
    assert found["fixes"] == []


def test_a_refusal_names_file_and_line_of_the_field(job: Any) -> None:
    file = job(5)
    result, (found,) = explained("-f", file)
    assert result.exit_code == 1
    assert not found["allowed"]
    assert found["fixes"][0]["changes"] == [
        {
            "file": file,
            "line": 15,
            "container": "trainer",
            "field": "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]",
            "present": "5",
            "value": "4",
            "advice": "now 5, use 4",
        }
    ]
    assert Path(file).read_text().splitlines()[14].strip() == "nvidia.com/gpu: 5"


def test_a_request_that_the_manifest_has_is_to_change_with_its_limit() -> None:
    text = (JOB % "5").replace("limits:", "requests: {nvidia.com/gpu: 5}\n          limits:")
    _, (found,) = explained("-f", "-", text=text)
    (change,) = found["fixes"][0]["changes"]
    assert (change["field"][-22:], change["advice"]) == ("limits[nvidia.com/gpu]", "now 5, use 4 (limits and requests)")
    page = run("-f", "-", text=text).stdout
    assert "now 5, use 4 (limits and requests)" in page.replace("\n", " ")


def test_a_missing_field_points_at_what_it_belongs_into(tmp_path: Path) -> None:
    text = (JOB % "1") + "      - {name: proxy, image: i, resources: {requests: {cpu: 100m}}}\n"
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: numalign.io/v1alpha1\nkind: Policy\nspec: {memory: {inject: never}}\n")
    result, (found,) = explained("-f", "-", "--policy", str(policy), text=text)
    fields = {change["field"]: change["line"] for change in found["fixes"][0]["changes"]}
    assert fields["spec.template.spec.containers[1].resources.limits.memory"] == 16
    assert result.exit_code == 1


def test_the_page_shows_verdict_diff_map_and_fix(job: Any) -> None:
    page = run("-f", job(2)).stdout
    assert "aligned (was admitted)" in page
    assert "+        cpu:" in page
    assert "NUMA node 0" in page
    assert "nvidia.com/gpu ■■ 2" in page
    refused = run("-f", job(5)).stdout
    assert "strict: refused" in refused
    assert "trainer needs 5 GPUs on one NUMA node; each has 4" in refused
    assert "job.yaml:15" in refused.replace("\n", "")
    assert "now 5, use 4" in refused.replace("\n", " ")


def test_modes_decide_whether_it_is_refused(job: Any) -> None:
    result, (found,) = explained("-f", job(5), "--mode", "best-effort")
    assert (result.exit_code, found["outcome"], found["mode"]) == (0, "warned", "best-effort")
    result, (found,) = explained("-f", job(5), "--mode", "audit")
    assert (result.exit_code, found["outcome"]) == (0, "would-refuse")


def test_directories_lists_and_several_documents(tmp_path: Path) -> None:
    pods = [yaml.safe_load(JOB % count) for count in (1, 2)]
    (tmp_path / "list.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": pods}))
    (tmp_path / "two.yaml").write_text("---\n".join([JOB % "1", "kind: ConfigMap\n", JOB % "2"]))
    (tmp_path / "notes.txt").write_text("not a manifest")
    _, found = explained("-f", str(tmp_path))
    assert [Path(each["file"]).name for each in found] == ["list.yaml", "list.yaml", "two.yaml", "two.yaml"]


def test_pods_without_accelerators_are_left_alone() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web, image: i}]}\n"
    result, (found,) = explained("-f", "-", text=text)
    assert (result.exit_code, found["object"], found["outcome"], found["classes"]) == (0, "Pod/web", "not-ours", [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: [", "is no YAML"),
        ("kind: ConfigMap\n", "no pod, no pod template and no claim in -"),
    ],
)
def test_bad_input_exits_with_two(text: str, expected: str) -> None:
    result = run("-f", "-", text=text)
    assert result.exit_code == 2
    assert expected in result.stderr


def test_an_unknown_class_and_a_missing_file_are_bad_input() -> None:
    result = CliRunner().invoke(numalign, ["explain", "-f", "nowhere.yaml"])
    assert result.exit_code == 2
    assert "nowhere.yaml: cannot be read" in result.stderr
    result = CliRunner().invoke(numalign, ["explain", "--class", "dgx-h1000", "-f", "-"], input=JOB % 1)
    assert result.exit_code == 2
    assert "no class is called 'dgx-h1000'" in result.stderr


LIMIT_RANGE = """\
apiVersion: v1
kind: LimitRange
metadata: {name: bounds%s}
spec:
  limits:
  - %s
"""


def test_a_limit_range_among_the_manifests_counts(job: Any, tmp_path: Path) -> None:
    (tmp_path / "bounds.yaml").write_text(LIMIT_RANGE % ("", "{type: Pod, max: {cpu: 6, memory: 8Gi}}"))
    result, (found,) = explained("-f", job(2), "-f", str(tmp_path / "bounds.yaml"))
    assert result.exit_code == 0
    assert {each["path"].rpartition("/")[2]: each["value"] for each in found["patch"] if "/limits/" in each["path"]} == {
        "cpu": "6",
        "memory": "8Gi",
    }
    assert "less than its share: LimitRange bounds: max cpu per Pod is 6, the pod would get " in found["warnings"][0]


def test_a_limit_range_of_another_namespace_does_not(job: Any, tmp_path: Path) -> None:
    (tmp_path / "bounds.yaml").write_text(LIMIT_RANGE % (", namespace: other", "{type: Pod, max: {cpu: 6, memory: 8Gi}}"))
    _, with_it = explained("-f", job(2), "-f", str(tmp_path / "bounds.yaml"))
    _, without = explained("-f", job(2))
    assert with_it == without


def test_a_limit_ranges_defaults_come_first(job: Any, tmp_path: Path) -> None:
    """They count as the author's own numbers: 9 CPUs are half a core too many, and 10 more than the LimitRange takes."""
    (tmp_path / "bounds.yaml").write_text(LIMIT_RANGE % ("", "{type: Container, max: {cpu: 9}, default: {memory: 4Gi}}"))
    _, (found,) = explained("-f", job(2), "-f", str(tmp_path / "bounds.yaml"))
    assert found["outcome"] == "refused"
    assert found["message"].startswith("LimitRange bounds: max cpu per Container is 9, trainer would get 10.")
    assert "trainer, resources.limits.cpu: now 9, use 8" in found["message"]


def test_a_pod_that_a_limit_range_keeps_from_being_aligned(job: Any, tmp_path: Path) -> None:
    (tmp_path / "bounds.yaml").write_text(LIMIT_RANGE % ("", "{type: Pod, max: {cpu: 1}}"))
    result = run("-f", job(2), "-f", str(tmp_path / "bounds.yaml"))
    assert result.exit_code == 1
    assert "not shaped: LimitRange bounds: max cpu per Pod is 1, the pod would get 2" in " ".join(result.stdout.split())
