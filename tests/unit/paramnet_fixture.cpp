// SPDX-License-Identifier: BSD-2-Clause
#include "paramnet_fixture.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "core/clock/clock.hpp"
#include "tests/eventually.hpp"

namespace viaduct::paramnet::test {

using kagent::Type;

const char* MapSettings::get(const char* key, const char* fallback) const {
    const auto found = values.find(key);
    return found == values.end() ? fallback : found->second.c_str();
}

int64_t MapSettings::get_int(const char* key, int64_t fallback) const {
    const auto found = values.find(key);
    return found == values.end() ? fallback : std::strtoll(found->second.c_str(), nullptr, 10);
}

// ---- agent
// ---------------------------------------------------------------------------------------------------

FakeAgent::~FakeAgent() {
    stop_ = true;
    if (watcher_.joinable()) watcher_.join();
    for (auto& [id, watch] : watches_) ::close(watch.fd);
}

Mail joined_mail(const FakeAgent& from, const kagent::ConnRequest& request, int segment_fd, uint32_t side,
                 bool same_process, int pid) {
    kagent::OpenNic opened;
    EXPECT_TRUE(from.opened.get(&opened));
    kagent::Joined joined;
    joined.connection_id = 1;
    joined.segment_bytes = sizeof(ConnectionSegment);
    joined.peer_context_id = from.context_id;
    std::memcpy(joined.peer_words, opened.provider_words, sizeof joined.peer_words);
    std::memcpy(joined.peer_endpoint_words, request.endpoint_words, sizeof joined.peer_endpoint_words);
    joined.side = side;
    joined.same_process = same_process ? 1 : 0;
    joined.told_later = 1;
    joined.peer_pid = pid;
    joined.same_user = 1;
    joined.remote = request.local;
    joined.traits = request.traits;
    joined.descriptor_count = static_cast<uint32_t>(from.opened.descriptors.size());
    Mail mail = Mail::of(Type::kJoined, joined);
    mail.descriptors.emplace_back(::dup(segment_fd));
    for (const Fd& fd : from.opened.descriptors) mail.descriptors.emplace_back(::dup(fd.get()));
    mail.descriptors.emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    return mail;
}

void FakeAgent::answer(uint32_t ticket, Mail mail) {
    const std::lock_guard lock(mutex_);
    if (loses_descriptors && mail.descriptors.size() > 1) {
        mail.descriptors.resize(1);
        mail.descriptors_lost = true;
    }
    const bool joined = mail.type() == Type::kJoined;
    answers_[ticket].push_back(std::move(mail));
    if (joined) answers_[ticket].emplace_back(Type::kDone);  // the other end is told as well
}

void FakeAgent::catch_up() {
    std::vector<std::pair<Late, Mail>> calls;
    {
        const std::lock_guard lock(mutex_);
        silent_ = false;
        for (const auto& [ticket, late] : late_) {
            const auto found = answers_.find(ticket);
            if (found == answers_.end()) continue;
            calls.emplace_back(late, std::move(found->second.front()));
            answers_.erase(found);
        }
        late_.clear();
    }
    for (auto& [late, mail] : calls) late.call(*this, mail, late.argument);
}

Status FakeAgent::agent_start(const Mail& request, uint32_t* ticket, Deadline) {
    {
        const std::lock_guard lock(mutex_);
        *ticket = next_ticket_++;
    }
    if (request.type() != Type::kConnPeer) {
        answer(*ticket, Mail(Type::kDone));
        return Status::ok;
    }
    kagent::ConnRequest body;
    if (!request.get(&body)) return Status::invalid;
    const std::string key(reinterpret_cast<const char*>(body.local.discriminator), body.local.discriminator_len);
    const std::lock_guard lock(matcher_.mutex);
    const auto other = matcher_.waiting.find(key);
    if (other == matcher_.waiting.end()) {
        matcher_.waiting[key] = {this, *ticket, body};
        return Status::ok;
    }
    const Matcher::Waiting first = other->second;
    matcher_.waiting.erase(other);
    JoinGrant grant;
    const MapSettings none;
    EXPECT_EQ(viaduct_provider_v1.control.join(NicInfo(), NicInfo(), none, &grant), Status::ok);
    first.agent->answer(first.ticket, joined_mail(*this, body, grant.segment_fd, 0, matcher_.same_process, ::getpid()));
    answer(*ticket, joined_mail(*first.agent, first.request, grant.segment_fd, 1, matcher_.same_process, ::getpid()));
    ::close(grant.segment_fd);
    return Status::ok;
}

Status FakeAgent::agent_await(uint32_t ticket, Deadline deadline, Mail* out) {
    const auto is_taken = [&] {
        const std::lock_guard lock(mutex_);
        const auto found = silent_ ? answers_.end() : answers_.find(ticket);
        if (found == answers_.end()) return false;
        *out = std::move(found->second.front());
        found->second.pop_front();
        if (found->second.empty()) answers_.erase(found);
        return true;
    };
    // Without a deadline too, an answer that never comes ends the test.
    const std::chrono::nanoseconds left(deadline == kNever ? tests::kEventuallyLimit.count() * 1'000'000
                                                           : remaining_ns(deadline));
    return tests::eventually("the agent answers", is_taken, {{}, left}) ? Status::ok : Status::not_done;
}

void FakeAgent::agent_abandon(uint32_t ticket, LateAnswer late, uint64_t argument) {
    const std::lock_guard lock(mutex_);
    if (late != nullptr && silent_) {
        late_[ticket] = {late, argument};
    } else {
        answers_.erase(ticket);
    }
}

Status FakeAgent::watch(int fd, void (*fired)(void*), void* argument, uint32_t* watch_id) {
    const std::lock_guard lock(mutex_);
    *watch_id = next_watch_++;
    watches_[*watch_id] = {fd, fired, argument};
    if (!watcher_.joinable()) watcher_ = std::thread([this] { look(); });
    return Status::ok;
}

void FakeAgent::unwatch(uint32_t watch_id) {
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            const auto found = watches_.find(watch_id);
            if (found != watches_.end()) {
                ::close(found->second.fd);
                watches_.erase(found);
            }
            if (firing_ != watch_id) return;
        }
        std::this_thread::yield();
    }
}

void FakeAgent::look() {
    const auto fire_one = [this] {
        std::vector<std::pair<uint32_t, Watch>> ready;
        {
            const std::lock_guard lock(mutex_);
            for (auto it = watches_.begin(); it != watches_.end();) {
                pollfd p{it->second.fd, POLLIN, 0};
                if (::poll(&p, 1, 0) == 1) {
                    ready.emplace_back(it->first, it->second);
                    firing_ = it->first;
                    ::close(it->second.fd);
                    watches_.erase(it);
                    break;
                }
                ++it;
            }
        }
        for (auto& [id, watch] : ready) watch.fired(watch.argument);
        {
            const std::lock_guard lock(mutex_);
            firing_ = 0;
        }
        return !ready.empty();
    };
    while (!stop_) (void)tests::eventually("a watched file is readable", [&] { return fire_one() || stop_; });
}

Status FakeAgent::spawn(const char*, void (*run)(void*), void* argument) {
    std::thread(run, argument).detach();
    return Status::ok;
}

// ---- NIC
// -----------------------------------------------------------------------------------------------------

namespace {

class TakeInfo final : public NicSink {
public:
    NicInfo first;
    void offer(const NicInfo& nic) override {
        if (first.max_vi == 0) first = nic;
    }
    void reject(const Rejection&) override {}
};

}  // namespace

TestNic::TestNic(Matcher& matcher, const std::map<std::string, std::string>& values) : agent(matcher) {
    static std::atomic<uint64_t> ids{1};
    settings.values = values;
    TakeInfo info;
    EXPECT_EQ(viaduct_provider_v1.control.discover(settings, Hints(), info), Status::ok);
    OpenArgs args;
    args.nic = info.first;
    args.settings = &settings;
    args.agent = &agent;
    args.regions = &regions;
    args.context_id = agent.context_id = ids++ | static_cast<uint64_t>(::getpid()) << 32;
    EXPECT_EQ(ops().open(args, &context), Status::ok);
    agent.opened = Mail::of(Type::kOpenNic, kagent::OpenNic());
    EXPECT_EQ(ops().describe(context, &agent.opened), Status::ok);
    group = new_group();
}

TestNic::~TestNic() {
    for (Group* g : more_groups) ops().group_destroy(g);
    ops().close(context);
}

Group* TestNic::new_group() {
    Group* made = nullptr;
    EXPECT_EQ(ops().group_create(context, &made), Status::ok);
    more_groups.push_back(made);
    return made;
}

uint32_t TestNic::add_region(void* address, uint64_t length, uint32_t flags, uint32_t ptag) {
    Region region;
    region.base = reinterpret_cast<uintptr_t>(address);
    region.length = length;
    region.flags = flags;
    region.ptag = ptag;
    return regions.add(region);
}

void TestNic::remove_region(uint32_t handle) {
    Region was;
    EXPECT_TRUE(regions.snapshot(handle, &was));
    EXPECT_TRUE(regions.remove(handle, 0, nullptr));
    ops().region_removed(context, handle, was);
}

// ---- VI
// ------------------------------------------------------------------------------------------------------

struct Events {
    static TestVi& of(ViCore& core) { return *static_cast<TestVi*>(core.owner); }
    static void async_error(ViCore& core, VIP_ERROR_CODE code, VIP_RESOURCE_CODE, VIP_ULONG opcode, VIP_DESCRIPTOR*) {
        TestVi& vi = of(core);
        const std::lock_guard lock(vi.errors_mutex_);
        vi.errors_.push_back({code, opcode});
    }
    static void settle(ViCore& core) {
        TestVi& vi = of(core);
        BreakReason why;
        core.recv.lock.lock();
        core.send.lock.lock();
        const bool enters = core.broken.load() == 2 && core.state.load() == VIP_STATE_CONNECTED;
        if (enters) {
            why = core.reason;
            ops().disconnect(core);
            core.state = VIP_STATE_ERROR;
            core.broken = 3;
            flush_queue(core.recv);
            flush_queue(core.send);
        }
        core.send.lock.unlock();
        core.recv.lock.unlock();
        if (enters && why.report) async_error(core, why.code, why.resource, why.opcode, why.descriptor);
        if (enters) ops().wake(vi.nic.context);
    }
    static void wake(WorkQueue& q) { ops().wake(of(*q.vi).nic.context); }
    static void cq_overflow(WorkQueue&) {}
    static constexpr ViEvents table = {async_error, settle, wake, cq_overflow, nullptr};
};

TestVi::TestVi(TestNic& n, uint16_t reliability, size_t data_bytes, Group* send_group, Group* recv_group)
    : nic(n), bytes(kDepth * 2 * kDescriptorBytes + data_bytes), memory_(nullptr, std::free) {
    void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    std::memset(memory, 0, bytes);
    memory_.reset(static_cast<std::byte*>(memory));
    region = nic.add_region(memory, bytes);
    core.recv.allocate(kDepth);
    core.send.allocate(kDepth);
    core.recv.vi = core.send.vi = &core;
    core.recv.is_receive = true;
    core.traits.max_transfer = core.max_transfer = 4u << 20;
    core.traits.reliability = reliability;
    core.traits.rdma_write = 1;
    core.traits.rdma_read = core.rdma_read_allowed = reliability != VIP_SERVICE_UNRELIABLE ? 1 : 0;
    core.max_segments = 252;
    core.slot = nic.next_slot++;
    core.regions = &nic.regions;
    core.events = &Events::table;
    core.owner = this;
    EndpointArgs args;
    args.vi = &core;
    args.send_group = send_group != nullptr ? send_group : nic.group;
    args.recv_group = recv_group != nullptr ? recv_group : nic.group;
    EXPECT_EQ(ops().endpoint_create(nic.context, args, &core.endpoint), Status::ok);
}

TestVi::~TestVi() {
    disconnect();
    ops().endpoint_destroy(core.endpoint);
    nic.remove_region(region);
}

VIP_DESCRIPTOR* TestVi::descriptor(bool receive, uint32_t i) const {
    return reinterpret_cast<VIP_DESCRIPTOR*>(memory_.get() + ((receive ? kDepth : 0) + i % kDepth) * kDescriptorBytes);
}

VIP_DESCRIPTOR* TestVi::make(bool receive, const void* address, uint32_t n, uint32_t control) {
    VIP_DESCRIPTOR* d = descriptor(receive, made_[receive]++);
    std::memset(static_cast<void*>(d), 0, sizeof *d);
    d->CS.Control = static_cast<VIP_UINT16>(control);
    d->CS.Length = n;
    if (n != 0) {
        d->CS.SegCount = 1;
        d->DS[0].Local.Data.Address = const_cast<void*>(address);
        d->DS[0].Local.Handle = region;
        d->DS[0].Local.Length = n;
    }
    return d;
}

VIP_DESCRIPTOR* TestVi::make_rdma(uint32_t control, void* local, uint32_t n, const void* remote, uint32_t handle) {
    VIP_DESCRIPTOR* d = make(false, nullptr, 0, control);
    d->CS.Length = n;
    d->CS.SegCount = n != 0 ? 2 : 1;
    d->DS[0].Remote.Data.Address = const_cast<void*>(remote);
    d->DS[0].Remote.Handle = handle;
    d->DS[1].Local.Data.Address = local;
    d->DS[1].Local.Handle = region;
    d->DS[1].Local.Length = n;
    return d;
}

void TestVi::post_send(VIP_DESCRIPTOR* d) {
    core.send.lock.lock();
    core.send.push(d);
    if (core.state == VIP_STATE_CONNECTED) {
        ops().kick_send(core);
    } else {
        flush_queue(core.send);
    }
    core.send.lock.unlock();
    settle();
}

void TestVi::post_recv(VIP_DESCRIPTOR* d) {
    core.recv.lock.lock();
    core.recv.push(d);
    if (core.state == VIP_STATE_CONNECTED) ops().kick_recv(core);
    if (core.state == VIP_STATE_ERROR) flush_queue(core.recv);
    core.recv.lock.unlock();
}

void TestVi::settle() {
    if (core.is_marked_broken()) Events::settle(core);
}

VIP_DESCRIPTOR* TestVi::done(WorkQueue& q) {
    q.lock.lock();
    if (!q.head_complete()) q.is_receive ? ops().poll_recv(core) : ops().poll_send(core);
    bool in_error = false;
    VIP_DESCRIPTOR* d = q.head_complete() ? q.dequeue(&in_error) : nullptr;
    q.lock.unlock();
    EXPECT_TRUE(d == nullptr || written_by_peer || in_error == ((d->CS.Status & VIP_STATUS_ERROR_MASK) != 0));
    settle();
    return d;
}

VIP_DESCRIPTOR* TestVi::send_done() { return done(core.send); }
VIP_DESCRIPTOR* TestVi::recv_done() { return done(core.recv); }

VIP_DESCRIPTOR* TestVi::wait_send() {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_TRUE(tests::eventually("a send completes", [&] { return (d = send_done()) != nullptr; }));
    return d;
}

VIP_DESCRIPTOR* TestVi::wait_recv() {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_TRUE(tests::eventually("a receive completes", [&] { return (d = recv_done()) != nullptr; }));
    return d;
}

void TestVi::disconnect() {
    core.recv.lock.lock();
    core.send.lock.lock();
    if (core.state == VIP_STATE_CONNECTED) ops().disconnect(core);
    core.state = VIP_STATE_IDLE;
    core.broken = 0;
    flush_queue(core.recv);
    flush_queue(core.send);
    core.send.lock.unlock();
    core.recv.lock.unlock();
}

tests::Waited TestVi::reaches(uint32_t wanted) {
    return tests::eventually("the VI reaches state " + std::to_string(wanted), [&] { return state() == wanted; });
}

std::vector<AsyncError> TestVi::errors() const {
    const std::lock_guard lock(errors_mutex_);
    return errors_;
}

void TestVi::forget_errors() {
    const std::lock_guard lock(errors_mutex_);
    errors_.clear();
}

tests::Waited TestVi::is_told(VIP_ERROR_CODE code) {
    return tests::eventually("the error " + std::to_string(code) + " is reported", [&] { return was_told(code); });
}

bool TestVi::was_told(VIP_ERROR_CODE code) const {
    const std::vector<AsyncError> so_far = errors();
    return std::any_of(so_far.begin(), so_far.end(), [code](const AsyncError& e) { return e.code == code; });
}

// ---- connecting
// ----------------------------------------------------------------------------------------------

ConnectOp* begin_connect(TestVi& vi, const std::string& discriminator) {
    EndAddress address;
    address.discriminator_len = static_cast<uint16_t>(discriminator.size());
    std::memcpy(address.discriminator, discriminator.data(), discriminator.size());
    ConnectOp* op = nullptr;
    EXPECT_EQ(ops().peer_request(vi.nic.context, vi.core, address, address, vi.core.traits, kNever, &op), Status::ok);
    return op;
}

void finish_connect(TestVi& vi, ConnectOp* op) {
    ConnectResult result;
    EXPECT_EQ(ops().connect_await(op, now_ns() + 5'000'000'000, &result), Status::ok);
    EXPECT_EQ(ops().connect_finish(op, &result), Status::ok);
    vi.core.recv.lock.lock();
    vi.core.send.lock.lock();
    vi.core.state = VIP_STATE_CONNECTED;
    ops().start(vi.core);
    vi.core.send.lock.unlock();
    vi.core.recv.lock.unlock();
}

void connect(TestVi& a, TestVi& b) {
    static std::atomic<uint32_t> number{0};
    const std::string name = std::to_string(number++);
    ConnectOp* from_a = begin_connect(a, name);
    ConnectOp* from_b = begin_connect(b, name);
    finish_connect(a, from_a);
    finish_connect(b, from_b);
}

tests::Waited eventually(const std::function<bool()>& condition) {
    return tests::eventually("the condition above", condition);
}

namespace {

std::map<std::string, std::string> with_reach(std::map<std::string, std::string> settings, Reach reach) {
    if (reach == Reach::none) settings["cross_copy"] = "off";
    return settings;
}

}  // namespace

TestPair::TestPair(uint16_t reliability, Reach reach, size_t data_bytes,
                   const std::map<std::string, std::string>& settings)
    : nic_a(matcher, with_reach(settings, reach)),
      nic_b(matcher, with_reach(settings, reach)),
      a(nic_a, reliability, data_bytes),
      b(nic_b, reliability, data_bytes) {
    matcher.same_process = reach == Reach::same_process;
    connect(a, b);
    EXPECT_EQ(a.endpoint().joint.peer->reach, reach);
}

void fill(std::byte* to, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>((i * 131 + seed * 29 + (i >> 8)) & 255);
}

bool filled(const std::byte* at, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; ++i)
        if (at[i] != static_cast<std::byte>((i * 131 + seed * 29 + (i >> 8)) & 255)) return false;
    return true;
}

}  // namespace viaduct::paramnet::test
