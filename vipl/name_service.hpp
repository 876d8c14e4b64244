// SPDX-License-Identifier: BSD-2-Clause
// The name service: vip_hosts file, then system resolver with the NIC's own addresses, then the kernel
// agent's names.
#pragma once

#include <vipl.h>

#include "core/config/config.hpp"
#include "vipl/hosts_file.hpp"
#include "vipl/nic.hpp"

namespace viaduct::vipl {

// Of VIADUCT_HOSTS and names.hosts. Read anew for each look-up: programs and their starters write it while they run.
HostsFile hosts_of(const Config&);

VIP_RETURN names_start(Nic& nic);
VIP_RETURN names_stop(Nic& nic);
VIP_RETURN names_by_name(Nic& nic, const char* name, VIP_ULONG index, VIP_NET_ADDRESS* out);
VIP_RETURN names_by_address(Nic& nic, const VIP_NET_ADDRESS& address, char* name, VIP_ULONG* name_bytes);

// Addresses that can be reached (VipQuerySystemManagementInfo).
VIP_RETURN discover(Nic& nic, VIP_AUTODISCOVERY_LIST* list);

}  // namespace viaduct::vipl
