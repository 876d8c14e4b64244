/* SPDX-License-Identifier: BSD-2-Clause */
/* A user's first program: opens the default NIC, waits to be looked at, closes it. */
#include <stdio.h>
#include <vipl.h>

int main(int argc, char **argv)
{
    VIP_NIC_HANDLE nic;
    VIP_RETURN code;
    const char *name = argc > 1 ? argv[1] : "/dev/via_eth0";

    code = VipOpenNic(name, &nic);
    if (code != VIP_SUCCESS) {
        fprintf(stderr, "VipOpenNic(%s): %d\n", name, (int)code);
        return 1;
    }
    puts("open");
    fflush(stdout);
    (void)getchar();
    code = VipCloseNic(nic);
    if (code != VIP_SUCCESS) {
        fprintf(stderr, "VipCloseNic: %d\n", (int)code);
        return 1;
    }
    puts("closed");
    return 0;
}
