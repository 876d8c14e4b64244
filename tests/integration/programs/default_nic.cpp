// SPDX-License-Identifier: BSD-2-Clause
// Opens a NIC for default_provider_test.py. Prints the name of the NIC, or why there is none (VipxLastError), and keeps
// it open until standard input ends. Usage: default_nic NAME
#include <viaduct/ext.h>
#include <vipl.h>

#include <cstdio>

int main(int argc, char** argv) {
    VIP_NIC_HANDLE nic = nullptr;
    VIP_NIC_ATTRIBUTES about{};
    char why[1024] = "no reason is given";
    const bool opened = argc > 1 && VipOpenNic(argv[1], &nic) == VIP_SUCCESS && VipQueryNic(nic, &about) == VIP_SUCCESS;
    if (!opened) (void)VipxLastError(nullptr, why, sizeof why);
    std::puts(opened ? about.Name : why);
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
    return opened ? 0 : 1;
}
