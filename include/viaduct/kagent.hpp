// SPDX-License-Identifier: BSD-2-Clause
// The agent protocol: this header is the specification. A client (libvipl in some process, or a tool) talks
// to vipkad over one SOCK_SEQPACKET Unix socket; one packet is one message: MailHeader, then the payload
// struct of its type, packed as declared here, then nothing. Descriptors ride along (SCM_RIGHTS) in the order
// named in the comment. Host byte order: both ends are on one host. Every length is checked for equality (or,
// where `text` follows, for bounds); what does not fit is answered with kError/Status::invalid and the client
// stays connected, unless it cannot even be parsed: then it is dropped.
//
// A session = one socket = one process: that is what tells processes apart, never a process number, which is 0
// for a process in a PID namespace that the agent does not see. The kernel's credentials (SO_PEERCRED) name the
// user, unless the agent's user namespace has no number for that user: then the session counts as a user of its own.
// When the socket closes, everything the session owned is released at once. Requests carry a ticket chosen by the
// client (non-zero); answers repeat it. Requests may be answered in any order: those that make connections are
// answered when their connection is decided.
//
// Versions: the first message is kHello with the lowest and highest version the client speaks. The agent
// answers kWelcome with the highest common one, or kError/Status::version and its own range, and closes. A client that
// it has no room for, or does not serve, gets kError (out_of_resources, denied) with ticket 1, which is that of the
// hello, before it has said anything; then the agent closes.
#pragma once

#include <cstdint>

#include "viaduct/types.hpp"

namespace viaduct::kagent {

inline constexpr uint32_t kMagic = 0x4B414456;  // "VDAK"
inline constexpr uint16_t kVersionMin = 1;
inline constexpr uint16_t kVersionMax = 1;
inline constexpr uint32_t kMaxMessage = 8192;
inline constexpr uint32_t kMaxDescriptors = 8;

enum class Type : uint16_t {
    // client -> agent                 answered by
    kHello = 1,    // Hello            kWelcome | kError
    kListNics,     // Empty            kNicEntry / kRejection (many, more = 1), last has more = 0 (kDone when
                   // none)
    kResolveName,  // NameText         kNicEntry (the NIC a VipOpenNic name would open) | kError(unknown_name). Behind
                   // the zero byte of the name: the program's names.default_provider; empty: the agent's
    kOpenNic,      // OpenNic + fds    kOpened | kError
    kCloseNic,     // ContextRef       kDone
    kLease,        // Lease            kLeaseGrant | kError(out_of_resources)
    kConnWait,     // ConnWait         kIncoming | kError
    kConnRequest,  // ConnRequest      kJoined + fds | kError(no_match, rejected, timeout, ...)
    kConnPeer,     // ConnRequest      kJoined + fds, then kDone | kError(rejected); or kError(timeout, mismatch_*, ...)
    kConnAccept,   // ConnAccept       kJoined + fds | kError(timeout: requester has left; invalid: no such
                   // incoming; mismatch_*: the incoming stays valid)
    kConnConfirm,  // ConnConfirm      kDone: the acceptor's kJoined has left the agent | kError(timeout: the acceptor
                   // has given up; invalid: it is no connection of this agent). The requester has mapped and
                   // attached: the acceptor is told now. With ticket 0 there is no answer
    kConnReject,   // IncomingRef      kDone | kError(invalid). In place of a kConnConfirm, with the number of the
                   // connection: the requester cannot take it up, and the acceptor is told so
    kCancel,  // Cancel           kDone (the other ticket was cancelled and gets no answer) | kError(closed)
              // (its answer is on its way, before this one)
    kNameLookup,     // NameLookup       kNameEntry | kError(unknown_name)
    kAddressLookup,  // AddressLookup    kNameEntry | kError(unknown_name)
    kNameAdd,        // NameText         kDone; a name of this session for its NICs, removed with the session
    kStatus,         // Empty            kStatusText (JSON of sessions, NICs, connections the caller may see)
    kShutdown,       // Empty            kDone; same user or root only: leave as soon as answered
    kShowStats,      // Empty + fd      kDone | kError; the session's statistics segment (core/stats/layout.hpp), for
                     // reading. When the session ends, its failures are kept for a while (agent.ended_ms)
    kListEnded,      // EndedQuery       kEndedList + fd | kDone when none; of processes that the caller may see
    kTrace,          // Empty + 2 fds    kDone | kError(no_match: it is no process of this agent, denied: another
                     // user's, not_done: it is recorded already); the statistics segment of a process, which tells
                     // it from others, and memory for its record (core/trace/events.hpp), sealed against shrinking.
                     // One process at a time; it ends with the session of either
    // agent -> client
    kWelcome = 100,  // Welcome
    kError,          // Error
    kDone,           // Empty
    kNicEntry,       // NicEntry
    kRejection,      // RejectionEntry
    kOpened,         // Opened
    kLeaseGrant,     // Lease
    kIncoming,       // Incoming
    kJoined,     // Joined + fds: connection segment, then the peer's OpenNic descriptors in their order, then
                 // the peer's pidfd, where the kernel gives the agent one
    kNameEntry,  // NameEntry
    kStatusText,  // text, NUL-terminated; when it says "complete": false, a descriptor with the whole text follows
    kLeaving,     // Empty; ticket 0: the agent is leaving in good order, connect to the next one when needed
    kNicDown,     // ContextRef; ticket 0: the NIC has failed or its link was taken down
    kEndedList,   // EndedEntry, several, the oldest first; the file has the bytes of each, one behind the other
    kTraceWanted,  // Empty + fd; ticket 0: record into that memory
    kTraceOver,    // Empty; ticket 0: the recorded process has ended; told to that process: record no more
};

struct MailHeader {
    uint32_t magic = kMagic;
    uint16_t version = kVersionMax;
    uint16_t type = 0;
    uint32_t bytes = 0;  // of the payload
    uint32_t ticket = 0;
};
static_assert(sizeof(MailHeader) == 16);

struct Empty {};  // no payload, or the one byte that C++ gives it

struct Hello {
    uint16_t version_min = kVersionMin;
    uint16_t version_max = kVersionMax;
    uint32_t flags = 0;     // kHelloTool: a tool that only looks; does not keep the agent alive
    char program[64] = {};  // for people: shown by tools
};
inline constexpr uint32_t kHelloTool = 1;
inline constexpr uint32_t kHelloTicket = 1;  // of kHello, always

struct Welcome {
    uint16_t version = 0;
    uint16_t version_min = 0;
    uint16_t version_max = 0;
    // Limits that the agent has inherited and cannot raise (core/agent/own_limits.hpp). A client of its user whose
    // own limits are better sends it a request to end (kShutdown) and starts another agent.
    uint16_t flaws = 0;
    uint32_t agent_pid = 0;
    uint32_t linger_ms = 0;
    char agent_version[32] = {};
};

struct Error {
    int32_t status = 0;        // Status
    uint16_t version_min = 0;  // with Status::version
    uint16_t version_max = 0;
    char text[236] = {};  // why, for people
    // With Status::out_of_resources, as the answer to kHello: Welcome::flaws. If any is set, the agent still takes a
    // request to end (kShutdown) from this client.
    uint32_t flaws = 0;
};

struct NameText {
    char name[256] = {};
};

struct NicEntry {
    NicInfo nic;
    uint32_t more = 0;
    uint32_t is_default = 0;  // kNicIsDefault; of kResolveName also kNicIsGuessed
};
inline constexpr uint32_t kNicIsDefault = 1;
// Nothing is known of the name: what it opens is the default provider's, and names.strict would refuse it.
inline constexpr uint32_t kNicIsGuessed = 2;

struct RejectionEntry {
    char provider[32] = {};
    char name[kNicNameBytes] = {};
    char reason[160] = {};
    char cure[160] = {};
    uint32_t more = 0;
};

// Descriptors: region table (read-only), then the provider's own (paramnet: its hub, its arena). At most
// kMaxDescriptors - 3, and memory files or eventfds only: a session that sends another kind is dropped.
struct OpenNic {
    char device[256] = {};    // the name given to VipOpenNic, and the program's default provider, as for kResolveName
    uint64_t context_id = 0;  // random, chosen by the client; a second context with the same id is refused
    uint32_t reattach = 0;    // 1: this context existed before, under an agent that died
    uint32_t private_descriptors = 0;  // so many of the last ones are handed to peers of the same user only
    uint64_t held[4] = {};            // by LeaseKind: what it holds already (reattach)
    uint64_t provider_words[8] = {};  // passed on to peers unchanged: sizes, probe words (see each provider)
    NicAddress address;  // of the NIC that the context has open (reattach): the name may mean another NIC at this agent
    uint16_t reserved = 0;
};

struct Opened {
    NicInfo nic;
    uint64_t lease[4] = {};  // by LeaseKind: granted to begin with
};

struct ContextRef {
    uint64_t context_id = 0;
};

enum LeaseKind : uint32_t { kLeaseBytes = 0, kLeaseRegions = 1, kLeaseVis = 2, kLeaseCqs = 3 };

// Quotas of the user are leased in pieces, so that creating and registering are no calls of the agent.
// Positive: asks for so much more; negative: gives back. The answer has what was granted (all or nothing).
struct Lease {
    uint64_t context_id = 0;
    uint32_t kind = 0;
    uint32_t reserved = 0;
    int64_t amount = 0;
};

struct ConnWait {
    uint64_t context_id = 0;
    EndAddress local;  // its host part is ignored: the context's NIC counts (spec/compat A5)
};

struct ConnRequest {
    uint64_t context_id = 0;
    EndAddress local;  // its host part is replaced by the context's NIC address
    EndAddress remote;
    ViTraits traits;
    uint32_t timeout_ms = 0;  // 0xFFFFFFFF: none
    uint32_t endpoint_words[6] =
        {};  // the provider's, handed to the other end unchanged (for example its slot number)
    uint32_t reserved = 0;
};

struct ConnAccept {
    uint64_t context_id = 0;
    uint64_t incoming = 0;
    ViTraits traits;
    uint32_t endpoint_words[6] = {};
};

struct Incoming {
    uint64_t incoming = 0;
    EndAddress remote;  // the requester's local address, host part true
    ViTraits traits;
};

struct IncomingRef {
    uint64_t context_id = 0;
    uint64_t incoming = 0;
};

struct ConnConfirm {
    uint64_t connection_id = 0;
};

struct Cancel {
    uint32_t ticket = 0;
    uint32_t reserved = 0;
};

// One end of a new connection. Order of events for client/server: the requester gets kJoined first, maps,
// marks itself attached in the segment and sends kConnConfirm; only then the acceptor gets its kJoined. A
// requester whose confirmation came too late is told so and undoes what it did. Peer-to-peer: both get it at once, and
// neither after its timeout.
// An end is connected once it knows that the other one will read its kJoined, whatever becomes of the agent: the
// acceptor by its own kJoined, a requester and a peer by the kDone that the agent sends when the other end's kJoined
// has left it. An end that is not told so because the agent has ended asks the next agent, unless the other one is
// connected: they agree by a word of the segment (providers/paramnet/outcome.hpp). So no connection is ever half-open.
// An end that has given up before it reads its kJoined undoes it: a requester by kConnReject, any other in the segment.
// Likewise a kIncoming without a waiter is rejected. The numbers of incoming requests and connections mean nothing to
// another agent.
struct Joined {
    uint64_t connection_id = 0;
    uint64_t segment_bytes = 0;
    uint64_t peer_context_id = 0;  // the agent's name for it: the same for each connection to that context
    uint64_t peer_words[8] = {};  // the peer's OpenNic::provider_words
    uint32_t peer_endpoint_words[6] = {};
    uint32_t side = 0;  // 0 requester, 1 acceptor; peer-to-peer: decided by the agent
    uint16_t same_process = 0;
    uint16_t told_later = 0;  // kDone or kError follows under the same ticket
    int32_t peer_pid = 0;  // in the agent's PID namespace, 0 where it is not seen: for people
    uint32_t peer_uid = 0;
    EndAddress remote;              // the peer's local address
    ViTraits traits;                // the peer's
    uint32_t descriptor_count = 0;  // of the peer's OpenNic descriptors that follow the segment
    uint32_t same_user = 0;         // of both ends, whatever number either has for him
};

struct EndedQuery {
    int32_t pid = 0;  // of this process; 0: of all
    uint32_t reserved = 0;
};

// The beginning of the statistics segment of a process that has ended: header and failures.
struct EndedEntry {
    int32_t pid = 0;  // in the agent's PID namespace, 0 where it was not seen
    uint32_t uid = 0;
    uint32_t ago_ms = 0;  // since it has ended
    uint32_t bytes = 0;
};

struct NameLookup {
    uint64_t context_id = 0;
    char name[256] = {};
    uint32_t index = 0;
    uint32_t reserved = 0;
};

struct AddressLookup {
    uint64_t context_id = 0;
    NicAddress address;
    uint16_t reserved = 0;
};

struct NameEntry {
    NicAddress address;
    uint16_t reserved = 0;
    char name[256] = {};
};

// Where the agent is (first that applies): VIADUCT_AGENT ("@name": abstract, or a path);
// /run/viaduct/vipkad.sock when an agent listens there; "@viaduct-kad-<uid>" with automatic start. Abstract
// names belong to a network namespace, as NICs do.
inline constexpr const char* kAgentVariable = "VIADUCT_AGENT";
inline constexpr const char* kSystemSocket = "/run/viaduct/vipkad.sock";
inline constexpr const char* kUserSocketPrefix = "@viaduct-kad-";

}  // namespace viaduct::kagent
