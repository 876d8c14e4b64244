/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hub_writer zero|ones|less|random SECONDS: connects to vipping's server as one more client and writes into what all
 * peers of a NIC context share, its hub: 0, all ones, one less than what is there, anything. Each word once, or again
 * and again for so long. Prints "writing" when it begins and "done N" when it has written N words; exit 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

#define SLOT 4096

static void must(VIP_RETURN rc, const char *what)
{
    if (rc == VIP_SUCCESS)
        return;
    fprintf(stderr, "hub_writer: %s: %d\n", what, (int)rc);
    exit(1);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static VIP_NET_ADDRESS *address(const VIP_NIC_ATTRIBUTES *nic, const char *discriminator)
{
    VIP_NET_ADDRESS *a = calloc(1, 256);

    a->HostAddressLen = nic->NicAddressLen;
    memcpy(a->HostAddress, nic->LocalNicAddress, nic->NicAddressLen);
    a->DiscriminatorLen = strlen(discriminator);
    memcpy(a->HostAddress + a->HostAddressLen, discriminator, a->DiscriminatorLen);
    return a;
}

/* The writable mappings of hubs; those of the process itself and of its peer. */
static int find_hubs(volatile unsigned **hubs, size_t *words, int most)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (maps != NULL && n < most && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char mode[8];

        if (!strstr(line, "viaduct-hub") || sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || mode[1] != 'w')
            continue;
        hubs[n] = (volatile unsigned *)from;
        words[n++] = (to - from) / sizeof(unsigned);
    }
    if (maps != NULL)
        fclose(maps);
    return n;
}

static unsigned value(const char *how, unsigned there)
{
    if (!strcmp(how, "zero"))
        return 0;
    if (!strcmp(how, "ones"))
        return ~0u;
    return !strcmp(how, "less") ? there - 1 : (unsigned)random();
}

int main(int argc, char **argv)
{
    VIP_NIC_HANDLE nic;
    VIP_NIC_ATTRIBUTES nic_attributes;
    VIP_PROTECTION_HANDLE tag;
    VIP_MEM_ATTRIBUTES memory_attributes;
    VIP_MEM_HANDLE handle;
    VIP_VI_ATTRIBUTES attributes, remote;
    VIP_VI_HANDLE vi;
    volatile unsigned *hubs[8];
    size_t words[8], w;
    unsigned long written = 0;
    char *memory;
    double end;
    int n, i;

    if (argc < 3)
        return 2;
    must(VipOpenNic("/dev/via_lo", &nic), "VipOpenNic");
    must(VipQueryNic(nic, &nic_attributes), "VipQueryNic");
    must(VipCreatePtag(nic, &tag), "VipCreatePtag");
    memory = aligned_alloc(4096, 16 * SLOT);
    memset(memory, 0, 16 * SLOT);
    memset(&memory_attributes, 0, sizeof memory_attributes);
    memory_attributes.Ptag = tag;
    must(VipRegisterMem(nic, memory, 16 * SLOT, &memory_attributes, &handle), "VipRegisterMem");
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 65536;
    attributes.Ptag = tag;
    must(VipCreateVi(nic, &attributes, NULL, NULL, &vi), "VipCreateVi");
    must(VipConnectRequest(vi, address(&nic_attributes, "writer"), address(&nic_attributes, "vipping"), 3000, &remote),
         "VipConnectRequest");

    n = find_hubs(hubs, words, 8);
    if (n == 0) {
        fprintf(stderr, "hub_writer: no hub is mapped writable\n");
        return 3;
    }
    printf("writing\n");
    fflush(stdout);
    end = now() + atof(argv[2]);
    do {
        for (i = 0; i < n; i++)
            for (w = 0; w < words[i]; w++, written++)
                hubs[i][w] = value(argv[1], hubs[i][w]);
    } while (now() < end);
    printf("done %lu\n", written);
    fflush(stdout);
    _exit(0);
}
