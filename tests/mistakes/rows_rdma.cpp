// SPDX-License-Identifier: BSD-2-Clause
// RDMA and atomic operations: rights of VI and memory, ranges, tags, forms.
#include "ends.hpp"
#include "rows.hpp"

namespace mistakes {

namespace {

constexpr VIP_UINT32 kWord = 64;

VIP_VI_ATTRIBUTES open_to_all() {
    VIP_VI_ATTRIBUTES a = attributes();
    a.EnableRdmaWrite = a.EnableRdmaRead = VIP_TRUE;
    return a;
}

// What is different from an operation that works.
struct Plan {
    VIP_VI_ATTRIBUTES target = open_to_all();
    bool write = true, read = true;  // of the target's memory
    VIP_PROTECTION_HANDLE tag = nullptr;
    VIP_ULONG offset = 0;
    VIP_MEM_HANDLE handle = 0;  // 0: the right one
    VIP_UINT32 length = kWord;
    VIP_UINT16 control = VIP_CONTROL_OP_RDMAWRITE;
    VIP_UINT16 segments = 2;
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

std::string memory_without_write() {
    Plan plan;
    plan.write = false;
    return run(plan);
}

std::string vi_without_write() {
    Plan plan;
    plan.target.EnableRdmaWrite = VIP_FALSE;
    return run(plan);
}

std::string write_outside() {
    Plan plan;
    plan.offset = kBytes;
    return run(plan);
}

std::string write_unknown() {
    Plan plan;
    plan.handle = 0x7fff0001;
    return run(plan);
}

std::string write_other_tag() {
    VIP_PROTECTION_HANDLE of_vi, of_memory;
    must(VipCreatePtag(nic(), &of_vi), "VipCreatePtag");
    must(VipCreatePtag(nic(), &of_memory), "VipCreatePtag");
    Plan plan;
    plan.target.Ptag = of_vi;
    plan.tag = of_memory;
    const std::string text = run(plan);
    VipDestroyPtag(nic(), of_vi);
    VipDestroyPtag(nic(), of_memory);
    return text;
}

std::string memory_without_read() {
    Plan plan;
    plan.control = VIP_CONTROL_OP_RDMAREAD;
    plan.read = false;
    return run(plan);
}

std::string vi_without_read() {
    Plan plan;
    plan.control = VIP_CONTROL_OP_RDMAREAD;
    plan.target.EnableRdmaRead = VIP_FALSE;
    return run(plan);
}

std::string read_with_immediate() {
    Plan plan;
    plan.control = VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE;
    return run(plan);
}

std::string no_address() {
    Plan plan;
    plan.segments = 0;
    return run(plan);
}

std::string odd_width() {
    Plan plan;
    plan.control = VIPX_CONTROL_OP_FETCH_ADD;
    plan.length = 3;
    return run(plan);
}

std::string odd_word() {
    Plan plan;
    plan.control = VIPX_CONTROL_OP_FETCH_ADD;
    plan.length = 8;
    plan.offset = 4;
    return run(plan);
}

std::string atomic_without_read() {
    Plan plan;
    plan.control = VIPX_CONTROL_OP_FETCH_ADD;
    plan.length = 8;
    plan.read = false;
    return run(plan);
}

std::string immediate_refused() {
    const Pair pair(attributes(), open_to_all());
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
         memory_without_write,
         {"VIP_ERROR_RDMAW_PROT", "was registered without EnableRdmaWrite", "the peer says"}},
        {"write.vi",
         "RDMA write to a VI without EnableRdmaWrite",
         vi_without_write,
         {"VIP_ERROR_RDMAW_PROT", "the VI of the target has no EnableRdmaWrite", "the peer says"}},
        {"write.outside",
         "RDMA write behind the end of a region",
         write_outside,
         {"is outside memory handle", "the peer says"}},
        {"write.unknown",
         "RDMA write with a handle that the target does not have",
         write_unknown,
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
         memory_without_read,
         {"VIP_ERROR_RDMAR_PROT", "was registered without EnableRdmaRead", "the peer says"}},
        {"read.vi",
         "RDMA read from a VI without EnableRdmaRead",
         vi_without_read,
         {"the VI of the target has no EnableRdmaRead", "the peer says"}},
        {"read.immediate", "RDMA read with immediate data", read_with_immediate, {"VIP_CONTROL_IMMEDIATE is set"}},
        {"rdma.address",
         "an RDMA descriptor with SegCount 0",
         no_address,
         {"SegCount is 0", "DS[0] must be the address segment"}},
        {"atomic.width", "an atomic operation on 3 bytes", odd_width, {"3 bytes of operands", "4 or 8"}},
        {"atomic.alignment",
         "an atomic operation on a word at an odd address",
         odd_word,
         {"not a multiple of the word's 8 bytes"}},
        {"atomic.memory",
         "an atomic operation on memory without EnableRdmaRead",
         atomic_without_read,
         {"without EnableRdmaWrite and EnableRdmaRead", "the peer says"}},
    };
}

}  // namespace mistakes
