// SPDX-License-Identifier: BSD-2-Clause
// RDMA and atomic operations: rights of VI and memory, ranges, tags, forms.
#include "ends.hpp"
#include "rows.hpp"

namespace mistakes {

namespace {

constexpr VIP_UINT32 kWord = 64;

VIP_VI_ATTRIBUTES allowing(bool write, bool read) {
    VIP_VI_ATTRIBUTES a = attributes();
    a.EnableRdmaWrite = write ? VIP_TRUE : VIP_FALSE;
    a.EnableRdmaRead = read ? VIP_TRUE : VIP_FALSE;
    return a;
}

// What is different from an operation that works.
struct Plan {
    VIP_UINT16 control = VIP_CONTROL_OP_RDMAWRITE;
    VIP_UINT32 length = kWord;
    VIP_UINT16 segments = 2;
    VIP_VI_ATTRIBUTES target = allowing(true, true);
    bool write = true, read = true;  // of the target's memory
    VIP_PROTECTION_HANDLE tag = nullptr;
    VIP_ULONG offset = 0;
    VIP_MEM_HANDLE handle = 0;  // 0: the right one
};

std::string run(const Plan& plan) {
    const Pair pair(attributes(), plan.target);
    const Memory target(nic(), plan.tag, plan.write, plan.read);
    VIP_DESCRIPTOR* d =
        fill_rdma(pair.mine.descriptor(), target.data() + plan.offset, plan.handle != 0 ? plan.handle : target.handle,
                  pair.mine.data(), pair.mine.handle, plan.length, plan.control);
    d->CS.SegCount = plan.segments;
    pair.send(d, pair.mine.handle);
    return pair.of_both();
}

std::string write_other_tag() {
    VIP_PROTECTION_HANDLE of_vi, of_memory;
    must(VipCreatePtag(nic(), &of_vi), "VipCreatePtag");
    must(VipCreatePtag(nic(), &of_memory), "VipCreatePtag");
    VIP_VI_ATTRIBUTES target = allowing(true, true);
    target.Ptag = of_vi;
    const std::string text = run({.target = target, .tag = of_memory});
    VipDestroyPtag(nic(), of_vi);
    VipDestroyPtag(nic(), of_memory);
    return text;
}

std::string immediate_refused() {
    const Pair pair(attributes(), allowing(true, true));
    const Memory target(nic());
    pair.receive(fill(pair.theirs.descriptor(), pair.theirs.data(), pair.theirs.handle, kWord), pair.theirs.handle);
    pair.send(fill_rdma(pair.mine.descriptor(), target.data(), target.handle, pair.mine.data(), pair.mine.handle, kWord,
                        VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE),
              pair.mine.handle);
    return pair.of_both();
}

}  // namespace

Rows rows_rdma() {
    return {
        {"write.memory",
         "RDMA write to memory without EnableRdmaWrite",
         [] { return run({.write = false}); },
         {"VIP_ERROR_RDMAW_PROT", "was registered without EnableRdmaWrite", "the peer says"}},
        {"write.vi",
         "RDMA write to a VI without EnableRdmaWrite",
         [] { return run({.target = allowing(false, true)}); },
         {"VIP_ERROR_RDMAW_PROT", "the VI of the target has no EnableRdmaWrite", "the peer says"}},
        {"write.outside",
         "RDMA write behind the end of a region",
         [] { return run({.offset = kBytes}); },
         {"is outside memory handle", "the peer says"}},
        {"write.unknown",
         "RDMA write with a handle that the target does not have",
         [] { return run({.handle = 0x7fff0001}); },
         {"memory handle 0x7fff0001 is not registered", "the peer says"}},
        {"write.ptag",
         "RDMA write to memory with another tag than the VI of the target",
         write_other_tag,
         {"has protection tag", "the VI has", "the peer says"}},
        {"write.immediate",
         "RDMA write with immediate data to memory without EnableRdmaWrite",
         immediate_refused,
         {"was registered without EnableRdmaWrite", "the peer says"}},
        {"read.memory",
         "RDMA read of memory without EnableRdmaRead",
         [] { return run({.control = VIP_CONTROL_OP_RDMAREAD, .read = false}); },
         {"VIP_ERROR_RDMAR_PROT", "was registered without EnableRdmaRead", "the peer says"}},
        {"read.vi",
         "RDMA read from a VI without EnableRdmaRead",
         [] { return run({.control = VIP_CONTROL_OP_RDMAREAD, .target = allowing(true, false)}); },
         {"the VI of the target has no EnableRdmaRead", "the peer says"}},
        {"read.immediate",
         "RDMA read with immediate data",
         [] { return run({.control = VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE}); },
         {"VIP_CONTROL_IMMEDIATE is set"}},
        {"rdma.address",
         "an RDMA descriptor with SegCount 0",
         [] { return run({.segments = 0}); },
         {"SegCount is 0", "DS[0] must be the address segment"}},
        {"atomic.width",
         "an atomic operation on 3 bytes",
         [] { return run({.control = VIPX_CONTROL_OP_FETCH_ADD, .length = 3}); },
         {"3 bytes of operands", "4 or 8"}},
        {"atomic.alignment",
         "an atomic operation on a word at an odd address",
         [] { return run({.control = VIPX_CONTROL_OP_FETCH_ADD, .length = 8, .offset = 4}); },
         {"not a multiple of the word's 8 bytes"}},
        {"atomic.memory",
         "an atomic operation on memory without EnableRdmaRead",
         [] { return run({.control = VIPX_CONTROL_OP_FETCH_ADD, .length = 8, .read = false}); },
         {"without EnableRdmaWrite and EnableRdmaRead", "the peer says"}},
    };
}

}  // namespace mistakes
