/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * enum.c -- counts the NICs of a machine the only way there is: by opening
 * one name after the other until that fails.
 *
 *   via_enum [names ...]
 *
 * First VINIC0, VINIC1, ..., then nic0, nic1, ..., then \\.\VI1, \\.\VI2, ...;
 * an environment variable of such a name may give another one.  Further names
 * are tried once each.
 */
#include "viautil.h"

#define MAXNICS 1000

VIP_NIC_HANDLE opened[MAXNICS];
int nopened = 0;

void print_address(VIP_NIC_ATTRIBUTES *a)
{
    int i;

    printf("  address              ");
    for (i = 0; i < a->NicAddressLen; i++)
        printf("%s%02x", i ? ":" : "", a->LocalNicAddress[i]);
    printf("\n");
}

void print_nic(char *name, VIP_NIC_ATTRIBUTES *a)
{
    printf("%s: %s, hardware %lu, provider %lu\n", name, a->Name,
           a->HardwareVersion, a->ProviderVersion);
    print_address(a);
    printf("  thread safe          %d\n", a->ThreadSafe);
    printf("  discriminator        %d bytes\n", a->MaxDiscriminatorLen);
    printf("  registered memory    %lu bytes, %lu regions, %lu bytes each\n",
           a->MaxRegisterBytes, a->MaxRegisterRegions, a->MaxRegisterBlockBytes);
    printf("  VIs                  %lu, %lu descriptors each, %lu segments\n",
           a->MaxVI, a->MaxDescriptorsPerQueue, a->MaxSegmentsPerDesc);
    printf("  completion queues    %lu, %lu entries each\n", a->MaxCQ,
           a->MaxCQEntries);
    printf("  transfer             %ld bytes, native MTU %ld\n",
           (long)a->MaxTransferSize, (long)a->NativeMTU);
    printf("  protection tags      %lu\n", a->MaxPtags);
    printf("  reliability levels   %d, with RDMA read %d\n",
           a->ReliabilityLevelSupport, a->RDMAReadSupport);
}

/* 1 if there is such a NIC; it stays open while we count on */
int try_name(char *name)
{
    VIP_NIC_ATTRIBUTES a;
    char *real = getenv(name);

    if (nopened == MAXNICS)
        die("there is no end of them");
    if (VipOpenNic(real ? real : name, &opened[nopened]) != VIP_SUCCESS)
        return 0;
    memset(&a, 0, sizeof a);
    must(VipQueryNic(opened[nopened], &a), "VipQueryNic");
    nopened++;
    print_nic(name, &a);
    return 1;
}

int count(char *family, int first)
{
    char name[80];
    int n = first;

    do
        sprintf(name, "%s%d", family, n++);
    while (try_name(name));
    n -= first + 1;
    printf("%d NICs of the family %s\n", n, family);
    return n;
}

int main(int argc, char **argv)
{
    int i, total;

    myname = "via_enum";
    total = count("VINIC", 0);
    total += count("nic", 0);
    total += count("\\\\.\\VI", 1);
    for (i = 1; i < argc; i++)
        if (try_name(argv[i]))
            total++;
        else
            printf("%s: no such NIC\n", argv[i]);
    while (nopened > 0)
        must(VipCloseNic(opened[--nopened]), "VipCloseNic");
    printf("%d opened and closed\n", total);
    return total > 0 ? 0 : 1;
}
