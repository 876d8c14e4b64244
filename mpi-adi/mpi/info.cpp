// SPDX-License-Identifier: BSD-2-Clause
// MPI functions on info objects.
#include "mpi-adi/engine/info.hpp"

#include <algorithm>
#include <cstring>

#include "mpi-adi/mpi/call.hpp"

namespace viaduct::mpi {
namespace {

bool key_holds(const char* key) {
    size_t n = key ? strnlen(key, MPI_MAX_INFO_KEY + 1) : 0;
    return n > 0 && n <= MPI_MAX_INFO_KEY;
}

bool value_holds(const char* value) { return value && strnlen(value, MPI_MAX_INFO_VAL + 1) <= MPI_MAX_INFO_VAL; }

// At most `room` bytes with the zero byte.
void give(const std::string& value, char* out, size_t room) {
    size_t n = std::min(value.size(), room - 1);
    std::memcpy(out, value.data(), n);
    out[n] = 0;
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

VIADUCT_MPI(Info_create, (MPI_Info * info)) {
    AnyTimeCall call("MPI_Info_create");
    VIADUCT_MPI_NEED(info)
    *info = info_create()->handle;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_create_env, (int, char**, MPI_Info* info)) {
    AnyTimeCall call("MPI_Info_create_env");
    VIADUCT_MPI_NEED(info)
    Info* made = info_create();
    made->entries = info_of(MPI_INFO_ENV)->entries;
    *info = made->handle;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_dup, (MPI_Info info, MPI_Info* newinfo)) {
    AnyTimeCall call("MPI_Info_dup");
    VIADUCT_MPI_NEED(newinfo)
    Info* found = info_of(info);
    if (!found) {
        return call.result(MPI_ERR_INFO);
    }
    Info* made = info_create();
    made->entries = found->entries;
    *newinfo = made->handle;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_free, (MPI_Info * info)) {
    AnyTimeCall call("MPI_Info_free");
    VIADUCT_MPI_NEED(info)
    Info* found = info_of(*info);
    if (!found || *info == MPI_INFO_ENV) {
        return call.result(MPI_ERR_INFO);
    }
    info_destroy(found);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_set, (MPI_Info info, const char* key, const char* value)) {
    AnyTimeCall call("MPI_Info_set");
    Info* found = info_of(info);
    if (!found) {
        return call.result(MPI_ERR_INFO);
    }
    if (!key_holds(key)) {
        return call.result(MPI_ERR_INFO_KEY);
    }
    if (!value_holds(value)) {
        return call.result(MPI_ERR_INFO_VALUE);
    }
    found->set(key, value);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_get, (MPI_Info info, const char* key, int valuelen, char* value, int* flag)) {
    AnyTimeCall call("MPI_Info_get");
    VIADUCT_MPI_NEED(value, flag)
    Info* found = info_of(info);
    if (!found) {
        return call.result(MPI_ERR_INFO);
    }
    if (!key_holds(key)) {
        return call.result(MPI_ERR_INFO_KEY);
    }
    if (valuelen < 0) {
        return call.result(MPI_ERR_INFO_VALUE);
    }
    const std::string* entry = found->find(key);
    *flag = entry != nullptr;
    if (entry) {
        give(*entry, value, size_t(valuelen) + 1);
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_get_string, (MPI_Info info, const char* key, int* buflen, char* value, int* flag)) {
    AnyTimeCall call("MPI_Info_get_string");
    VIADUCT_MPI_NEED(buflen, flag)
    if (*buflen > 0) {
        VIADUCT_MPI_NEED(value)
    }
    Info* found = info_of(info);
    if (!found) {
        return call.result(MPI_ERR_INFO);
    }
    if (!key_holds(key)) {
        return call.result(MPI_ERR_INFO_KEY);
    }
    const std::string* entry = found->find(key);
    *flag = entry != nullptr;
    if (entry) {
        if (*buflen > 0) {
            give(*entry, value, size_t(*buflen));
        }
        *buflen = int(entry->size()) + 1;  // what it would have taken
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_get_valuelen, (MPI_Info info, const char* key, int* valuelen, int* flag)) {
    AnyTimeCall call("MPI_Info_get_valuelen");
    VIADUCT_MPI_NEED(valuelen, flag)
    Info* found = info_of(info);
    if (!found) {
        return call.result(MPI_ERR_INFO);
    }
    if (!key_holds(key)) {
        return call.result(MPI_ERR_INFO_KEY);
    }
    const std::string* entry = found->find(key);
    *flag = entry != nullptr;
    if (entry) {
        *valuelen = int(entry->size());
    }
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_get_nkeys, (MPI_Info info, int* nkeys)) {
    AnyTimeCall call("MPI_Info_get_nkeys");
    VIADUCT_MPI_NEED(nkeys)
    Info* found = info_of(info);
    if (!found) {
        return call.result(MPI_ERR_INFO);
    }
    *nkeys = int(found->entries.size());
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_get_nthkey, (MPI_Info info, int n, char* key)) {
    AnyTimeCall call("MPI_Info_get_nthkey");
    VIADUCT_MPI_NEED(key)
    Info* found = info_of(info);
    if (!found) {
        return call.result(MPI_ERR_INFO);
    }
    if (n < 0 || n >= int(found->entries.size())) {
        return call.result(MPI_ERR_ARG);
    }
    give(found->entries[size_t(n)].first, key, MPI_MAX_INFO_KEY + 1);
    return MPI_SUCCESS;
} VIADUCT_MPI_CATCH()

VIADUCT_MPI(Info_delete, (MPI_Info info, const char* key)) {
    AnyTimeCall call("MPI_Info_delete");
    Info* found = info_of(info);
    if (!found || info == MPI_INFO_ENV) {
        return call.result(MPI_ERR_INFO);
    }
    if (!key_holds(key)) {
        return call.result(MPI_ERR_INFO_KEY);
    }
    return found->erase(key) ? MPI_SUCCESS : call.result(MPI_ERR_INFO_NOKEY);
} VIADUCT_MPI_CATCH()
