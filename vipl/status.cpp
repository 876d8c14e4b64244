// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/status.hpp"

#include <cerrno>
#include <cstring>

#include "vipl/why.hpp"

namespace viaduct::vipl {
namespace {

VIP_RETURN for_open(Status status) {
    switch (status) {
        case Status::ok:
            return VIP_SUCCESS;
        case Status::unknown_name:
        case Status::invalid:
            return VIP_INVALID_PARAMETER;
        default:
            return VIP_ERROR_RESOURCE;
    }
}

VIP_RETURN for_create(Status status) {
    switch (status) {
        case Status::ok:
            return VIP_SUCCESS;
        case Status::invalid:
            return VIP_INVALID_PARAMETER;
        default:
            return VIP_ERROR_RESOURCE;
    }
}

// A peer that is dead or absent is one of REJECT, TIMEOUT, NO_MATCH, ERROR_RESOURCE (spec/compat C5, C7).
VIP_RETURN for_connection(Status status) {
    switch (status) {
        case Status::ok:
            return VIP_SUCCESS;
        case Status::not_done:
        case Status::timeout:
            return VIP_TIMEOUT;
        case Status::rejected:
            return VIP_REJECT;
        case Status::no_match:
        case Status::unknown_name:
            return VIP_NO_MATCH;
        case Status::closed:
        case Status::invalid_state:
            return VIP_INVALID_STATE;  // VipDisconnect ended the attempt
        default:
            return VIP_ERROR_RESOURCE;
    }
}

// Both ends are there, but do not fit together: a requester is not told (spec/calls 4.4).
VIP_RETURN for_mismatch(Status status, VIP_RETURN otherwise) {
    switch (status) {
        case Status::mismatch_level:
            return VIP_INVALID_RELIABILITY_LEVEL;
        case Status::mismatch_mtu:
            return VIP_INVALID_MTU;
        case Status::mismatch_qos:
            return VIP_INVALID_QOS;
        default:
            return otherwise;
    }
}

VIP_RETURN for_accept(Status status) {
    switch (status) {
        case Status::ok:
            return VIP_SUCCESS;
        case Status::closed:
        case Status::invalid_state:
            return VIP_INVALID_STATE;
        case Status::out_of_resources:
        case Status::denied:
            return VIP_ERROR_RESOURCE;
        default:
            return for_mismatch(status, VIP_TIMEOUT);  // the requester has left, whichever way that was seen
    }
}

VIP_RETURN for_wait(Status status) {
    switch (status) {
        case Status::ok:
            return VIP_SUCCESS;
        case Status::not_done:
        case Status::timeout:
            return VIP_TIMEOUT;
        case Status::invalid:
        case Status::closed:
            return VIP_INVALID_PARAMETER;
        default:
            return VIP_ERROR_RESOURCE;
    }
}

VIP_RETURN for_names(Status status) {
    switch (status) {
        case Status::ok:
            return VIP_SUCCESS;
        case Status::out_of_resources:
            return VIP_ERROR_RESOURCE;
        default:
            return VIP_ERROR_NAMESERVICE;
    }
}

VIP_RETURN for_extension(Status status) {
    switch (status) {
        case Status::ok:
            return VIP_SUCCESS;
        case Status::invalid:
            return VIP_INVALID_PARAMETER;
        case Status::invalid_state:
        case Status::closed:
            return VIP_INVALID_STATE;
        case Status::not_supported:
            return VIP_ERROR_NOT_SUPPORTED;
        default:
            return VIP_ERROR_RESOURCE;
    }
}

VIP_RETURN code_for(CallKind kind, Status status) {
    switch (kind) {
        case CallKind::open_nic:
            return for_open(status);
        case CallKind::create:
            return for_create(status);
        case CallKind::connect_wait:
            return for_wait(status);
        case CallKind::accept:
            return for_accept(status);
        case CallKind::request:
            return for_connection(status);
        case CallKind::peer:
            return for_mismatch(status, for_connection(status));
        case CallKind::names:
            return for_names(status);
        case CallKind::extension:
            return for_extension(status);
    }
    return VIP_ERROR_RESOURCE;
}

const char* words_for(CallKind kind) {
    switch (kind) {
        case CallKind::open_nic:
            return "opening a NIC";
        case CallKind::create:
            return "creating or registering";
        case CallKind::connect_wait:
        case CallKind::accept:
        case CallKind::request:
        case CallKind::peer:
            return "connecting";
        case CallKind::names:
            return "looking up a name";
        case CallKind::extension:
            return "an extension";
    }
    return "a call";
}

const char* words_for(Status status) {
    switch (status) {
        case Status::out_of_resources:
            return "no memory, descriptors, threads or quota left";
        case Status::denied:
            return "not permitted";
        case Status::version:
            return "the other side is of another version";
        case Status::timeout:
        case Status::not_done:
            return "the agent does not answer";
        case Status::broken:
        case Status::closed:
            return "no agent, or no peer";
        default:
            return "it cannot be done here";
    }
}

}  // namespace

VIP_RETURN to_return(CallKind kind, Status status) {
    const VIP_RETURN answer = code_for(kind, status);
    // The code is one for many causes; the record tells them apart.
    if (answer == VIP_ERROR_RESOURCE)
        refuse(answer, "vipinfo --doctor", "%s: %s (the system's last error: %s)", words_for(kind), words_for(status),
               std::strerror(errno));
    return answer;
}

Status compare_traits(const ViTraits& mine, const ViTraits& other) {
    if (mine.reliability != other.reliability) return Status::mismatch_level;
    if (mine.max_transfer != other.max_transfer) return Status::mismatch_mtu;
    if (mine.qos != other.qos) return Status::mismatch_qos;
    return Status::ok;
}

}  // namespace viaduct::vipl
