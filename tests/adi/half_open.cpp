// SPDX-License-Identifier: BSD-2-Clause
// Connections of which one end has given up the attempt when the other one is connected: what a busy machine does now
// and then, done here each time. They break before anything went through, and are made anew: no process is lost.
#include <dlfcn.h>

#include <utility>

#include "cases.hpp"
#include "mpi-adi/transport/via/receive.hpp"
#include "mpi-adi/transport/via/transport.hpp"

namespace viaduct::adi_test {
namespace {

// So many successes of a call in this process are given up.
int accepts_given_up = 0, requests_given_up = 0, peers_given_up = 0;
// The VI that a given up request was made with, in place of the lane's.
VIP_VI_HANDLE spare_of_request = nullptr, lane_of_request = nullptr;

template <class Call>
Call* library(const char* name) {
    return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}

// It connects in place of `vi`, which then looks as after an attempt that has failed.
VIP_VI_HANDLE make_spare(VIP_VI_HANDLE vi) {
    VIP_VI_STATE state;
    VIP_VI_ATTRIBUTES attributes;
    VIP_BOOLEAN sends, receives;
    VIP_VI_HANDLE spare = nullptr;
    CHECK(VipQueryVi(vi, &state, &attributes, &sends, &receives) == VIP_SUCCESS);
    CHECK(VipCreateVi(via::via_module->nic.handle, &attributes, nullptr, nullptr, &spare) == VIP_SUCCESS);
    return spare;
}

// As the call answers whose time is over, though the other end has been told that it is connected.
VIP_RETURN give_up(VIP_RETURN answer, VIP_VI_HANDLE spare, int& left) {
    if (answer == VIP_SUCCESS) {
        --left;
        answer = VIP_TIMEOUT;
    }
    CHECK(VipDisconnect(spare) == VIP_SUCCESS);
    CHECK(VipDestroyVi(spare) == VIP_SUCCESS);
    return answer;
}

}  // namespace

unsigned client_requests = 0, peer_requests = 0;

// In front of those of libvipl, for the module in this program.
extern "C" {
VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE handle, VIP_VI_HANDLE vi) {
    static auto* const real = library<decltype(VipConnectAccept)>("VipConnectAccept");
    if (accepts_given_up == 0) return real(handle, vi);
    VIP_VI_HANDLE spare = make_spare(vi);
    return give_up(real(handle, spare), spare, accepts_given_up);
}
VIP_RETURN VipConnectRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote, VIP_ULONG timeout,
                             VIP_VI_ATTRIBUTES* theirs) {
    static auto* const real = library<decltype(VipConnectRequest)>("VipConnectRequest");
    ++client_requests;
    if (requests_given_up == 0) return real(vi, local, remote, timeout, theirs);
    VIP_VI_HANDLE spare = make_spare(vi);
    return give_up(real(spare, local, remote, timeout, theirs), spare, requests_given_up);
}
VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote, VIP_ULONG timeout) {
    static auto* const real = library<decltype(VipConnectPeerRequest)>("VipConnectPeerRequest");
    ++peer_requests;
    if (peers_given_up == 0 || spare_of_request != nullptr) return real(vi, local, remote, timeout);
    spare_of_request = make_spare(vi);
    lane_of_request = vi;
    return real(spare_of_request, local, remote, timeout);
}
VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE vi, VIP_VI_ATTRIBUTES* theirs) {
    static auto* const real = library<decltype(VipConnectPeerDone)>("VipConnectPeerDone");
    if (vi != lane_of_request) return real(vi, theirs);
    const VIP_RETURN answer = real(spare_of_request, theirs);
    if (answer == VIP_NOT_DONE) return answer;
    lane_of_request = nullptr;
    return give_up(answer, std::exchange(spare_of_request, nullptr), peers_given_up);
}
}

namespace {

void all_with_all(Job& job, int& given_up) {
    given_up = job.rank() % 2 == 0 ? 4 : 1;
    Engine e(job, module);
    std::vector<unsigned char> out(20000), in(out.size());
    for (const size_t size : {size_t{0}, size_t{8}, out.size()}) {
        for (int step = 1; step < e.size(); ++step) {
            const int to = (e.rank() + step) % e.size(), from = (e.rank() + e.size() - step) % e.size();
            fill(out, static_cast<uint32_t>(e.rank()));
            mpip_req_t send, receive;
            e.irecv(receive, from, 5, in.data(), size);
            e.isend(send, to, 5, out.data(), size);
            CHECK(e.wait(receive) == MPIP_SUCCESS && e.wait(send) == MPIP_SUCCESS);
            CHECK(holds(in.data(), size, static_cast<uint32_t>(from)));
        }
    }
    CHECK(e.failed().empty());
    e.barrier();
    given_up = 0;
}

void acceptor_gave_up(Job& job) { all_with_all(job, accepts_given_up); }
void requester_gave_up(Job& job) { all_with_all(job, requests_given_up); }
void equal_gave_up(Job& job) { all_with_all(job, peers_given_up); }

}  // namespace

std::vector<Case> half_open_cases() {
    return {
        {"acceptor-gave-up", acceptor_gave_up, 4, 20, "via"},
        {"requester-gave-up", requester_gave_up, 4, 20, "via"},
        {"equal-gave-up", equal_gave_up, 4, 30, "via", {{"CMPI_ON_DEMAND", "0"}}},
    };
}

}  // namespace viaduct::adi_test
