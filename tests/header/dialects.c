/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both dialects on one descriptor, and segments past the declared two in a larger block (spec/compat H3-H7).
 * Run, at every optimisation level and with bounds checks: exit code 0, or the line that was wrong.
 */
#include <vipl.h>

#define MUST(condition)                              \
    do {                                             \
        if (!(condition)) return __LINE__ % 255 + 1; \
    } while (0)

enum { kSegments = 127 };

/* The room programs take from malloc: descriptor and further segments in one block, through a pointer to
 * bytes. */
static union {
    VIP_UINT64 align;
    unsigned char bytes[sizeof(VIP_DESCRIPTOR) + kSegments * sizeof(VIP_DATA_SEGMENT)];
} block;

static char data[kSegments];

/* Not inlined: the compiler sees an array of two and an index it does not know. */
__attribute__((noinline)) static void fill(VIP_DESCRIPTOR* d, int count, VIP_MEM_HANDLE handle) {
    int i;
    d->CS.SegCount = (VIP_UINT16)count;
    for (i = 0; i < count; i++) {
        d->DS[i].Local.Data.Address = &data[i];
        d->DS[i].Local.Handle = handle + (VIP_MEM_HANDLE)i;
        d->DS[i].Local.Length = (VIP_UINT32)i + 1;
    }
}

__attribute__((noinline)) static unsigned long sum_of_lengths(VIP_DESCRIPTOR* d) {
    unsigned long sum = 0;
    int i;
    for (i = 0; i < d->Control.SegCount; i++) sum += d->Data[i].Length;
    return sum;
}

/* Constant bounds beyond two: a compiler that takes the bound of the array for a promise cuts this loop
 * short. */
__attribute__((noinline)) static unsigned long sum_of_eight(VIP_DESCRIPTOR* d) {
    unsigned long sum = 0;
    int i;
    for (i = 0; i < 8; i++) sum += d->DS[i].Local.Length;
    return sum + d->Data[5].Length;
}

__attribute__((noinline)) static int addressed(VIP_NET_ADDRESS* a, const char* host,
                                               const char* discriminator) {
    int i;
    a->HostAddressLen = 6;
    a->DiscriminatorLen = 12;
    for (i = 0; i < 6; i++) a->HostAddress[i] = (VIP_UINT8)host[i];
    for (i = 0; i < 12; i++) a->HostAddress[a->HostAddressLen + i] = (VIP_UINT8)discriminator[i];
    return a->HostAddress[17];
}

int main(void) {
    VIP_DESCRIPTOR array[4];
    VIP_DESCRIPTOR* d = (VIP_DESCRIPTOR*)(void*)block.bytes;
    static union {
        VIP_UINT16 align;
        unsigned char bytes[4 + 6 + 12 + 1];
    } address;
    int i;

    MUST((char*)&array[3] - (char*)&array[0] == 3 * 64);

    d->CS.Next.Address = 0;
    d->CS.Status = 0;
    d->CS.Control = VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
    d->CS.ImmediateData = 0xdeadbeefUL;
    d->CS.Length = 11;
    MUST(d->Control.Control == 5 && d->Control.ImmediateData == 0xdeadbeefUL && d->Control.Length == 11);
    d->Control.Status = VIP_STATUS_DONE | VIP_STATUS_OP_SEND;
    MUST(d->CS.Status == 1);
    d->Control.Next.Descriptor = d;
    MUST(d->CS.Next.Address == (void*)d);

    d->DS[0].Remote.Data.Address = data;
    d->DS[0].Remote.Handle = 77;
    d->DS[0].Remote.Reserved = 9;
    MUST(d->Data[0].Data.Address == (void*)data && d->Data[0].Handle == 77 && d->Data[0].Length == 9);
    d->Data[1].Data.Address = data + 1;
    d->Data[1].Length = 1;
    MUST(d->DS[1].Local.Data.Address == (void*)(data + 1) && d->DS[1].Local.Length == 1);

    fill(d, kSegments, 1000);
    MUST(sum_of_lengths(d) == (unsigned long)kSegments * (kSegments + 1) / 2);
    MUST(sum_of_eight(d) == 36 + 6);
    for (i = 0; i < kSegments; i++) {
        VIP_DATA_SEGMENT* s = (VIP_DATA_SEGMENT*)(void*)(block.bytes + 32 + 16 * i);
        MUST(s->Data.Address == (void*)&data[i] && s->Handle == (VIP_MEM_HANDLE)(1000 + i));
    }

    address.bytes[4 + 6 + 12] = 0x5a;
    MUST(addressed((VIP_NET_ADDRESS*)(void*)address.bytes, "abcdef", "0123456789xy") == 'y');
    MUST(address.bytes[4] == 'a' && address.bytes[10] == '0' && address.bytes[22] == 0x5a);
    return 0;
}
