"""The shipped accelerator catalogue: every name that is known in the field, and what it counts as."""

import pytest

from webhook.config.catalogue import load_catalogue, shipped_catalogue
from webhook.core.accelerators import Kind, NumaHint, asks
from webhook.core.policy import Policy

NAMES = """
device: nvidia.com/gpu nvidia.com/pgpu nvidia.com/GA102GL_A10 nvidia.com/TU104GL_TESLA_T4 nvidia.com/GRID_T4-4Q
    nvidia.com/GH100_H100_SXM5_80GB amd.com/gpu gpu.intel.com/i915 gpu.intel.com/xe npu.intel.com/accel habana.ai/gaudi
    google.com/tpu aws.amazon.com/neuron aws.amazon.com/neurondevice huawei.com/Ascend310 huawei.com/Ascend910 huawei.com/npu
    hygon.com/dcunum hygon.com/hcunum hygon.com/dcu cambricon.com/mlu cambricon.com/mlu370 metax-tech.com/gpu
    metax-tech.com/vfio-gpu enflame.com/gcu mthreads.com/vgpu mthreads.com/gpu iluvatar.com/gpu iluvatar.ai/gpu
    kunlunxin.com/xpu vastaitech.com/va birentech.com/gpu alibabacloud.com/ppu furiosa.ai/rngd c600.graphcore.ai/ipu
    qualcomm.com/qaic
shared: nvidia.com/gpu.shared nvidia.com/mig-1g.10gb.shared amd.com/gpu.shared hygon.com/dcu-share-16 cambricon.com/vmlu
    cambricon.com/mlu370.share metax-tech.com/sgpu enflame.com/drs-gcu enflame.com/vgcu enflame.com/shared-gcu
    kunlunxin.com/vxpu birentech.com/vgpu volcano.sh/vgpu-number koordinator.sh/gpu-shared
partition: nvidia.com/mig-1g.10gb nvidia.com/mig-7g.80gb nvidia.com/mig-1c.3g.40gb nvidia.com/mig-1g.24gb.me.all
    nvidia.com/mig-1g.10gb-me amd.com/spx_nps1 amd.com/cpx_nps1 amd.com/cpx_nps4 amd.com/dpx_nps2 amd.com/qpx_nps1
    huawei.com/Ascend910-16c huawei.com/Ascend310P-4c.3cpu.ndvpp hygon.com/dcu-mig-2g cambricon.com/mlu370.mim-2m.8gb
    birentech.com/1-2-gpu birentech.com/1-4-gpu
memory: nvidia.com/gpumem nvidia.com/gpumem-percentage amd.com/gpumem cambricon.com/mlu.smlu.vmemory hygon.com/dcumem
    hygon.com/hcumem metax-tech.com/vmemory enflame.com/gcu-memory mthreads.com/sgpu-memory kunlunxin.com/vxpu-memory
    gpu.intel.com/memory.max birentech.com/vgpu-memory volcano.sh/vgpu-memory volcano.sh/vgpu-memory-percentage
    tencent.com/vcuda-memory aliyun.com/gpu-mem koordinator.sh/gpu-memory koordinator.sh/gpu-memory-ratio
cores: nvidia.com/gpucores amd.com/gpucores cambricon.com/mlu.smlu.vcore hygon.com/dcucores hygon.com/hcucores
    metax-tech.com/vcore enflame.com/gcu-core enflame.com/vgcu-percentage mthreads.com/sgpu-core aws.amazon.com/neuroncore
    gpu.intel.com/millicores gpu.intel.com/tiles huawei.com/npu-core birentech.com/vgpu-cores volcano.sh/vgpu-cores
    tencent.com/vcuda-core koordinator.sh/gpu koordinator.sh/gpu-core
pseudo: nvidia.com/priority gpu.intel.com/monitoring gpu.intel.com/i915_monitoring gpu.intel.com/xe_monitoring
    enflame.com/gcu-count aliyun.com/gpu-count networking.gke.io.networks/rdma-0.IP smarter-devices/fuse
nic: intel.com/intel_sriov_netdevice openshift.io/mlx5_vf mellanox.com/cx5_sriov broadcom.com/bnxt dpdk.org/vf
    nvidia.com/hostdev nvidia.com/bf2_sf rdma/hca_shared_devices_a rdma/rdma_shared_device_a rdma/hca rdma/ib rdma/shared_ib
    vpc.amazonaws.com/efa networking.gke.io.networks/rdma-0 networking.gke.io.networks/rdma-7 amd.com/nic amd.com/vnic
    qat.intel.com/cy dsa.intel.com/wq-user-dedicated iaa.intel.com/wq dlb.intel.com/pf fpga.intel.com/region-x xilinx.com/fpga
"""
CHIPS = {
    "huawei.com/Ascend": ("910A", "910B2", "910B3", "910B4", "910B4-1", "310P", "910C"),
    "iluvatar.ai/": ("MR-V100", "MR-V50", "BI-V150", "BI-V100"),
}
PER_CHIP = {
    "huawei.com/Ascend": {"": "device", "-memory": "memory", "-core": "cores"},
    "iluvatar.ai/": {"-vgpu": "shared", ".vMem": "memory", ".vCore": "cores"},
}


def known_names():
    """Yield kind and name."""
    kind = ""
    for word in NAMES.split():
        if word.endswith(":"):
            kind = word[:-1]
        else:
            yield kind, word
    for prefix, chips in CHIPS.items():
        for suffix, of_kind in PER_CHIP[prefix].items():
            yield from ((of_kind, f"{prefix}{chip}{suffix}") for chip in chips)


@pytest.mark.parametrize(("kind", "name"), list(known_names()))
def test_every_name_is_known(kind, name):
    assert shipped_catalogue().find(name).kind == kind


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/mig-1g",
        "nvidia.com/mig-1g.10gb!",
        "xnvidia.com/gpu",
        "nvidia.com/gpux",
        "nvidia.com/cx6_vf",
        "amd.com/spx_nps3",
        "huawei.com/Ascend910-core-x",
        "cpu",
        "hugepages-1Gi",
        "rdma",
        "example.com/gpu",
    ],
)
def test_nothing_is_matched_by_its_looks(name):
    assert shipped_catalogue().find(name) is None


@pytest.mark.parametrize(
    ("limits", "devices"),
    [
        ({"enflame.com/drs-gcu": 6}, {"enflame.com/drs-gcu": 1}),
        ({"enflame.com/gcu-memory": 4096, "enflame.com/gcu-core": 30}, {"enflame.com/drs-gcu": 1}),
        ({"aws.amazon.com/neuroncore": 3}, {"aws.amazon.com/neuroncore": 2}),
        ({"tencent.com/vcuda-core": 50, "tencent.com/vcuda-memory": 30}, {"tencent.com/vcuda-core": 1}),
        ({"tencent.com/vcuda-core": 200}, {"tencent.com/vcuda-core": 2}),
        ({"aliyun.com/gpu-mem": 12}, {"aliyun.com/gpu-mem": 1}),
        ({"koordinator.sh/gpu": 200}, {"koordinator.sh/gpu": 2}),
        ({"nvidia.com/gpumem-percentage": 50}, {"nvidia.com/gpu": 1}),
        ({"nvidia.com/gpu": 2, "nvidia.com/gpumem": 3000, "nvidia.com/gpucores": 30}, {"nvidia.com/gpu": 2}),
        ({"amd.com/gpumem": 1000}, {}),
        ({"nvidia.com/priority": 1}, {}),
        ({"gpu.intel.com/monitoring": 1}, {}),
        ({"gpu.intel.com/i915": 1, "gpu.intel.com/millicores": 500}, {"gpu.intel.com/i915": 1}),
    ],
)
def test_counts_are_those_of_the_vendors(limits, devices):
    pod = {"spec": {"containers": [{"name": "a", "resources": {"limits": limits}}]}}
    assert {ask.resource: ask.devices for ask in asks(pod, shipped_catalogue()).accelerators} == devices


def test_what_an_amount_implies_is_known_itself():
    catalogue = shipped_catalogue()
    assert all(catalogue.find(entry.implies).kind in {Kind.DEVICE, Kind.SHARED} for entry in catalogue.entries if entry.implies)


def test_shared_rdma_tokens_give_no_hint_and_are_one_nic():
    entry = shipped_catalogue().find("rdma/hca_shared_devices_a")
    assert (entry.hint, entry.devices(63)) == (NumaHint.NO, 1)


def test_without_entries_of_its_own_a_policy_changes_nothing():
    assert load_catalogue(Policy()) is shipped_catalogue()
