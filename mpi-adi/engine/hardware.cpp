// SPDX-License-Identifier: BSD-2-Clause
// Reads /sys/devices/system/cpu for each processor that this process may use. See hardware.hpp.
#include "mpi-adi/engine/hardware.hpp"

#include <dirent.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

#include "mpi-adi/engine/p2p.hpp"

namespace viaduct::mpi::hardware {
namespace {

// More processors than a host has, and at least as many of each other resource.
constexpr int kMostOfHost = 1 << 13;

// The number in a file, or -1.
int number_in(const std::string& file) {
    int number = -1;
    std::ifstream(file) >> number;
    return number;
}

// Memory has no file of its own there: the folder links to its node. (In libstdc++ an allocation that fails in
// std::filesystem::directory_iterator ends the process.)
int node_of(const std::string& folder) {
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
    while (const dirent* entry = entries != nullptr ? ::readdir(entries.get()) : nullptr) {
        const std::string name = entry->d_name;
        if (name.starts_with("node") && name.size() > 4 &&
            name.find_first_not_of("0123456789", 4) == std::string::npos) {
            return std::stoi(name.substr(4));
        }
    }
    return -1;
}

// The first processor in a list such as "0-3,8" names what they share as well as any number.
int first_of_list(const std::string& file) { return number_in(file); }

int last_cache_of(const std::string& folder) {
    for (int index = 0; index < 8; ++index) {
        const std::string cache = folder + "/cache/index" + std::to_string(index);
        if (number_in(cache + "/level") == 3) {
            return first_of_list(cache + "/shared_cpu_list");
        }
    }
    return -1;
}

int instance(int resource, int processor) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(processor);
    switch (resource) {
        case 0: return 0;
        case 1: return node_of(folder);
        case 2: return number_in(folder + "/topology/physical_package_id");
        case 3: return last_cache_of(folder);
        case 4: return first_of_list(folder + "/topology/thread_siblings_list");
        case 5: return processor;
        default: return -1;
    }
}

}  // namespace

int resource_named(std::string_view name) {
    const auto found = std::find(std::begin(kResourceNames), std::end(kResourceNames), name);
    return found == std::end(kResourceNames) ? -1 : int(found - std::begin(kResourceNames));
}

int color(int resource) {
    int only = 0;
    if (resource > 0) {  // the memory of a host is one, whatever the processors
        cpu_set_t mask;
        if (::sched_getaffinity(0, sizeof mask, &mask) != 0) {
            return MPI_UNDEFINED;
        }
        only = -1;
        for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
            if (!CPU_ISSET(processor, &mask)) {
                continue;
            }
            const int here = instance(resource, processor);
            if (here < 0 || here >= kMostOfHost || (only >= 0 && here != only)) {
                return MPI_UNDEFINED;
            }
            only = here;
        }
        if (only < 0) {
            return MPI_UNDEFINED;
        }
    }
    // Processes that name different resources are never together.
    const int64_t number = (int64_t(world().nodes[size_t(world().rank)]) * kResources + resource) * kMostOfHost + only;
    // Numbers of nodes are those of one job; the first process's number keeps others apart, as well as one word can.
    constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;
    return int((uint64_t(number) ^ (world().numbers[0] * kSpread >> 33)) & INT32_MAX);
}

}  // namespace viaduct::mpi::hardware
