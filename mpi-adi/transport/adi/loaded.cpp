// SPDX-License-Identifier: BSD-2-Clause
// What makes a shared object of a module: linked into it with VIADUCT_TRANSPORT, its name (viaduct_transport). The
// object has protocol/ and what it needs of adi/ inside; what all modules of the process share comes from the library
// that loads it.
#include <cstdlib>
#include <cstring>

#include "mpi-adi/transport/adi/error.hpp"

#define VIADUCT_BIND_OF(name) mpip_##name##_bind
#define VIADUCT_BIND(name) VIADUCT_BIND_OF(name)
#define VIADUCT_TEXT_OF(name) #name
#define VIADUCT_TEXT(name) VIADUCT_TEXT_OF(name)

extern "C" {
struct mpip_upcalls mpip_up;
void VIADUCT_BIND(VIADUCT_TRANSPORT)(const struct mpip_device*, struct protocol*);
}

namespace viaduct::adi {

namespace {

void (*keep_in_library)(const char*);

// Parameters are read here again, from the same places. What the program has set is known there only.
void take_program_values(const mpip_device& device) {
    size_t count = 0;
    const mpip_param* all = device.params(&count);
    for (size_t i = 0; i < count; ++i) {
        if (std::strcmp(all[i].pa_origin, "program") == 0)
            mpip_set_param(all[i].pa_name, std::strtol(all[i].pa_value, nullptr, 10));
    }
}

void bind(const mpip_device* device, struct protocol* table) {
    mpip_up = *device->upcalls;
    keep_in_library = device->keep_error;
    take_program_values(*device);
    VIADUCT_BIND(VIADUCT_TRANSPORT)(device, table);
}

}  // namespace

void keep_error(const char* sentence) {
    if (keep_in_library != nullptr) keep_in_library(sentence);
}

}  // namespace viaduct::adi

extern "C" __attribute__((visibility("default"))) const struct mpip_module mpip_module = {
    CMPI_ADI_VERSION, VIADUCT_TEXT(VIADUCT_TRANSPORT), viaduct::adi::bind};
