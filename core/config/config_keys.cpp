// SPDX-License-Identifier: BSD-2-Clause
// The table of settings: what exists, its type, its default, what it is for. Files, environment, tools and the
// manual page are made from these rows (a new setting is one new row).
#include "core/config/config.hpp"

namespace viaduct {

const std::vector<ConfigKey>& Config::keys() {
    static const std::vector<ConfigKey> table = {
        {"agent", "linger_ms", "duration_ms", "1000", "how long vipkad stays after its last client has gone"},
        {"agent", "grace_ms", "duration_ms", "100",
         "how long a connection request without a waiter is held before VIP_NO_MATCH, so that an acceptor on its "
         "way back to VipConnectWait is not missed"},
        {"agent", "user_sessions", "int", "4096", "processes one user may have connected to the agent"},
        {"agent", "user_bytes", "size", "0", "memory one user may register; 0: the machine's memory"},
        {"agent", "user_regions", "int", "1048576", "memory regions one user may register"},
        {"agent", "user_vis", "int", "65536", "VIs one user may create"},
        {"agent", "user_cqs", "int", "65536", "completion queues one user may create"},
        {"vipl", "strict", "bool", "false",
         "follow the letter of the guide where programs of the time were let pass: unknown device names, "
         "descriptors outside of the region named, VIs destroyed with completions nobody has fetched"},
        {"vipl", "spin_us", "int", "50", "a waiting call polls for so long before it sleeps; 0: sleep at once"},
        {"vipl", "crowding", "auto|always|never", "auto",
         "whether more threads want to run than there are processors: then waiting calls yield and sleep early"},
        {"vipl", "conn_lost_delay_ms", "duration_ms", "250",
         "how late VIP_ERROR_CONN_LOST is told when a peer has ended: programs that end together must not abort "
         "each other"},
        {"names", "hosts", "string", "./vip_hosts:~/.vip_hosts:/etc/viaduct/vip_hosts:/etc/vip_hosts",
         "files of host names and addresses, separated by colons; those in VIADUCT_HOSTS come before them"},
        {"names", "resolver", "bool", "true", "ask the system's resolver for names that no file has"},
        {"paramnet", "nics", "int", "1", "how many paramnet NICs this host has"},
        {"paramnet", "lane_lines", "int", "512", "64-byte lines of one direction of a connection; a power of two"},
        {"paramnet", "block_bytes", "size", "256K",
         "room for payload of one direction of a connection; a power of two"},
        {"paramnet", "large", "auto|ring|copy", "auto",
         "how large messages move: by the way a measurement finds faster, through the connection's blocks, or by "
         "cross-process copy"},
        {"paramnet", "timing", "off", "off",
         "the calibrated model of the link: off moves data as fast as the machine can"},
        {"paramnet", "faults", "string", "", "fault plan that every connection starts with; empty: none"},
    };
    return table;
}

}  // namespace viaduct
