// SPDX-License-Identifier: BSD-2-Clause
// The table of settings: what exists, its type, its default, what it is for. Files, environment, tools and
// the manual page are made from these rows (a new setting is one new row).
#include "core/config/config.hpp"

namespace viaduct {

namespace {
constexpr int64_t kVast = int64_t{1} << 40;  // more than a message has
}

const std::vector<ConfigKey>& Config::keys() {
    static const auto& table = *new std::vector<ConfigKey>{
        {"agent", "linger_ms", "int", "1000",
         "how long vipkad stays after its last client has left, in milliseconds; negative: for ever"},
        {"agent", "ended_ms", "duration_ms", "60000",
         "how long vipkad keeps the failures of a process that has ended, for vipstat; 0: not at all"},
        {"agent", "grace_ms", "duration_ms", "100",
         "how long a connection request without a waiter is held before VIP_NO_MATCH, so that an acceptor on "
         "its "
         "way back to VipConnectWait is not missed"},
        {"agent", "confirm_ms", "duration_ms", "5000",
         "how long an acceptor waits for the requester to take up the connection"},
        {"agent", "max_incoming", "int", "1024",
         "requests that may wait for accept or reject on one NIC handle"},
        {"agent", "cross_user", "bool", "false", "let processes of different users connect to each other"},
        {"agent", "max_sessions", "int", "4096", "processes that one user may have connected to the agent"},
        {"agent", "max_contexts", "int", "4096", "NICs that one user may have open"},
        {"agent", "max_vis", "int", "262144", "VIs that one user may have"},
        {"agent", "max_cqs", "int", "262144", "completion queues that one user may have"},
        {"agent", "max_regions", "int", "4194304", "memory regions that one user may register"},
        {"agent", "max_registered_bytes", "size", "64T", "memory that one user may register"},
        {"agent", "max_outstanding", "int", "65536",
         "waits, requests and accepts of one user not yet answered"},
        {"agent", "max_descriptors", "int", "0",
         "files that vipkad holds for the processes of one user; 0: as many as stay free beside them"},
        {"agent", "client_stall_ms", "duration_ms", "30000",
         "how long a client may leave its answers untaken before vipkad drops it"},
        {"vipl", "strict", "bool", "false",
         "follow the letter of the guide where programs of the time were let pass: descriptors outside of "
         "the "
         "region named, VIs destroyed with completions that were not fetched"},
        {"vipl", "spin_us", "int", "50",
         "a waiting call polls for so long before it sleeps; 0: sleep at once"},
        {"vipl", "give_way", "on|off", "on",
         "polls and waits give the processor away now and then, and at once where others need it; off: they poll "
         "and sleep, and never yield"},
        {"vipl", "conn_lost_delay_ms", "duration_ms", "250",
         "how late VIP_ERROR_CONN_LOST is told when a peer has ended: programs that end together must not "
         "abort "
         "each other"},
        {"names", "hosts", "string", "./vip_hosts:~/.vip_hosts:/etc/viaduct/vip_hosts:/etc/vip_hosts",
         "files of host names and addresses, separated by colons; those in VIADUCT_HOSTS come before them"},
        {"names", "resolver", "bool", "true", "ask the system's resolver for host names that no file has"},
        {"names", "strict", "bool", "false", "refuse device names that nothing is known of"},
        {"names", "default_provider", "string", "paramnet", "the provider of device names that say no other"},
        {"names", "far_provider", "string", "udp",
         "the provider of host:NAME where the default one serves this host only and NAME is another; empty: none"},
        {"acenic", "ports", "string", "",
         "DPDK devices that become NICs, separated by ';', for example net_af_packet,iface=eth1"},
        {"acenic", "faults", "string", "",
         "for tests: what goes wrong with the frames of each port, a plan as in VipxSetFaultPlan, separated "
         "by "
         "';'"},
        {"acenic", "mode", "auto|shared|exclusive", "auto",
         "which process owns a port: an engine process that applications share, or one application; auto: shared where "
         "that can be had"},
        {"acenic", "zero_copy", "on|off", "on",
         "payloads of 2 KiB and more are sent from where they lie, if the port's driver copies while it "
         "sends"},
        {"acenic", "engine", "string", "",
         "socket of the engine process; empty: that of the port, started by the first program that needs it"},
        {"acenic", "auth_key_file", "string", "",
         "file with a key of 32 hexadecimal digits: frames are authenticated with it, and others are dropped"},
        {"udp", "interfaces", "string", "auto",
         "interfaces or IPv4 addresses of this host that become NICs, separated by ';'; auto: all that are up but "
         "loopback; empty: none"},
        {"udp", "port", "int", "4792", "UDP port that connection requests come to; the same on all hosts", 1, 65535},
        {"udp", "zero_copy", "on|off", "on", "payloads of 2 KiB and more are sent from where they lie"},
        {"udp", "connected_sockets", "int", "8",
         "peers of each NIC and process, those that most frames go to, that have a socket of their own", 0, 64},
        {"udp", "busy_poll_us", "int", "0",
         "SO_BUSY_POLL of the sockets: a poll asks the device itself; more than net.core.busy_read needs CAP_NET_ADMIN",
         0, 1000},
        {"udp", "faults", "string", "",
         "for tests: what goes wrong with the frames of each NIC, a plan as in VipxSetFaultPlan, separated by ';'"},
        {"udp", "auth_key_file", "string", "",
         "file with a key of 32 hexadecimal digits: frames are authenticated with it, and others are dropped"},
        {"paramnet", "nics", "int", "1", "how many paramnet NICs this host has, 0 to 64"},
        {"paramnet", "cross_copy", "auto|on|off", "auto",
         "reach the memory of other processes directly where the system permits it"},
        {"paramnet", "pull_from", "auto_or_size", "auto",
         "sends from this many bytes up are pulled out of the sender's memory; 0: never, auto: as measured "
         "by vipperf --tune, else as each connection learns"},
        {"paramnet", "stream_from", "auto_or_size", "auto",
         "messages from this many bytes up go to the ring past the caches; 0: never, auto: as measured by "
         "vipperf --tune, else as each connection learns"},
        {"paramnet", "trials", "on|off", "on",
         "connections try some of their messages by other methods, to find the fastest; off: never"},
        {"paramnet", "block_bytes", "auto_or_size", "auto",
         "longest piece in which a message goes through the ring, 4K to 64K; auto: as measured by vipperf "
         "--tune, else 64K"},
        {"paramnet", "timing", "none|paramnet2", "none",
         "paramnet2: messages take as long as over PARAMNet-II; none: as fast as the machine can"},
        {"paramnet", "switches", "int", "1", "with timing = paramnet2: how many switches a message passes"},
        {"paramnet", "link_rate", "string", "",
         "bytes a second that the link of a NIC carries; a list by ; for NICs with rates of their own; "
         "empty: no limit"},
        {"paramnet", "faults", "string", "",
         "for tests: what goes wrong on the link of each NIC; fault plans, separated by ;"},
        {"verbs", "devices", "string", "",
         "RDMA devices to offer, names separated by commas; empty: all there are"},
        {"verbs", "port", "int", "20480",
         "first of the 4,099 rdma_cm ports that discriminators are mapped to; the same on all hosts"},
        {"verbs", "depth", "int", "1024", "descriptors per work queue, as far as the device has room"},
        {"verbs", "segments", "int", "16", "segments per descriptor, as far as the device has them"},
        {"verbs", "inline", "int", "128", "sends of up to so many bytes travel within the work request"},
        {"verbs", "send_window", "int", "128", "sends of one VI that the device holds at a time"},
        {"verbs", "ack_timeout", "int", "14",
         "how long the device waits for an acknowledgement: 4.096 us times 2 to this power"},
        {"verbs", "retries", "int", "6", "how often the device sends again before the connection is broken"},
        {"verbs", "keepalive_ms", "int", "2000",
         "how often each end of a connection says that it is there; 0: never"},
        {"mpi", "protocol", "string", "",
         "the only protocol for other processes: via, shm, tcp or a transport that was loaded; empty: the best that "
         "reaches each"},
        {"mpi", "transports", "string", "",
         "folder with more transports, each a file NAME.so; empty: the folder viaduct/transports beside the library"},
        {"mpi", "name_folder", "string", "",
         "folder of files for MPI_Publish_name; empty: the launcher's names, else a folder of this user"},
        {"mpi", "connect_timeout", "c_int", "60", "seconds to wait for other processes while connecting", 1, 86400},
        {"mpi", "close_timeout", "c_int", "0",
         "seconds to wait at the end until the other ranks have closed; 0: as long as they live", 0, 86400},
        {"mpi", "via_device", "string", "", "name given to VipOpenNic; empty: the default NIC"},
        {"mpi", "prepost_depth", "c_int", "0",
         "receives posted for each peer, its credits; 0: 64, fewer with more than 16 processes", 0, 4096},
        {"mpi", "vbuf_spares", "c_int", "128",
         "buffers of 16 KiB beyond the posted ones, and by how many the pool grows", 1, 65536},
        {"mpi", "vbuf_max", "c_int", "65536", "most buffers of 16 KiB this process may have", 16, 1048576},
        {"mpi", "eager_limit", "c_size", "0",
         "longest message via sends without handshake, bytes; 0: what one packet holds, or 6 KiB where auto "
         "means both, and there 32 KiB through the eager ring",
         0, 1048576},
        {"mpi", "rendezvous", "auto|rput|rget|both|r3", "auto",
         "how via moves long messages: rput (remote write), rget (remote read), both (a half each), r3 (packets) "
         "or auto (both where the NIC pins no memory, else rput)"},
        {"mpi", "both_from", "c_size", "32768",
         "shortest message that both sides move at once; shorter ones the receiver reads alone", 0, kVast},
        {"mpi", "r3_limit", "c_size", "8192",
         "long messages up to so many bytes travel as packets, not by remote write or read; where both sides "
         "move them, those up to the eager limit or 6 KiB, whichever is less, unless this is set",
         0, kVast},
        {"mpi", "gap_piece", "c_size", "0",
         "long messages of data with gaps go by remote write or read when their pieces have so many bytes on "
         "average, else as packets; 0: 1024 where the NIC pins memory, else never",
         0, kVast},
        {"mpi", "rendezvous_extra", "c_int", "64",
         "additional receives posted while packets of a long message are expected", 0, 4096},
        {"mpi", "eager_ring_after", "c_int", "8",
         "packets of a peer after which via gives it an eager ring to write into, where the NIC maps memory and "
         "ranks are no more than processors; 0: never",
         0, 65535},
        {"mpi", "shm_ring", "c_size", "262144", "bytes of the shared memory between two processes, each way", 4096,
         1 << 26},
        {"mpi", "tcp_interfaces", "string", "",
         "interfaces tcp listens on and calls by, a comma between them; empty: all, and only lo where "
         "all processes share it"},
        {"mpi", "tcp_buffer", "c_size", "262144",
         "bytes each process keeps for a tcp connection, each way, beside the system's", 8192, 1 << 26},
        {"mpi", "on_demand", "c_int", "32",
         "jobs of more processes than so many: tcp and via connect two when one first sends to the other", 0, 1 << 20},
        {"mpi", "via_nics", "string", "",
         "NICs that via uses together, a comma between them, or all; tcp: sockets too; empty: the one of "
         "CMPI_VIA_DEVICE"},
        {"mpi", "rail_timeout", "c_int", "10",
         "seconds without any NIC that reaches a process, after which it counts as lost; one of the same host does "
         "when it has ended",
         1, 86400},
        {"mpi", "wait_learning", "on|off", "on",
         "waits learn from how they end for how long to look and when to give way or sleep; off: they always look for "
         "the longest"},
        {"mpi", "node_collectives", "on|off", "on",
         "collective calls of ranks that all share a node go through memory that they share, whatever the protocol; "
         "off: by messages"},
        {"mpi", "window_access", "direct|nic|messages", "direct",
         "how one-sided operations reach windows: by system calls on the same host and by the NIC on others, without "
         "the target's help, where they can; by the NIC alone where memory is not shared; or by messages"},
        {"mpi", "progress", "calls|thread", "calls",
         "what moves messages on: calls of MPI only; or also a thread while the program computes, which makes each "
         "call take a lock"},
        {"mpi", "progress_cpus", "string", "",
         "processors of that thread, as 0,2-3; empty: those of the process"},
        {"mpi", "robust", "c_int", "0", "1: the job goes on when one of its processes dies", 0, 1},
        {"mpi", "check", "c_int", "0",
         "1: look for collective calls that do not fit together, overlapping buffers, what is left at the end",
         0, 1},
    };
    return table;
}

const std::vector<OldKey>& Config::old_keys() {
    static const auto& table = *new std::vector<OldKey>{
        {"agent", "deaf_ms", "client_stall_ms"},
        {"mpi", "slots_after", "eager_ring_after"},
        {"mpi", "rail_patience", "rail_timeout"},
    };
    return table;
}

}  // namespace viaduct
