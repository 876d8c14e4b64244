/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes that may be in different name spaces: messages of every way, RDMA in both directions, and the news of
   the other's death.
   namespaces serve NAME | call NAME | watch NAME (call, then "connected", then wait until the other end has left) */
#include "../../eventually.h"
#include "pair.h"

struct window {
    uint64_t address;
    VIP_MEM_HANDLE region;
};

static const uint32_t kSizes[] = {16, 1000, 4096, 16384, 32768, 65536};
enum { kRounds = 60, kIncoming = kData, kOutgoing = kData + kLongest, kWindow = kData + 2 * kLongest };

static void echo(struct pair* p, int serves) {
    char *in = p->memory + kIncoming, *out = p->memory + kOutgoing;
    VIP_DESCRIPTOR* done;
    for (unsigned s = 0; s < sizeof kSizes / sizeof *kSizes; ++s) {
        for (int i = 0; i < kRounds; ++i) {
            const char mark = (char)(i + (int)s * 7 + 1);
            if (!serves) {
                memset(out, mark, kSizes[s]);
                pair_send(p, 1, out, kSizes[s]);
            }
            must(VipRecvWait(p->vi, 20000, &done), "VipRecvWait");
            if (done->CS.Length != kSizes[s]) fail("length", (long)done->CS.Length);
            for (uint32_t k = 0; k < kSizes[s]; ++k)
                if (in[k] != mark) fail("wrong byte", (long)k);
            if (serves) memcpy(out, in, kSizes[s]);
            memset(in, 0, kSizes[s]);
            pair_receive(p, 0, in, kLongest);
            if (serves) pair_send(p, 1, out, kSizes[s]);
        }
    }
}

static void count(const char* what, const char* at, char value) {
    for (int i = 0; i < kLongest; ++i)
        if (at[i] != value) fail(what, i);
}

int main(int argc, char** argv) {
    struct pair p;
    struct window w;
    VIP_DESCRIPTOR* done;
    if (argc < 3) return 2;
    const int serves = strcmp(argv[1], "serve") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    pair_open(&p, kData + 4 * kLongest);
    char *in = p.memory + kIncoming, *out = p.memory + kOutgoing, *window = p.memory + kWindow;
    pair_receive(&p, 0, in, kLongest);
    if (serves) {
        pair_accept(&p, argv[2]);
    } else {
        pair_request(&p, argv[2]);
    }
    echo(&p, serves);
    memset(window, 0x11, kLongest);
    if (serves) {
        /* Not before the other end has a receive for it. */
        must(VipRecvWait(p.vi, 20000, &done), "VipRecvWait");
        pair_receive(&p, 0, in, kLongest);
        w.address = (uint64_t)(uintptr_t)window;
        w.region = p.region;
        memcpy(out, &w, sizeof w);
        pair_send(&p, 1, out, sizeof w);
        must(VipRecvWait(p.vi, 20000, &done), "VipRecvWait");
        count("what was written is not in the target's memory", window, 0x5a);
        puts("good");
        pause();
    }
    pair_send(&p, 1, out, 4);
    must(VipRecvWait(p.vi, 20000, &done), "VipRecvWait");
    memcpy(&w, in, sizeof w);
    memset(out, 0x5a, kLongest);
    must(pair_rdma(&p, 1, VIP_CONTROL_OP_RDMAWRITE, out, kLongest, w.address, w.region), "RDMA write");
    count("the writer's own memory was written to", window, 0x11);
    memset(out, 0, kLongest);
    must(pair_rdma(&p, 1, VIP_CONTROL_OP_RDMAREAD, out, kLongest, w.address, w.region), "RDMA read");
    count("what was read is not what was written", out, 0x5a);
    pair_send(&p, 1, out, 4);
    puts("good");
    if (strcmp(argv[1], "watch") != 0) return 0;
    eventually("the loss of the connection", pair_is_lost, &p);
    puts(p.lost ? "lost" : "nothing heard");
    return 0;
}
