// SPDX-License-Identifier: BSD-2-Clause
// The documented cells and rows. Sources: spec/states 3, spec/calls 4, spec/reliability 6.2, spec/errors 8,
// with spec/compat 12 on top.
#include "conform_table.hpp"

namespace viaduct::conformance {
namespace {

constexpr const char* kEarly = "Early Adopter";
constexpr const char* kFunctional = "Functional";
constexpr const char* kFull = "Full";

constexpr DocumentedCall kCalls[] = {
    {"VipOpenNic", kEarly, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},
    {"VipCloseNic", kEarly, "SUCCESS:- INVALID_PARAMETER:-"},
    {"VipQueryNic", kEarly, "SUCCESS:- INVALID_PARAMETER:-"},

    {"VipCreateVi", kEarly,
     "SUCCESS:- ERROR_RESOURCE:- INVALID_PARAMETER:- INVALID_RELIABILITY_LEVEL:- INVALID_MTU:- INVALID_QOS:- "
     "INVALID_PTAG:- INVALID_RDMAREAD:-"},
    {"VipDestroyVi", kEarly, "SUCCESS:I INVALID_PARAMETER:- INVALID_STATE:PCE ERROR_RESOURCE:I"},
    {"VipQueryVi", kEarly, "SUCCESS:IPCE INVALID_PARAMETER:-IPCE"},
    {"VipSetViAttributes", kEarly,
     "SUCCESS:I INVALID_PARAMETER:-I INVALID_STATE:PCE INVALID_RELIABILITY_LEVEL:I INVALID_MTU:I INVALID_QOS:I "
     "INVALID_PTAG:I INVALID_RDMAREAD:I ERROR_RESOURCE:I"},

    {"VipConnectWait", kEarly, "SUCCESS:- TIMEOUT:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},
    {"VipConnectAccept", kEarly,
     "SUCCESS:I INVALID_PARAMETER:- INVALID_RELIABILITY_LEVEL:I INVALID_MTU:I INVALID_QOS:I INVALID_STATE:PCE "
     "TIMEOUT:I ERROR_RESOURCE:I"},
    {"VipConnectReject", kEarly, "SUCCESS:- INVALID_PARAMETER:-"},
    {"VipConnectRequest", kEarly,
     "SUCCESS:I REJECT:I TIMEOUT:I NO_MATCH:I INVALID_PARAMETER:-I INVALID_STATE:PCE ERROR_RESOURCE:I"},
    {"VipDisconnect", kEarly, "SUCCESS:IPCE INVALID_PARAMETER:-"},

    {"VipConnectPeerRequest", kFunctional,
     "SUCCESS:I INVALID_PARAMETER:-I INVALID_STATE:PCE ERROR_RESOURCE:I"},
    {"VipConnectPeerDone", kFunctional,
     "SUCCESS:P NOT_DONE:P TIMEOUT:P REJECT:P NO_MATCH:P INVALID_RELIABILITY_LEVEL:P INVALID_MTU:P INVALID_QOS:P "
     "INVALID_STATE:ICE INVALID_PARAMETER:-P"},
    {"VipConnectPeerWait", kFunctional,
     "SUCCESS:P TIMEOUT:P REJECT:P NO_MATCH:P INVALID_RELIABILITY_LEVEL:P INVALID_MTU:P INVALID_QOS:P "
     "INVALID_STATE:ICE INVALID_PARAMETER:-P"},

    {"VipCreatePtag", kFunctional, "SUCCESS:- ERROR_RESOURCE:- INVALID_PARAMETER:-"},
    {"VipDestroyPtag", kFunctional, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},

    {"VipRegisterMem", kEarly,
     "SUCCESS:- ERROR_RESOURCE:- INVALID_PARAMETER:- INVALID_PTAG:- INVALID_RDMAREAD:-"},
    {"VipDeregisterMem", kEarly, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},
    {"VipQueryMem", kFunctional, "SUCCESS:- INVALID_PARAMETER:-"},
    {"VipSetMemAttributes", kFunctional, "SUCCESS:- INVALID_PARAMETER:- INVALID_PTAG:- INVALID_RDMAREAD:-"},

    {"VipPostSend", kEarly, "SUCCESS:IPCE INVALID_PARAMETER:-IPCE"},
    {"VipSendDone", kEarly, "SUCCESS:C NOT_DONE:C DESCRIPTOR_ERROR:IPCE INVALID_PARAMETER:-IPCE"},
    {"VipSendWait", kEarly, "SUCCESS:C TIMEOUT:C DESCRIPTOR_ERROR:IPCE ERROR_RESOURCE:IC INVALID_PARAMETER:-IPCE"},
    {"VipSendNotify", kFull, "SUCCESS:IPCE INVALID_PARAMETER:-IPCE ERROR_RESOURCE:I"},
    {"VipPostRecv", kEarly, "SUCCESS:IPCE INVALID_PARAMETER:-IPCE"},
    {"VipRecvDone", kEarly, "SUCCESS:CEI NOT_DONE:IPC DESCRIPTOR_ERROR:IPCE INVALID_PARAMETER:-IPCE"},
    {"VipRecvWait", kEarly,
     "SUCCESS:C TIMEOUT:IPC DESCRIPTOR_ERROR:IPCE ERROR_RESOURCE:IPC INVALID_PARAMETER:-IPCE"},
    {"VipRecvNotify", kFull, "SUCCESS:IPCE INVALID_PARAMETER:-IPCE ERROR_RESOURCE:I"},

    {"VipCreateCQ", kEarly, "SUCCESS:- ERROR_RESOURCE:- INVALID_PARAMETER:-"},
    {"VipDestroyCQ", kEarly, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},
    {"VipResizeCQ", kFunctional, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},
    {"VipCQDone", kEarly, "SUCCESS:- NOT_DONE:- INVALID_PARAMETER:-"},
    {"VipCQWait", kEarly, "SUCCESS:- TIMEOUT:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},
    {"VipCQNotify", kFull, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},

    {"VipQuerySystemManagementInfo", kFunctional, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:-"},
    {"VipErrorCallback", kFunctional, "SUCCESS:- INVALID_PARAMETER:-"},

    {"VipNSInit", kEarly, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:- ERROR_NAMESERVICE:-"},
    {"VipNSGetHostByName", kEarly, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:- ERROR_NAMESERVICE:-"},
    {"VipNSGetHostByAddr", kEarly, "SUCCESS:- INVALID_PARAMETER:- ERROR_RESOURCE:- ERROR_NAMESERVICE:-"},
    {"VipNSShutdown", kEarly, "SUCCESS:- INVALID_PARAMETER:- ERROR_NAMESERVICE:-"},
};

constexpr const char* kNoLimit =
    "no limit that a program could reach through vipl.h alone; only exhausting the host would show it";
constexpr const char* kServiceUp = "needs a broken or unreachable name service, which is configuration outside vipl.h";

constexpr NotShown kNotShown[] = {
    {"VipOpenNic", "ERROR_RESOURCE", "-", kNoLimit},
    {"VipSetViAttributes", "ERROR_RESOURCE", "I", "replacing attributes needs no resource, so nothing can run out"},
    {"VipConnectWait", "ERROR_RESOURCE", "-",
     "the number of connection handles outstanding is not an attribute of a NIC"},
    {"VipConnectAccept", "ERROR_RESOURCE", "I",
     "the other spelling of TIMEOUT for a requester that has left; this suite asks for TIMEOUT"},
    {"VipConnectRequest", "ERROR_RESOURCE", "I", kNoLimit},
    {"VipConnectPeerRequest", "ERROR_RESOURCE", "I", kNoLimit},
    {"VipConnectPeerDone", "REJECT", "P", "a peer has no call that rejects"},
    {"VipConnectPeerDone", "NO_MATCH", "P",
     "a peer that has not called yet is not a mismatch; only the timeout ends the wait"},
    {"VipConnectPeerWait", "REJECT", "P", "a peer has no call that rejects"},
    {"VipConnectPeerWait", "NO_MATCH", "P",
     "a peer that has not called yet is not a mismatch; only the timeout ends the wait"},
    {"VipDeregisterMem", "ERROR_RESOURCE", "-",
     "only for providers that cannot release memory with transfers outstanding"},
    {"VipCQWait", "ERROR_RESOURCE", "-",
     "several threads may wait on one completion queue, and nothing else is limited"},
    {"VipCQNotify", "ERROR_RESOURCE", "-", kNoLimit},
    {"VipNSInit", "ERROR_RESOURCE", "-", kNoLimit},
    {"VipNSInit", "ERROR_NAMESERVICE", "-", kServiceUp},
    {"VipNSGetHostByName", "ERROR_RESOURCE", "-", kNoLimit},
    {"VipNSGetHostByAddr", "ERROR_RESOURCE", "-", kNoLimit},
};

constexpr DocumentedRow kRows[] = {
    {"2.3 FORMAT_ERROR", "UDR"},
    {"2.3 PROTECTION_ERROR", "UDR"},
    {"2.3 LENGTH_ERROR", "UDR"},
    {"2.3 PARTIAL_ERROR", "-"},
    {"2.3 DESC_FLUSHED_ERROR", "UDR"},
    {"2.3 TRANSPORT_ERROR", "DR"},
    {"2.3 RDMA_PROT_ERROR", "DR"},
    {"2.3 REMOTE_DESC_ERROR", "R"},
    {"6.1 Corrupt data detected", "UDR"},
    {"6.1 Delivered at most once", "UDR"},
    {"6.1 Delivered exactly once", "DR"},
    {"6.1 Order guaranteed", "DR"},
    {"6.1 RDMA Write supported", "UDR"},
    {"6.1 RDMA Read supported", "UDR"},
    {"6.1 Data in target memory when the send completes", "R"},
    {"6.2 Message lost in the network", "UDR"},
    {"6.2 Message corrupted in the network", "UDR"},
    {"6.2 Link down", "UDR"},
    {"6.2 No receive descriptor posted", "UDR"},
    {"6.2 Message larger than receive descriptor", "UDR"},
    {"6.2 Receive descriptor format error", "UDR"},
    {"6.2 Receive descriptor protection error", "UDR"},
    {"6.2 Local send descriptor format error", "UDR"},
    {"6.2 Local send descriptor protection error", "UDR"},
    {"6.2 Local send descriptor length error", "UDR"},
    {"6.2 RDMA Write refused at target", "UDR"},
    {"6.2 RDMA Write with immediate refused at target", "UDR"},
    {"6.2 RDMA Read refused", "DR"},
    {"6.2 Remote VI disconnected", "UDR"},
    {"6.2 Remote process killed", "UDR"},
    {"6.2 Sender faster than receiver", "UDR"},
    {"8 POST_DESC", "UDR"},
    {"8 CONN_LOST", "UDR"},
    {"8 RECVQ_EMPTY", "UDR"},
    {"8 VI_OVERRUN", "UDR"},
    {"8 RDMAW_PROT", "UDR"},
    {"8 RDMAW_DATA", "U"},
    {"8 RDMAW_ABORT", "-"},
    {"8 RDMAR_PROT", "DR"},
    {"8 COMP_PROT", "-"},
    {"8 RDMA_TRANSPORT", "-"},
    {"8 CATASTROPHIC", "-"},
};

constexpr RowNotShown kRowsNotShown[] = {
    {"2.3 PARTIAL_ERROR", "needs a transfer cut in its middle at a moment the program can choose; no call offers that"},
    {"8 RDMAW_ABORT",
     "needs a packet sequence cut in its middle at a moment the program can choose; no call offers that"},
    {"8 COMP_PROT",
     "needs completion memory whose mapping vanishes; taking it away would fault a provider that runs in the process"},
    {"8 RDMA_TRANSPORT",
     "an RDMA operation that fails in transport has a descriptor at its initiator, which reports it (2.3 "
     "TRANSPORT_ERROR)"},
};

template <typename T, int N>
constexpr int count(const T (&)[N]) {
    return N;
}

}  // namespace

ConformanceTable conformance_table() {
    return {kCalls,  count(kCalls), kNotShown,     count(kNotShown),
            kRows,   count(kRows),  kRowsNotShown, count(kRowsNotShown)};
}

}  // namespace viaduct::conformance
