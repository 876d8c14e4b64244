// SPDX-License-Identifier: BSD-2-Clause
// The host interface of the Alteon Tigon-II as both of its sides see it: register window, general information
// block, rings, descriptors, commands and events. Names, sizes and offsets are the chip's. What is ours: the
// "bus" is one shared segment, so an address is an offset in it; words are in the host's byte order (no swap
// mode); the commands from 0x20 on; and the halt bit of CPU A says that the firmware sleeps and has to be
// rung for a mailbox write; that of CPU B that frames wait for receive descriptors, so that it has to be
// rung for those as well.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::acenic::tigon {

using Word = std::atomic<uint32_t>;
static_assert(sizeof(Word) == 4 && Word::is_always_lock_free);

// ---- rings: a ring is empty when producer and consumer are equal, and never completely filled

inline constexpr uint32_t kCommandRing = 64;
inline constexpr uint32_t kEventRing = 256;
inline constexpr uint32_t kSendRing = 256;
inline constexpr uint32_t kStandardRing = 512;
inline constexpr uint32_t kJumboRing = 256;
inline constexpr uint32_t kReturnRing = 2048;

inline constexpr uint32_t kEthernetHeader = 14;
inline constexpr uint32_t kStandardFrame = 1518;  // larger ones go to the jumbo ring
inline constexpr uint32_t kStandardRoom = 2048;   // of each standard buffer

// ---- registers

struct Mailbox {
    Word high, low;  // the low word is the active half
};
enum MailboxNumber : uint32_t {
    kInterruptMailbox = 0,  // 0: interrupts are wanted; else masked
    kCommandMailbox = 1,
    kSendMailbox = 2,
    kStandardMailbox = 3,
    kJumboMailbox = 4,
};
inline constexpr uint32_t kInterruptState = 1u << 0;  // HostCtrl: asserted, until the host clears it
inline constexpr uint32_t kCpuHalt = 0x10000;         // CPU control

// 16 KB; only what is used has a name.
struct Window {
    std::byte none0[0x40];
    Word host_control;  // 0x40
    std::byte none1[0x140 - 0x44];
    Word cpu_control;  // 0x140
    std::byte none2[0x240 - 0x144];
    Word cpu_b_control;  // 0x240
    std::byte none3[0x500 - 0x244];
    Mailbox mailbox[32];       // 0x500
    Word mac_high, mac_low;    // 0x600
    Word info_high, info_low;  // 0x608: address of the general information block
    std::byte none4[0x628 - 0x610];
    Word event_consumer;    // 0x628, host
    Word command_consumer;  // 0x62C, NIC
    std::byte none5[0x660 - 0x630];
    Word if_mtu;  // 0x660: MTU + 14 + 4
    std::byte none6[0x668 - 0x664];
    Word link_state;  // 0x668, NIC
    std::byte none7[0x680 - 0x66C];
    Word return_consumer;  // 0x680, host
    std::byte none8[0x700 - 0x684];
    Word command[kCommandRing];  // 0x700
    std::byte sram[0x4000 - 0x800];
};
static_assert(sizeof(Window) == 0x4000 && offsetof(Window, host_control) == 0x40);
static_assert(offsetof(Window, cpu_control) == 0x140 && offsetof(Window, cpu_b_control) == 0x240);
static_assert(offsetof(Window, mailbox) == 0x500);
static_assert(offsetof(Window, mac_high) == 0x600 && offsetof(Window, info_high) == 0x608);
static_assert(offsetof(Window, event_consumer) == 0x628 && offsetof(Window, command_consumer) == 0x62C);
static_assert(offsetof(Window, if_mtu) == 0x660 && offsetof(Window, link_state) == 0x668);
static_assert(offsetof(Window, return_consumer) == 0x680 && offsetof(Window, command) == 0x700);

inline constexpr uint32_t kLinkUp = 0x80000000, kLinkEnable = 0x40000000, kLinkFull = 0x80000;
inline constexpr uint32_t kLinkGigabit = 0x40000;

// ---- general information block, in host memory

enum RingNumber : uint32_t {
    kEventRcb,
    kCommandRcb,
    kSendRcb,
    kStandardRcb,
    kJumboRcb,
    kMiniRcb,
    kReturnRcb,
    kRcbs
};
enum RcbFlag : uint16_t { kTxHostRing = 0x40, kRingDisabled = 0x200 };

struct Address {
    uint32_t high = 0, low = 0;
};
struct RingControlBlock {
    Address host;
    uint16_t max_len = 0;  // send: entries; standard: largest frame for it; return: entries, 0 is 2048
    uint16_t flags = 0;
    uint32_t pad = 0;
};
static_assert(sizeof(RingControlBlock) == 16);

inline constexpr uint32_t kStatisticsWords = 256;

struct GeneralInformation {
    uint32_t statistics[kStatisticsWords];
    RingControlBlock rcb[kRcbs];
    Address event_producer, return_producer, send_consumer, second_statistics;  // of words the NIC writes
};
static_assert(sizeof(GeneralInformation) == 1024 + 7 * 16 + 4 * 8);

// Our assignment of the words of the statistics block that are kept; 64-bit counts are two words, high first.
enum Statistic : uint32_t {
    kStatInOctets = 0,     // 64 bit
    kStatInFrames = 2,     // 64 bit
    kStatOutOctets = 4,    // 64 bit
    kStatOutFrames = 6,    // 64 bit
    kStatOutErrors = 8,    // send descriptors with a bad address or length, and frames that may not be sent
    kStatNoStandard = 9,   // frames dropped because no standard receive descriptor was there
    kStatNoJumbo = 10,     // the same, jumbo
    kStatNoReturn = 11,    // frames dropped because the receive-return ring was full
    kStatInErrors = 12,    // receive descriptors with a bad address or length
    kStatInterrupts = 13,  // raised
    kStatInterruptsSaved = 14,  // not raised: masked, or asserted already
    kStatCommands = 15,
    kStatEvents = 16,
    kStatEventsLost = 17,    // the event ring was full
    kStatSendProducer = 32,  // ring indices as the NIC sees them
    kStatSendConsumer = 33,
    kStatStandardConsumer = 34,
    kStatJumboConsumer = 35,
    kStatReturnProducer = 36,
    kStatEventProducer = 37,
};

// ---- descriptors

enum DescriptorFlag : uint16_t { kFlagEnd = 0x4, kFlagJumbo = 0x10 };

struct SendDescriptor {
    Address host;
    uint16_t length = 0;  // of the Ethernet frame, no FCS
    uint16_t flags = 0;
    uint16_t reserved = 0, vlan = 0;
};
static_assert(sizeof(SendDescriptor) == 16);

struct ReceiveDescriptor {
    Address host;
    uint16_t index = 0;   // the host's own, comes back in the return ring
    uint16_t length = 0;  // posted: room; returned: bytes
    uint16_t type = 0, flags = 0;
    uint16_t ip_checksum = 0, tcp_checksum = 0;
    uint16_t errors = 0, vlan = 0;
    uint32_t reserved = 0;
    uint32_t opaque = 0;
};
static_assert(sizeof(ReceiveDescriptor) == 32);

// ---- commands and events: one word, index in bits 0-11, code in bits 12-23, id in bits 24-31

struct Packed {
    uint32_t id = 0, code = 0, index = 0;
    static constexpr Packed of(uint32_t word) { return {word >> 24, word >> 12 & 0xFFF, word & 0xFFF}; }
    constexpr uint32_t word() const { return id << 24 | (code & 0xFFF) << 12 | (index & 0xFFF); }
};

enum CommandId : uint32_t {
    kHostState = 0x01,  // code 1 up, 2 down
    kUpdateStatistics = 0x04,
    kResetJumbo = 0x05,
    kClearStatistics = 0x0F,
    kRefreshStatistics = 0x11,
    // Ours: the requests for connections that this host waits for, by place in the filter table.
    kAddFilter = 0x20,
    kDeleteFilter = 0x21,  // code 1: what has matched it finds another
    kSetFaults = 0x22,     // for tests; index: a place of the filter table that holds a FaultEntry
};
enum EventId : uint32_t {
    kFirmwareRunning = 0x01,
    kStatisticsUpdated = 0x04,
    kLinkState = 0x06,  // code 1 up, 2 down
    kError = 0x07,  // code 1 invalid command, 2 unimplemented, 3 bad configuration; index: the command's id
    kJumboReset = 0x09,
    kFilterAdded = 0x20,  // ours; what has been waiting for it is in the receive-return ring
};
inline constexpr uint32_t kUp = 1, kDown = 2;
inline constexpr uint32_t kInvalidCommand = 1, kUnimplemented = 2, kBadConfiguration = 3;

struct Event {
    uint32_t word = 0;
    uint32_t reserved = 0;
};
static_assert(sizeof(Event) == 8);

}  // namespace viaduct::acenic::tigon
