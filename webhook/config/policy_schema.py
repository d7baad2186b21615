"""The Policy document (DESIGN section 5) and the entries of the accelerator catalogue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from marshmallow import ValidationError, fields, post_load, validates_schema

from webhook.config.documents import read_file
from webhook.config.fields import (
    Bytes,
    Choice,
    Expect,
    Flag,
    Items,
    MilliCpu,
    ObjectName,
    ResourceName,
    Strict,
    Text,
)
from webhook.config.nodeclass_schema import API_VERSION, MetadataSchema, PageSize
from webhook.core.accelerators import COUNTED, Entry, Kind, NumaHint
from webhook.core.policy import ClaimRules, CpuRules, HugepageRules, MemoryRules, Mode, Policy

_CPU, _MEMORY, _HUGEPAGES, _CLAIMS = CpuRules(), MemoryRules(), HugepageRules(), ClaimRules()
_COUNTS: Final[Mapping[str, int | None]] = {"each": 1, "one": 0, "none": None}
_NOT_RE2: Final = re.compile(r"\(\?[=!<(P]|\\[1-9]")
_ONE_DOMAIN: Final = re.compile(r"([a-z0-9-]|\\[.]|\[[.]\]|[(]([a-z0-9|-]|\\[.])+[)])+/.+")


class CountsField(Expect[int | None]):
    """`each` unit is a device, all units sit on `one`, so many make one (`{per: 2}`), or `none` is; as units per device."""

    expected = "each, one, none, or {per: N} where N units make one device"

    def convert(self, raw: Any) -> int | None:
        """Convert; see `Expect`."""
        if isinstance(raw, str) and raw in _COUNTS:
            return _COUNTS[raw]
        per = raw.get("per") if isinstance(raw, Mapping) and len(raw) == 1 else None
        if isinstance(per, bool) or not isinstance(per, int) or per < 1:
            raise self.refuse(raw)
        return per


class PatternField(Expect[str]):
    """A regular expression that a resource name matches as a whole, within one vendor's domain."""

    expected = "a regular expression that begins with a domain and a slash, such as nvidia[.]com/mig-.*"

    def convert(self, raw: Any) -> str:
        """Convert; see `Expect`."""
        if not isinstance(raw, str) or not _ONE_DOMAIN.fullmatch(raw):
            raise self.refuse(raw)
        try:
            re.compile(raw)
        except re.error as error:
            raise ValidationError(f"is no regular expression: {error}") from None
        if _NOT_RE2.search(raw):
            raise ValidationError("has a look-around or back-reference, which the API server's expressions (RE2) do not have")
        return raw


class EntrySchema(Strict):
    """One entry of the accelerator catalogue; `load` returns an `accelerators.Entry`."""

    name = ResourceName(load_default="")
    pattern = PatternField(load_default="")
    kind = Choice([kind.value for kind in Kind], required=True)
    vendor = Text("the vendor's name", required=True)
    hint = Choice([hint.value for hint in NumaHint], load_default="unknown")
    hami = Flag(load_default=False)
    implies = ResourceName(load_default="")
    units_per_device = CountsField(data_key="counts")

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        """An entry has a name or a pattern."""
        if bool(data["name"]) == bool(data["pattern"]):
            raise ValidationError("expected either name or pattern")

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> Entry:
        """Return the core's form."""
        kind = Kind(data["kind"])
        counts = data.get("units_per_device", 1 if kind in COUNTED or kind is Kind.NIC else None)
        return Entry(**{**data, "kind": kind, "hint": NumaHint(data["hint"]), "units_per_device": counts})


def _entries() -> fields.List[Any]:
    expected = "expected a list of entries: name or pattern, kind, vendor"
    return fields.List(fields.Nested(EntrySchema), load_default=list, error_messages={"invalid": expected})


class CatalogueSchema(Strict):
    """The shipped catalogue's file."""

    accelerators = _entries()


class ExemptSchema(Strict):
    """Whose pods are left alone."""

    users = Items(Text("a user name"), load_default=())
    runtime_classes = Items(ObjectName(), load_default=(), data_key="runtimeClasses")


class CpuSchema(Strict):
    """`spec.cpu`."""

    source = Choice(("share", "request", "limit"), load_default="share")
    per_accelerator = MilliCpu(load_default=None, data_key="perAccelerator")
    default = MilliCpu(load_default=_CPU.default)

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        """A share is whole CPUs, and a container without any CPU could not be Guaranteed."""
        errors: dict[str, list[str]] = {}
        if (data["per_accelerator"] or 1000) % 1000 or data["per_accelerator"] == 0:
            errors["perAccelerator"] = ["expected whole CPUs, at least 1: the kubelet gives no fractions of its own"]
        if not data["default"]:
            errors["default"] = ["expected more than 0: without CPU a container keeps its pod from being Guaranteed"]
        if errors:
            raise ValidationError(errors)

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> CpuRules:
        """Return the core's form."""
        return CpuRules(**data)


class MemorySchema(Strict):
    """`spec.memory`."""

    inject = Choice(("always", "never"), load_default="always")
    default = Bytes(load_default=_MEMORY.default)

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        """A container without any memory could not be Guaranteed."""
        if not data["default"]:
            problem = "expected more than 0: without memory a container keeps its pod from being Guaranteed"
            raise ValidationError({"default": [problem]})

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> MemoryRules:
        """Return the core's form."""
        return MemoryRules(**data)


class HugepagesSchema(Strict):
    """`spec.hugepages`."""

    size = PageSize(load_default=_HUGEPAGES.size)
    per_accelerator = Bytes(load_default=0, data_key="perAccelerator")

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: Mapping[str, Any], **_: Any) -> None:
        """Hugepages come in whole pages."""
        if data["per_accelerator"] % data["size"]:
            raise ValidationError({"perAccelerator": ["expected a whole number of pages of spec.hugepages.size"]})

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> HugepageRules:
        """Return the core's form."""
        return HugepageRules(**data)


class ClaimsSchema(Strict):
    """`spec.claims`."""

    shape_pods = Flag(load_default=_CLAIMS.shape_pods, data_key="shapePods")
    prioritized_list = Flag(load_default=_CLAIMS.prioritized_list, data_key="prioritizedList")

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> ClaimRules:
        """Return the core's form."""
        return ClaimRules(**data)


@cache
def _shipped_exemptions() -> tuple[str, ...]:
    """Return the shipped policy's `exemptNamespaces`: a policy that does not have the field means these, too."""
    from webhook.config.catalogue import catalog_directory  # noqa: PLC0415  it imports this module

    documents, _ = read_file(catalog_directory() / "policy.yaml")
    return tuple(documents[0].value["spec"]["exemptNamespaces"])


class PolicySpecSchema(Strict):
    """`spec` of a Policy."""

    mode = Choice([mode.value for mode in Mode], load_default=Mode.STRICT.value)
    require_enforcement = Flag(load_default=False, data_key="requireEnforcement")
    coverage = Choice(("complete", "partial"), load_default="complete")
    builtin_classes = Items(ObjectName(), load_default=(), data_key="builtinClasses")
    annotation_may_relax = Flag(load_default=False, data_key="annotationMayRelax")
    exempt_namespaces = Items(ObjectName(), load_default=_shipped_exemptions, data_key="exemptNamespaces")
    exempt = fields.Nested(ExemptSchema, load_default=lambda: {"users": (), "runtime_classes": ()})
    accelerators = _entries()
    cpu = fields.Nested(CpuSchema, load_default=_CPU)
    memory = fields.Nested(MemorySchema, load_default=_MEMORY)
    hugepages = fields.Nested(HugepagesSchema, load_default=_HUGEPAGES)
    claims = fields.Nested(ClaimsSchema, load_default=_CLAIMS)
    shape_shared = Flag(load_default=False, data_key="shapeShared")
    steer = Flag(load_default=True)
    hami = Flag(load_default=True)


class PolicySchema(Strict):
    """A Policy document; `load` returns a `policy.Policy`."""

    expected = "a Policy document"

    api_version = Choice((API_VERSION,), required=True, data_key="apiVersion")
    kind = Choice(("Policy",), required=True)
    metadata = fields.Nested(MetadataSchema, load_default=dict)
    spec = fields.Nested(PolicySpecSchema, load_default=lambda: PolicySpecSchema().load({}))

    @post_load
    def build(self, data: Mapping[str, Any], **_: Any) -> Policy:
        """Return the core's form."""
        spec = dict(data["spec"])
        exempt = spec.pop("exempt")
        return Policy(
            mode=Mode(spec.pop("mode")),
            complete=spec.pop("coverage") == "complete",
            exempt_namespaces=frozenset(spec.pop("exempt_namespaces")),
            exempt_users=frozenset(exempt["users"]),
            exempt_runtime_classes=frozenset(exempt["runtime_classes"]),
            accelerators=tuple(spec.pop("accelerators")),
            **spec,
        )
