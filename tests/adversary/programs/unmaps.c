/* SPDX-License-Identifier: BSD-2-Clause */
/* A program unmaps memory that it has registered, and goes on; its peer writes to all of it. What the library maps meanwhile
   for itself may not lie there.
   unmaps owner NAME | writer NAME */
#include "pair.h"

/* Holes of two sizes, with a page between them that stays: for stacks and tables. */
enum { kSmall = 300 << 10, kLarge = 10 << 20, kSmalls = 40, kLarges = 8, kHoles = kSmalls + kLarges, kPage = 4096 };
enum { kPings = 50, kPing = 64 };

struct hole {
    uint64_t address;
    VIP_MEM_HANDLE region;
    uint32_t bytes;
};

static void make_hole(struct pair* p, char* at, uint32_t bytes, struct hole* hole) {
    VIP_MEM_ATTRIBUTES attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.EnableRdmaWrite = VIP_TRUE;
    hole->address = (uint64_t)(uintptr_t)at;
    hole->bytes = bytes;
    must(VipRegisterMem(p->nic, at, bytes, &attributes, &hole->region), "VipRegisterMem");
}

static void make_holes(struct pair* p, struct hole* holes) {
    const size_t whole = (size_t)kSmalls * (kSmall + kPage) + (size_t)kLarges * (kLarge + kPage);
    char* at = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) fail("mmap", 0);
    for (int i = 0; i < kHoles; ++i) {
        make_hole(p, at, i < kSmalls ? kSmall : kLarge, &holes[i]);
        at += holes[i].bytes + kPage;
    }
    for (int i = 0; i < kHoles; ++i) munmap((void*)(uintptr_t)holes[i].address, holes[i].bytes);
}

/* A VI of its own, at Unreliable: there a refused write breaks nothing. */
static struct pair unreliable(const struct pair* p) {
    struct pair u = *p;
    VIP_VI_ATTRIBUTES vi;
    memset(&vi, 0, sizeof vi);
    vi.ReliabilityLevel = VIP_SERVICE_UNRELIABLE;
    vi.MaxTransferSize = kLongest;
    vi.EnableRdmaWrite = VIP_TRUE;
    must(VipCreateVi(p->nic, &vi, NULL, NULL, &u.vi), "VipCreateVi");
    return u;
}

static void take(struct pair* p) {
    VIP_DESCRIPTOR* done;
    must(VipRecvWait(p->vi, 20000, &done), "VipRecvWait");
}

static int be_owner(const char* name) {
    struct pair p, u, later;
    struct hole holes[kHoles];
    char second[64];
    pair_open(&p, 1 << 20);
    make_holes(&p, holes);
    pair_receive(&p, 0, p.memory + kData, kPing);
    pair_accept(&p, name);
    u = unreliable(&p);
    snprintf(second, sizeof second, "%s-u", name);
    pair_accept(&u, second);
    pair_open(&later, 1 << 16);
    memcpy(p.memory + 2 * kData, holes, sizeof holes);
    pair_send(&p, 1, p.memory + 2 * kData, sizeof holes);
    for (int i = 0; i < kPings; ++i) {
        take(&p);
        if (i + 1 < kPings) pair_receive(&p, 0, p.memory + kData, kPing);
        pair_send(&p, 1, p.memory + kData, kPing);
    }
    must(VipDisconnect(u.vi), "VipDisconnect");
    must(VipCloseNic(later.nic), "VipCloseNic");
    must(VipCloseNic(p.nic), "VipCloseNic");
    puts("intact");
    return 0;
}

static int be_writer(const char* name) {
    struct pair p, u;
    struct hole holes[kHoles];
    char second[64];
    unsigned long written = 0;
    pair_open(&p, 1 << 20);
    pair_receive(&p, 0, p.memory + kData, sizeof holes);
    pair_request(&p, name);
    u = unreliable(&p);
    snprintf(second, sizeof second, "%s-u", name);
    pair_request(&u, second);
    take(&p);
    memcpy(holes, p.memory + kData, sizeof holes);
    memset(p.memory + (1 << 17), 0xa5, kLongest);
    for (int i = 0; i < kHoles; ++i)
        for (uint32_t at = 0; at < holes[i].bytes; at += kPage)
            written += pair_rdma(&u, 2, VIP_CONTROL_OP_RDMAWRITE, p.memory + (1 << 17), kPage, holes[i].address + at,
                                 holes[i].region) == VIP_SUCCESS;
    for (int i = 0; i < kPings; ++i) {
        pair_receive(&p, 0, p.memory + kData, kPing);
        pair_send(&p, 1, p.memory + kData, kPing);
        take(&p);
    }
    printf("%lu written\n", written);
    return written != 0 ? 0 : 1;
}

int main(int argc, char** argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3) return 2;
    return strcmp(argv[1], "owner") == 0 ? be_owner(argv[2]) : be_writer(argv[2]);
}
