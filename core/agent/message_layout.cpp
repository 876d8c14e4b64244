// SPDX-License-Identifier: BSD-2-Clause
// The layouts of what crosses the agent's socket, in numbers: a program of 32 bits and an agent of 64 understand each
// other. In an i386 program a 64-bit field may lie at any fourth byte, so whatever stands before one has to add up to
// eights. From the first release on, a number here changes only together with the version of the protocol.
#include <cstddef>

#include "viaduct/kagent.hpp"

namespace viaduct {

#define VIADUCT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#define VIADUCT_PLACE(type, field, at) static_assert(offsetof(type, field) == (at))

VIADUCT_SIZE(NicAddress, 6);
VIADUCT_SIZE(EndAddress, 72);
VIADUCT_PLACE(EndAddress, discriminator_len, 6);
VIADUCT_PLACE(EndAddress, discriminator, 8);
VIADUCT_SIZE(ViTraits, 24);
VIADUCT_PLACE(ViTraits, qos, 8);
VIADUCT_PLACE(ViTraits, reliability, 16);
VIADUCT_SIZE(OperationLimit, 24);
VIADUCT_PLACE(OperationLimit, alignment, 8);
VIADUCT_SIZE(Profile, 16);
VIADUCT_SIZE(NicInfo, 432);
VIADUCT_PLACE(NicInfo, address, 192);
VIADUCT_PLACE(NicInfo, capabilities, 200);
VIADUCT_PLACE(NicInfo, reliability_mask, 220);
VIADUCT_PLACE(NicInfo, max_register_bytes, 232);
VIADUCT_PLACE(NicInfo, send, 320);
VIADUCT_PLACE(NicInfo, profile, 416);

namespace kagent {

VIADUCT_SIZE(MailHeader, 16);
VIADUCT_SIZE(Empty, 1);
VIADUCT_SIZE(Hello, 72);
VIADUCT_SIZE(Welcome, 48);
VIADUCT_PLACE(Welcome, agent_pid, 8);
VIADUCT_SIZE(Error, 248);
VIADUCT_PLACE(Error, flaws, 244);
VIADUCT_SIZE(NameText, 256);
VIADUCT_SIZE(NicEntry, 440);
VIADUCT_PLACE(NicEntry, more, 432);
VIADUCT_SIZE(RejectionEntry, 420);
VIADUCT_SIZE(OpenNic, 376);
VIADUCT_PLACE(OpenNic, context_id, 256);
VIADUCT_PLACE(OpenNic, reattach, 264);
VIADUCT_PLACE(OpenNic, held, 272);
VIADUCT_PLACE(OpenNic, provider_words, 304);
VIADUCT_PLACE(OpenNic, address, 368);
VIADUCT_SIZE(Opened, 464);
VIADUCT_PLACE(Opened, lease, 432);
VIADUCT_SIZE(ContextRef, 8);
VIADUCT_SIZE(Lease, 24);
VIADUCT_PLACE(Lease, amount, 16);
VIADUCT_SIZE(ConnWait, 80);
VIADUCT_SIZE(ConnRequest, 208);
VIADUCT_PLACE(ConnRequest, remote, 80);
VIADUCT_PLACE(ConnRequest, traits, 152);
VIADUCT_PLACE(ConnRequest, timeout_ms, 176);
VIADUCT_PLACE(ConnRequest, endpoint_words, 180);
VIADUCT_SIZE(ConnAccept, 64);
VIADUCT_PLACE(ConnAccept, traits, 16);
VIADUCT_PLACE(ConnAccept, endpoint_words, 40);
VIADUCT_SIZE(Incoming, 104);
VIADUCT_PLACE(Incoming, remote, 8);
VIADUCT_PLACE(Incoming, traits, 80);
VIADUCT_SIZE(IncomingRef, 16);
VIADUCT_SIZE(ConnConfirm, 8);
VIADUCT_SIZE(Cancel, 8);
VIADUCT_SIZE(Joined, 232);
VIADUCT_PLACE(Joined, peer_words, 24);
VIADUCT_PLACE(Joined, peer_endpoint_words, 88);
VIADUCT_PLACE(Joined, side, 112);
VIADUCT_PLACE(Joined, remote, 128);
VIADUCT_PLACE(Joined, traits, 200);
VIADUCT_PLACE(Joined, descriptor_count, 224);
VIADUCT_SIZE(EndedQuery, 8);
VIADUCT_SIZE(EndedEntry, 16);
VIADUCT_SIZE(NameLookup, 272);
VIADUCT_PLACE(NameLookup, index, 264);
VIADUCT_SIZE(AddressLookup, 16);
VIADUCT_SIZE(NameEntry, 264);

}  // namespace kagent

}  // namespace viaduct
