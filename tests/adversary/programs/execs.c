/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that lets us write to its memory and then becomes another program, which has memory of its own at the same
   place. The victim goes on writing.
   execs victim NAME | hostile NAME | another */
#include "../../eventually.h"
#include "pair.h"

enum { kBytes = 65536 };
static char* const kPlace = (char*)0x200000000000;

struct window {
    uint64_t address;
    VIP_MEM_HANDLE region;
};

static char* memory_there(int value) {
    char* at = mmap(kPlace, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != kPlace) fail("mmap", 0);
    memset(at, value, kBytes);
    return at;
}

/* The program that the peer becomes: no process may write to its memory. */
static int be_another(void) {
    const char* at = memory_there(0x11);
    const double end = seconds() + 2;
    while (seconds() < end) {
        for (int i = 0; i < kBytes; ++i)
            if (((volatile const char*)at)[i] != 0x11) {
                puts("written to");
                return 1;
            }
        usleep(1000); /* sleeps: a write may come at any time until the end */
    }
    puts("intact");
    return 0;
}

static int written(void* place) { return *(volatile char*)place != 0; }

static int be_hostile(const char* self, const char* name) {
    struct pair p;
    const pid_t self_pid = getpid();
    struct window w;
    VIP_MEM_ATTRIBUTES attributes;
    pair_open(&p, 1 << 17);
    pair_request(&p, name);
    memset(&attributes, 0, sizeof attributes);
    attributes.EnableRdmaWrite = VIP_TRUE;
    w.address = (uint64_t)(uintptr_t)memory_there(0);
    must(VipRegisterMem(p.nic, kPlace, kBytes, &attributes, &w.region), "VipRegisterMem");
    memcpy(p.memory + kData, &w, sizeof w);
    pair_send(&p, 1, p.memory + kData, sizeof w);
    if (!eventually_of("the peer writes to the window", written, kPlace, &self_pid, 1, 30)) return 1;
    execl("/proc/self/exe", self, "another", (char*)NULL);
    return 1;
}

static int be_victim(const char* name) {
    struct pair p;
    struct window w;
    VIP_DESCRIPTOR* done;
    VIP_RETURN code = VIP_SUCCESS;
    unsigned long written = 0;
    pair_open(&p, 1 << 18);
    pair_receive(&p, 0, p.memory + kData, 64);
    pair_accept(&p, name);
    must(VipRecvWait(p.vi, 20000, &done), "VipRecvWait");
    memcpy(&w, p.memory + kData, sizeof w);
    memset(p.memory + 2 * kData, 0x5a, kBytes);
    const double end = seconds() + 30;
    while (code == VIP_SUCCESS && seconds() < end) {
        code = pair_rdma(&p, 1, VIP_CONTROL_OP_RDMAWRITE, p.memory + 2 * kData, kBytes, w.address, w.region);
        written += code == VIP_SUCCESS;
        usleep(300000); /* sleeps: by the next write the peer is another program */
    }
    eventually("the loss of the connection", pair_is_lost, &p);
    printf("%lu writes, then %d, %s\n", written, (int)code, p.lost ? "lost" : "nothing heard");
    return p.lost && code != VIP_SUCCESS ? 0 : 1;
}

int main(int argc, char** argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2) return be_another();
    if (argc != 3) return 2;
    return strcmp(argv[1], "victim") == 0 ? be_victim(argv[2]) : be_hostile(argv[0], argv[2]);
}
