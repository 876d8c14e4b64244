// SPDX-License-Identifier: BSD-2-Clause
// The fixture library of the conformance suite.
#include "fixture.hpp"

#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace viaduct::conformance {

Options& options() {
    static Options instance;
    return instance;
}

std::string* nic_option(std::string_view option) {
    return option == "--nic"             ? &options().nic
           : option == "--peer-nic"      ? &options().peer_nic
           : option == "--child-nic"     ? &options().child_nic
           : option == "--child-command" ? &options().child_command
                                         : nullptr;
}

EndOptions across(EndOptions chosen) {
    chosen.across = true;
    return chosen;
}

void breathe(unsigned round) {
    constexpr unsigned kSpins = 200;
    if (round < kSpins) {
        sched_yield();
        return;
    }
    const timespec pause{0, 50'000};
    nanosleep(&pause, nullptr);  // sleeps: between two looks
}

Millis since(Clock::time_point start) { return std::chrono::duration_cast<Millis>(Clock::now() - start); }

Millis since(const Stopwatch& start) { return start.wall(); }

testing::AssertionResult in_time(Stopwatch start, Millis limit) {
    const Millis running = start.running();
    if (running <= limit) return testing::AssertionSuccess();
    return testing::AssertionFailure() << running.count() << " ms of running time instead of " << limit.count()
                                       << " ms, and " << start.wall().count() << " ms of wall time";
}

bool starved(Stopwatch start) {
    const Millis running = start.running();
    return (start.wall() - running) * 3 >= start.wall();
}

testing::AssertionResult falls_asleep(pid_t thread) { return eventually(tests::Asleep(thread)); }

void require(bool condition, const std::string& what) {
    if (!condition) {
        throw std::runtime_error("set-up of the test: " + what);
    }
}

void require(VIP_RETURN got, const std::string& what) {
    require(got == VIP_SUCCESS, what + " returned " + code_name(got));
}

// ------------------------------------------------------------------------------------------------- addresses

std::string unique_discriminator(std::size_t length) {
    static std::atomic<std::uint32_t> next{1};
    const std::uint32_t number = next++;
    const auto pid = static_cast<std::uint32_t>(getpid());
    std::string bytes(length, '\0');
    // The number first: a short discriminator keeps the part that differs within the process.
    for (std::size_t i = 0; i < length; ++i) {
        const std::uint32_t word = i < 4 ? number : pid;
        bytes[i] = i < 8 ? static_cast<char>(word >> (8 * (i % 4))) : static_cast<char>('a' + i);
    }
    return bytes;
}

Address::Address(const std::string& host, const std::string& discriminator) {
    require(4 + host.size() + discriminator.size() <= kRoom, "address longer than the fixture allows");
    bytes_.fill(kGuard);
    get()->HostAddressLen = static_cast<VIP_UINT16>(host.size());
    get()->DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
    std::copy(host.begin(), host.end(), bytes_.begin() + 4);
    std::copy(discriminator.begin(), discriminator.end(),
              bytes_.begin() + 4 + static_cast<std::ptrdiff_t>(host.size()));
}

Address::Address(VIP_NIC_HANDLE nic, const std::string& discriminator)
    : Address(
          [nic] {
              VIP_NIC_ATTRIBUTES attributes{};
              require(VipQueryNic(nic, &attributes), "VipQueryNic");
              return std::string(reinterpret_cast<const char*>(attributes.LocalNicAddress), attributes.NicAddressLen);
          }(),
          discriminator) {}

Address Address::blank() {
    Address address;
    address.bytes_.fill(kGuard);
    return address;
}

std::string Address::host_bytes() { return {reinterpret_cast<char*>(host()), get()->HostAddressLen}; }

std::string Address::discriminator() {
    return {reinterpret_cast<char*>(host()) + get()->HostAddressLen, get()->DiscriminatorLen};
}

bool Address::untouched_from(std::size_t offset) const {
    return std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(std::min(offset, kRoom)), bytes_.end(),
                       [](unsigned char byte) { return byte == kGuard; });
}

// ----------------------------------------------------------------------------------------- asynchronous errors

void ErrorLog::handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto* log = static_cast<ErrorLog*>(context);
    if (log->inside_.fetch_add(1) != 0) {
        log->overlapped_ = true;
    }
    {
        const std::lock_guard lock(log->mutex_);
        log->seen_.push_back(*error);
    }
    log->inside_.fetch_sub(1);
}

std::vector<VIP_ERROR_DESCRIPTOR> ErrorLog::all() const {
    const std::lock_guard lock(mutex_);
    return seen_;
}

std::size_t ErrorLog::size() const { return all().size(); }

std::size_t ErrorLog::count(VIP_ERROR_CODE code) const {
    const auto errors = all();
    return static_cast<std::size_t>(
        std::count_if(errors.begin(), errors.end(), [code](const auto& error) { return error.ErrorCode == code; }));
}

std::size_t ErrorLog::count(VIP_VI_HANDLE vi) const {
    const auto errors = all();
    return static_cast<std::size_t>(
        std::count_if(errors.begin(), errors.end(), [vi](const auto& error) { return error.ViHandle == vi; }));
}

bool ErrorLog::wait_for(VIP_ERROR_CODE code, Millis limit) const {
    return eventually([&] { return count(code) > 0; }, limit);
}

std::optional<VIP_ERROR_DESCRIPTOR> ErrorLog::first(VIP_ERROR_CODE code) const {
    for (const auto& error : all()) {
        if (error.ErrorCode == code) {
            return error;
        }
    }
    return std::nullopt;
}

// ------------------------------------------------------------------------------------------------- descriptors

void fill(VIP_DESCRIPTOR* descriptor, VIP_UINT16 control, const std::vector<Piece>& pieces,
          const std::optional<Target>& remote, std::uint32_t immediate) {
    VIP_CONTROL_SEGMENT& head = descriptor->CS;
    head = VIP_CONTROL_SEGMENT{};
    head.Control = control;
    head.ImmediateData = immediate;
    head.SegCount = static_cast<VIP_UINT16>(pieces.size() + (remote ? 1 : 0));
    // Segments beyond the second lie behind the type; a plain pointer has no array bound.
    auto* segment = reinterpret_cast<VIP_DESCRIPTOR_SEGMENT*>(reinterpret_cast<char*>(descriptor) + sizeof(head));
    if (remote) {
        segment->Remote.Data.AddressBits = reinterpret_cast<std::uintptr_t>(remote->address);
        segment->Remote.Handle = remote->handle;
        segment->Remote.Reserved = 0;
        ++segment;
    }
    std::uint32_t total = 0;
    for (const Piece& piece : pieces) {
        segment->Local.Data.AddressBits = reinterpret_cast<std::uintptr_t>(piece.address);
        segment->Local.Handle = piece.handle;
        segment->Local.Length = piece.length;
        total += piece.length;
        ++segment;
    }
    head.Length = total;
}

// --------------------------------------------------------------------------------------------------------- end

End::End(const EndOptions& chosen) : wanted(chosen) {
    require(VipOpenNic((wanted.across ? options().far() : options().nic).c_str(), &nic), "VipOpenNic");
    require(VipErrorCallback(nic, &errors, &ErrorLog::handler), "VipErrorCallback");
    require(VipQueryNic(nic, &limits), "VipQueryNic");
    require(VipCreatePtag(nic, &ptag), "VipCreatePtag");
    wanted.rdma_read = wanted.rdma_read && (limits.RDMAReadSupport & wanted.level) != 0;

    void* mapped = mmap(nullptr, wanted.memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(mapped != MAP_FAILED, "mmap");
    memory = static_cast<char*>(mapped);
    VIP_MEM_ATTRIBUTES attributes{wanted.null_ptag ? nullptr : ptag, wanted.rdma_write ? VIP_TRUE : VIP_FALSE,
                                  limits.RDMAReadSupport != 0 && wanted.rdma_read ? VIP_TRUE : VIP_FALSE};
    require(VipRegisterMem(nic, memory, wanted.memory, &attributes, &region), "VipRegisterMem");

    if (wanted.send_cq != 0) {
        require(VipCreateCQ(nic, wanted.send_cq, &send_cq), "VipCreateCQ");
    }
    if (wanted.one_cq) {
        recv_cq = send_cq;
    } else if (wanted.recv_cq != 0) {
        require(VipCreateCQ(nic, wanted.recv_cq, &recv_cq), "VipCreateCQ");
    }
    vi = create_vi();
}

End::~End() {
    if (nic != nullptr) {
        if (vi != nullptr) {
            retire(vi);
        }
        VipErrorCallback(nic, nullptr, nullptr);
        VipCloseNic(nic);
    }
    munmap(memory, wanted.memory);
}

VIP_VI_ATTRIBUTES End::vi_attributes() const {
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = wanted.level;
    attributes.MaxTransferSize = wanted.max_transfer != 0 ? wanted.max_transfer : limits.MaxTransferSize;
    attributes.Ptag = wanted.null_ptag ? nullptr : ptag;
    attributes.EnableRdmaWrite = wanted.rdma_write ? VIP_TRUE : VIP_FALSE;
    attributes.EnableRdmaRead = wanted.rdma_read ? VIP_TRUE : VIP_FALSE;
    return attributes;
}

VIP_VI_HANDLE End::create_vi() {
    VIP_VI_ATTRIBUTES attributes = vi_attributes();
    VIP_VI_HANDLE created = nullptr;
    require(VipCreateVi(nic, &attributes, send_cq, recv_cq, &created), "VipCreateVi");
    return created;
}

VIP_VI_STATE End::state_of(VIP_VI_HANDLE handle) {
    VIP_VI_STATE state = VIP_STATE_IDLE;
    VIP_VI_ATTRIBUTES attributes{};
    VIP_BOOLEAN send_empty = VIP_FALSE;
    VIP_BOOLEAN recv_empty = VIP_FALSE;
    require(VipQueryVi(handle, &state, &attributes, &send_empty, &recv_empty), "VipQueryVi");
    return state;
}

bool End::reaches(VIP_VI_STATE state, Millis limit) const {
    return eventually([&] { return state_of(vi) == state; }, limit);
}

void* End::alloc(std::size_t bytes, std::size_t alignment) {
    const std::size_t start = (used_ + alignment - 1) / alignment * alignment;
    require(start + bytes <= wanted.memory, "the test's region is too small");
    used_ = start + bytes;
    return memory + start;
}

char* End::buffer(std::size_t bytes, char filler, std::size_t alignment) {
    auto* start = static_cast<char*>(alloc(bytes, alignment));
    std::fill_n(start, bytes, filler);
    return start;
}

VIP_DESCRIPTOR* End::descriptor(std::size_t segments) {
    const std::size_t bytes = std::max(sizeof(VIP_DESCRIPTOR), sizeof(VIP_CONTROL_SEGMENT) + segments * 16);
    void* start = alloc(bytes, VIP_DESCRIPTOR_ALIGNMENT);
    std::memset(start, 0, bytes);
    return static_cast<VIP_DESCRIPTOR*>(start);
}

Piece End::piece(void* address, std::size_t bytes) const {
    return {address, region, static_cast<std::uint32_t>(bytes)};
}

VIP_DESCRIPTOR* End::message(void* data, std::size_t bytes, VIP_UINT16 control, std::uint32_t immediate) {
    VIP_DESCRIPTOR* d = descriptor();
    fill(d, control, {piece(data, bytes)}, std::nullopt, immediate);
    return d;
}

VIP_DESCRIPTOR* End::receive(std::size_t bytes) {
    VIP_DESCRIPTOR* d = message(buffer(bytes), bytes);
    require(post_recv(d), "VipPostRecv");
    return d;
}

VIP_DESCRIPTOR* End::send(void* data, std::size_t bytes, VIP_UINT16 control, std::uint32_t immediate) {
    VIP_DESCRIPTOR* d = message(data, bytes, control, immediate);
    require(post_send(d), "VipPostSend");
    return d;
}

VIP_DESCRIPTOR* End::write(void* data, std::size_t bytes, const Target& remote, VIP_UINT16 flags,
                           std::uint32_t immediate) {
    VIP_DESCRIPTOR* d = descriptor();
    fill(d, static_cast<VIP_UINT16>(VIP_CONTROL_OP_RDMAWRITE | flags), {piece(data, bytes)}, remote, immediate);
    require(post_send(d), "VipPostSend");
    return d;
}

VIP_DESCRIPTOR* End::read(void* data, std::size_t bytes, const Target& remote, VIP_UINT16 flags) {
    VIP_DESCRIPTOR* d = descriptor();
    fill(d, static_cast<VIP_UINT16>(VIP_CONTROL_OP_RDMAREAD | flags), {piece(data, bytes)}, remote);
    require(post_send(d), "VipPostSend");
    return d;
}

VIP_RETURN retire(VIP_VI_HANDLE vi) {
    VipDisconnect(vi);
    const auto drain = [vi](VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR**)) {
        VIP_DESCRIPTOR* taken = nullptr;
        VIP_RETURN result = VIP_SUCCESS;
        do {
            result = done(vi, &taken);
        } while (result == VIP_SUCCESS || (result == VIP_DESCRIPTOR_ERROR && taken != nullptr));
    };
    drain(VipRecvDone);
    drain(VipSendDone);
    return VipDestroyVi(vi);
}

// ------------------------------------------------------------------------------------------------- completions

std::size_t peek_count(const char* bytes, std::size_t length, char value) {
    std::size_t found = 0;
    for (std::size_t i = 0; i < length; ++i) {
        found += peek(bytes + i) == value;
    }
    return found;
}

namespace {

Outcome reap(VIP_RETURN (*done)(VIP_VI_HANDLE, VIP_DESCRIPTOR**), VIP_VI_HANDLE vi, Millis limit) {
    Outcome outcome{VIP_NOT_DONE, nullptr};
    eventually(
        [&] {
            outcome.code = done(vi, &outcome.descriptor);
            return outcome.code != VIP_NOT_DONE;
        },
        limit);
    return outcome;
}

}  // namespace

Outcome reap_send(VIP_VI_HANDLE vi, Millis limit) { return reap(VipSendDone, vi, limit); }
Outcome reap_recv(VIP_VI_HANDLE vi, Millis limit) { return reap(VipRecvDone, vi, limit); }

// ------------------------------------------------------------------------------------------------- connections

VIP_RETURN request(VIP_VI_HANDLE vi, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote, VIP_ULONG timeout,
                   VIP_VI_ATTRIBUTES* attributes) {
    VIP_RETURN result = VIP_NO_MATCH;
    eventually([&] {
        result = VipConnectRequest(vi, local, remote, timeout, attributes);
        return result != VIP_NO_MATCH;
    });
    return result;
}

void connect(VIP_NIC_HANDLE from_nic, VIP_VI_HANDLE from, VIP_NIC_HANDLE to_nic, VIP_VI_HANDLE to) {
    const std::string discriminator = unique_discriminator();
    Address client(from_nic, discriminator);
    Address server(to_nic, discriminator);
    auto accepted = in_background([&]() -> VIP_RETURN {
        Address remote = Address::blank();
        VIP_VI_ATTRIBUTES attributes{};
        VIP_CONN_HANDLE connection = nullptr;
        const VIP_RETURN waited =
            VipConnectWait(to_nic, server.get(), kLongWait, remote.get(), &attributes, &connection);
        return waited == VIP_SUCCESS ? VipConnectAccept(connection, to) : waited;
    });
    VIP_VI_ATTRIBUTES attributes{};
    const VIP_RETURN requested = request(from, client.get(), server.get(), kLongWait, &attributes);
    const VIP_RETURN answered = accepted.get();
    require(answered, "VipConnectWait and VipConnectAccept");
    require(requested, "VipConnectRequest");
}

PendingRequest pending_request(End& client, End& server, VIP_ULONG timeout) {
    const std::string discriminator = unique_discriminator();
    Address at(server.nic, discriminator);
    PendingRequest pending;
    // A short timeout may be over before the request has met the waiter, or before it is known here that it has: what
    // the request that was met answers counts, and once one has timed out, another one after it only finds no waiter.
    auto met = std::make_shared<std::atomic<bool>>(false);
    pending.requester = in_background([&client, server_nic = server.nic, discriminator, timeout, met]() -> VIP_RETURN {
        Address local(client.nic, discriminator);
        Address remote(server_nic, discriminator);
        VIP_VI_ATTRIBUTES attributes{};
        VIP_RETURN result = VIP_NO_MATCH;
        bool timed_out = false;
        eventually([&] {
            result = VipConnectRequest(client.vi, local.get(), remote.get(), timeout, &attributes);
            timed_out |= result == VIP_TIMEOUT;
            return (result != VIP_NO_MATCH && result != VIP_TIMEOUT) || met->load();
        });
        return result == VIP_NO_MATCH && timed_out ? VIP_TIMEOUT : result;
    });
    Address from = Address::blank();
    require(VipConnectWait(server.nic, at.get(), kLongWait, from.get(), &pending.attributes, &pending.connection),
            "VipConnectWait");
    *met = true;
    return pending;
}

Pair::Pair(const EndOptions& client_options, const EndOptions& server_options)
    : client(client_options), server(across(server_options)) {
    connect(client.nic, client.vi, server.nic, server.vi);
}

// ------------------------------------------------------------------------------------------------------ states

StatedVi::StatedVi(VS state, const EndOptions& chosen) {
    if (state == VS::kIdle || state == VS::kPending) {
        alone_ = std::make_unique<End>(chosen);
        end_ = alone_.get();
        if (state == VS::kPending) {
            Address local(end_->nic, unique_discriminator());
            Address unused(end_->nic, unique_discriminator());
            require(VipConnectPeerRequest(end_->vi, local.get(), unused.get(), VIP_INFINITE), "VipConnectPeerRequest");
        }
    } else {
        EndOptions peer = chosen;
        peer.send_cq = peer.recv_cq = 0;
        peer.one_cq = false;
        pair_ = std::make_unique<Pair>(chosen, peer);
        end_ = &pair_->client;
        if (state == VS::kError) {
            require(VipDisconnect(pair_->server.vi), "VipDisconnect");
            require(end_->reaches(VIP_STATE_ERROR), "the peer of a disconnected VI does not reach Error");
        }
    }
    require(end_->state() == vip_state(state), std::string("the VI is not in state ") + state_name(state));
}

VIP_VI_STATE vip_state(VS state) {
    switch (state) {
        case VS::kPending: return VIP_STATE_CONNECT_PENDING;
        case VS::kConnected: return VIP_STATE_CONNECTED;
        case VS::kError: return VIP_STATE_ERROR;
        default: return VIP_STATE_IDLE;
    }
}

std::string state_test_name(const testing::TestParamInfo<VS>& info) {
    constexpr const char* kNames[] = {"None", "Idle", "ConnectPending", "Connected", "Error"};
    return kNames[static_cast<int>(info.param)];
}

std::string level_test_name(const testing::TestParamInfo<VIP_RELIABILITY_LEVEL>& info) {
    switch (info.param) {
        case VIP_SERVICE_UNRELIABLE: return "Unreliable";
        case VIP_SERVICE_RELIABLE_DELIVERY: return "ReliableDelivery";
        default: return "ReliableReception";
    }
}

void deliver(Pair& pair) {
    pair.client.send(pair.client.buffer(8), 8);
    ASSERT_EQ(reap_send(pair.client.vi).code, VIP_SUCCESS);
}

const VIP_NIC_ATTRIBUTES& nic_attributes() {
    static const VIP_NIC_ATTRIBUTES kept = [] {
        VIP_NIC_HANDLE nic = nullptr;
        VIP_NIC_ATTRIBUTES attributes{};
        require(VipOpenNic(options().nic.c_str(), &nic), "VipOpenNic");
        require(VipQueryNic(nic, &attributes), "VipQueryNic");
        VipCloseNic(nic);
        attributes.LocalNicAddress = nullptr;
        return attributes;
    }();
    return kept;
}

FaultControl::FaultControl()
    : plan_(reinterpret_cast<VIP_RETURN (*)(VIP_VI_HANDLE, const char*)>(dlsym(RTLD_DEFAULT, "VipxSetFaultPlan"))) {}

bool FaultControl::set(VIP_VI_HANDLE vi, const char* plan) const {
    return plan_ != nullptr && plan_(vi, plan) == VIP_SUCCESS;
}

}  // namespace viaduct::conformance
