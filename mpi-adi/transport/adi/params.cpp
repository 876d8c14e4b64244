// SPDX-License-Identifier: BSD-2-Clause
#include "mpi-adi/transport/adi/params.hpp"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "mpi-adi/transport/adi/cmpi_adi.h"

namespace viaduct::adi {

namespace {

struct Row {
    const char* name;
    const char* standard;
    long low, high;  // both 0: text
    const char* help;
};

constexpr Row kRows[] = {
    {"CMPI_PROTOCOL", "", 0, 0,
     "the only protocol for other processes: via, shm or tcp; empty: the best that reaches each"},
    {"CMPI_CONNECT_TIMEOUT", "60", 1, 86400, "seconds to wait for other processes while connecting"},
    {"CMPI_CLOSE_TIMEOUT", "0", 0, 86400,
     "seconds to wait for the others' goodbyes at the end; 0: as long as they live"},
    {"CMPI_VIA_DEVICE", "", 0, 0, "name given to VipOpenNic; empty: the default NIC"},
    {"CMPI_PREPOST_DEPTH", "0", 0, 4096,
     "receives posted for each peer, its credits; 0: 64, fewer with more than 16 processes"},
    {"CMPI_VBUF_SPARES", "128", 1, 65536,
     "buffers of 16 KiB beyond the posted ones, and by how many the pool grows"},
    {"CMPI_VBUF_MAX", "65536", 16, 1048576, "most buffers of 16 KiB this process may have"},
    {"CMPI_EAGER_LIMIT", "0", 0, 1048576,
     "longest message via sends without handshake, bytes; 0: what one packet holds, or 6 KiB where auto "
     "means both, and there 32 KiB through slots"},
    {"CMPI_RENDEZVOUS", "auto", 0, 0,
     "how via moves long messages: rput (remote write), rget (remote read), both (a half each), r3 (packets) "
     "or auto (both where the NIC pins no memory, else rput)"},
    {"CMPI_BOTH_FROM", "32768", 0, 1L << 40,
     "shortest message that both sides move at once; shorter ones the receiver reads alone"},
    {"CMPI_R3_LIMIT", "8192", 0, 1L << 40,
     "long messages up to so many bytes travel as packets, not by remote write or read; where both sides "
     "move them, those up to the eager limit or 6 KiB, whichever is less, unless this is set"},
    {"CMPI_GAP_PIECE", "0", 0, 1L << 40,
     "long messages of data with gaps go by remote write or read when their pieces have so many bytes on "
     "average, else as packets; 0: 1024 where the NIC pins memory, else never"},
    {"CMPI_RENDEZVOUS_EXTRA", "64", 0, 4096,
     "additional receives posted while packets of a long message are expected"},
    {"CMPI_SLOTS_AFTER", "8", 0, 65535,
     "packets of a peer after which via lends it slots to write into, where the NIC maps memory and ranks "
     "are no more "
     "than processors; 0: never"},
    {"CMPI_SHM_RING", "262144", 4096, 1 << 26, "bytes of the shared memory between two processes, each way"},
    {"CMPI_TCP_INTERFACES", "", 0, 0,
     "interfaces tcp listens on and calls by, a comma between them; empty: lo, and in jobs on several hosts "
     "all"},
    {"CMPI_TCP_BUFFER", "262144", 8192, 1 << 26,
     "bytes each process keeps for a tcp connection, each way, beside the system's"},
    {"CMPI_ON_DEMAND", "32", 0, 1 << 20,
     "jobs of more processes than so many: tcp and via connect two when one first sends to the other"},
    {"CMPI_VIA_NICS", "", 0, 0,
     "NICs that via uses together, a comma between them, or all; empty: the one of CMPI_VIA_DEVICE"},
    {"CMPI_RAIL_PATIENCE", "10", 1, 86400,
     "seconds without any NIC that reaches a living process, after which it counts as lost"},
};
constexpr size_t kCount = std::size(kRows);
static_assert(kCount == static_cast<size_t>(Param::count_),
              "one row for each parameter, in the order of the enum");

bool is_number(const Row& row) { return row.low != 0 || row.high != 0; }

struct Values {
    std::string text[kCount];
    long number[kCount];
    bool given[kCount];
    mpip_param table[kCount];

    Values() {
        for (size_t i = 0; i < kCount; ++i) {
            const Row& row = kRows[i];
            const char* found = std::getenv(row.name);
            given[i] = found != nullptr && (!is_number(row) || in_range(row, found));
            text[i] = given[i] ? found : row.standard;
            number[i] = is_number(row) ? std::strtol(text[i].c_str(), nullptr, 0) : 0;
            table[i] = {
                row.name, row.help, row.standard, text[i].c_str(), given[i] ? "environment" : "default",
                row.low,  row.high};
        }
    }

    void set(size_t i, long value) {
        text[i] = std::to_string(value);
        number[i] = value;
        given[i] = true;
        table[i].pa_value = text[i].c_str();
        table[i].pa_origin = "program";
    }

    static bool in_range(const Row& row, const char* text) {
        char* end = nullptr;
        const long value = std::strtol(text, &end, 0);
        return end != text && *end == '\0' && value >= row.low && value <= row.high;
    }
};

Values& values() {
    static Values all;
    return all;
}

}  // namespace

long param_number(Param param) { return values().number[static_cast<size_t>(param)]; }
const char* param_text(Param param) { return values().text[static_cast<size_t>(param)].c_str(); }
bool param_given(Param param) { return values().given[static_cast<size_t>(param)]; }

}  // namespace viaduct::adi

extern "C" const struct mpip_param* mpip_params(size_t* count) {
    *count = viaduct::adi::kCount;
    return viaduct::adi::values().table;
}

extern "C" int mpip_set_param(const char* name, long value) {
    using namespace viaduct::adi;
    for (size_t i = 0; i < kCount; ++i) {
        const Row& row = kRows[i];
        if (std::strcmp(row.name, name) != 0) continue;
        if (!is_number(row) || value < row.low || value > row.high) return MPIP_ERR_ARG;
        values().set(i, value);
        return MPIP_SUCCESS;
    }
    return MPIP_ERR_ARG;
}
