// SPDX-License-Identifier: BSD-2-Clause
// The life of an engine: which NIC has one for which port, how it gets its port, how it ends, and what happens when
// the engine process that owned the port has ended.
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <utility>

#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/provider/explain.hpp"
#include "core/sync/cancellation.hpp"
#include "providers/packet/engine.hpp"
#include "providers/packet/nic.hpp"

namespace viaduct::packet {

namespace {

// Between two looks for the answers of peers.
constexpr uint32_t kLookForAnswers = 50;  // us

// Of the system's source. False: it is forbidden to us, and there is no file of it.
bool from_system(uint64_t* bits) {
    if (::getrandom(bits, sizeof *bits, 0) == sizeof *bits) return true;
    const Fd file(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
    return file.valid() && ::read(file.get(), bits, sizeof *bits) == sizeof *bits;
}

// Bits that cannot be guessed. If their source becomes unavailable after the engine has begun (a filter of system
// calls), they follow from what it gave before.
uint64_t draw() {
    static std::atomic<uint64_t> number{0};
    static const wire::Key kept = [] {
        wire::Key key;
        from_system(&key.low) && from_system(&key.high);
        return key;
    }();
    uint64_t bits = 0;
    if (from_system(&bits)) return bits;
    const uint64_t next = ++number;
    wire::SipHash hash(kept);
    hash.add(&next, sizeof next);
    return hash.finish();
}

// The engines of this process by port. One that is ending still has the port; a NIC that opens it meanwhile waits.
struct Known {
    std::weak_ptr<Engine> engine;
    bool taken = false;
    uint64_t number = 0;
    const char* cure_of_fork = nullptr;  // FramePort
};
struct Registry {
    explicit Registry(Registry* before) : parents(before) {}
    const pid_t owner = ::getpid();
    std::mutex mutex;
    std::condition_variable one_has_ended;
    std::map<std::string, Known> all;
    Registry* const parents;  // of the process that this one was forked from
};
std::atomic<Registry*> registry_of_process{nullptr};

// Ends an engine, and lets the port be opened again.
struct EndOfEngine {
    Registry* registry = nullptr;
    Known* known = nullptr;
    uint64_t number = 0;

    void operator()(Engine* ended) const {
        delete ended;
        {
            const std::scoped_lock again(registry->mutex);
            if (known->number == number) known->taken = false;
        }
        registry->one_has_ended.notify_all();
    }
};

// A forked child has one of its own: another thread of its parent may have held the lock at the fork.
Registry& registry() {
    for (;;) {
        Registry* known = registry_of_process.load(std::memory_order_acquire);
        if (known != nullptr && known->owner == ::getpid()) return *known;
        auto* fresh = new Registry(known);
        if (registry_of_process.compare_exchange_strong(known, fresh, std::memory_order_acq_rel))
            return *fresh;
        delete fresh;
    }
}

// Why a port that the parent has is not for a forked child (FramePort::cure_of_fork); null: it is, or the parent's
// registry cannot be read: then the port itself says that it is in use.
const char* parents_cure_of_fork(const Registry& own, const std::string& port) {
    Registry* parents = own.parents;
    if (parents == nullptr) return nullptr;
    const std::unique_lock lock(parents->mutex, std::try_to_lock);
    if (!lock.owns_lock()) return nullptr;
    const auto known = parents->all.find(port);
    if (known != parents->all.end() && known->second.taken && known->second.cure_of_fork != nullptr)
        return known->second.cure_of_fork;
    return parents_cure_of_fork(*parents, port);
}

// Programs end without disconnecting and without closing anything. What they have received must still be
// acknowledged, and their peers must not wait for their silence.
void close_links_of_all() {
    std::vector<std::shared_ptr<Engine>> living;  // the end of an engine takes the lock
    Registry* const own = registry_of_process.load(std::memory_order_acquire);
    if (own == nullptr || own->owner != ::getpid()) return;
    std::unique_lock lock(own->mutex, std::defer_lock);
    for (int tries = 0; !lock.try_lock(); ++tries) {
        if (tries == 100) return;  // held by a thread that opens a port
        ::usleep(100);
    }
    living.reserve(own->all.size());  // the loop must not throw: an engine that ends in it would take the lock again
    for (auto& [name, known] : own->all)
        if (auto live = known.engine.lock()) {
            live->close_links();
            living.push_back(std::move(live));
        }
    // For all of them together. Some peers wait for a processor, and some drivers (memif) lose frames that a peer has
    // not fetched.
    const int64_t until = now_ns() + limit_ns(TimeLimit::packet_close);
    for (const auto& live : living) live->wait_for_closes(until);
}

// If an allocation fails, peers notice the end by the silence.
void close_all_links(int, void*) try {
    const CancellationHeldOff held_off;
    close_links_of_all();
} catch (const std::exception&) {
}
[[maybe_unused]] const int registered_at_load = ::on_exit(close_all_links, nullptr);

}  // namespace

std::shared_ptr<Engine> Engine::get(const PortSource& source, UserAgent* agent, std::string* why,
                                    std::string* cure) {
    Registry& registry = packet::registry();
    if (const char* const cure_of_fork = parents_cure_of_fork(registry, source.name())) {
        *why = source.name() + " was opened by the process this one was forked from";
        *cure = cure_of_fork;
        return nullptr;
    }
    std::shared_ptr<Engine> found, engine;
    std::unique_ptr<Engine, EndOfEngine> made;
    std::unique_lock lock(registry.mutex);  // the last one, so released first: the end of an engine takes it
    Known& known = registry.all[source.name()];
    found = known.engine.lock();
    while (!found && known.taken) {
        registry.one_has_ended.wait(lock);
        found = known.engine.lock();
    }
    if (found && !found->is_lost()) return found;
    auto* const fresh = new Engine;
    const uint64_t number = ++known.number;  // one that is lost may live on until its last NIC is closed
    made = std::unique_ptr<Engine, EndOfEngine>(fresh, EndOfEngine{&registry, &known, number});
    known.taken = true;
    engine = std::move(made);
    if (!engine->begin(source, agent, why, cure)) return nullptr;
    known.cure_of_fork = engine->port().cure_of_fork();
    known.engine = engine;
    return engine;
}

bool Engine::begin(const PortSource& source, UserAgent* agent, std::string* why, std::string* cure) {
    section_ = source.section();
    name_ = source.name();
    owner_ = ::getpid();
    agent_ = agent;
    if (!wake_event_.open()) {
        *why = "no descriptor is left";
        *cure = "raise the limit of open files (ulimit -n)";
        return false;
    }
    port_ = source.open(why, cure);
    if (port_ == nullptr) return false;
    port_->use(*agent);
    const LinkRange links = port_->links();
    wire::Tuning tuning;
    tuning.stretch_limits(time_factor());
    tuning.max_frame = port_->max_frame();
    tuning.max_links = std::min(kMaxLinks, links.count);
    tuning.first_link = links.first;
    tuning.ports = port_->has_ports();
    tuning.window = port_->window();
    tuning.queue_depth = kDepth;
    tuning.attended = port_->is_attended();
    if (port_->keeps_requests()) tuning.pending_connects = 0;
    if (!from_system(&tuning.seed)) {
        *why = "there are no random numbers to be had";
        *cure = "allow getrandom, or let /dev/urandom be read";
        return false;
    }
    tuning.draw = draw;
    tuning.key = source.key();
    node_ = std::make_unique<wire::Node>(tuning, port_->address(), port_->outlet(), *this);
    const int owner = port_->owner_fd();
    if (owner >= 0 && agent->watch(
                          owner, [](void* self) { static_cast<Engine*>(self)->lose_port(); }, this,
                          &owner_watch_) != Status::ok) {
        owner_watch_ = 0;
        *why = "the engine process cannot be watched";
        *cure = "raise the limit of open files (ulimit -n)";
        return false;
    }
    endpoints_.reserve(kMaxVi);
    broken_.reserve(kMaxVi);
    // Allocated while helper_ended_ is true: else ~Engine would wait for a helper that was never started.
    const std::string thread_name = "vipl-" + std::string(section_);
    { const std::scoped_lock before_the_helper(mutex); }
    helper_ended_ = false;
    const Status spawned = agent->spawn(
        thread_name.c_str(), [](void* self) { static_cast<Engine*>(self)->run_helper(); }, this);
    if (spawned != Status::ok) {
        helper_ended_ = true;
        *why = "no thread can be started, or no memory is left for it";
        *cure = "raise the limit of processes (ulimit -u)";
        return false;
    }
    return true;
}

// The destructor calls it, so it throws nothing: if an allocation fails, the log lacks the line.
void Engine::log_counters() const try {
    const wire::Counters& c = node_->counters();
    const auto n = [](uint64_t v) { return static_cast<unsigned long long>(v); };
    VIADUCT_LOG(
        info, section_,
        "%s: frames in %llu, out %llu, retransmitted %llu, timeouts %llu, losses %llu, duplicates "
        "%llu, early %llu, "
        "bad check %llu, unknown link %llu, answers withheld %llu, proofs asked %llu, challenges %llu, "
        "not authentic %llu, acks %llu, zero-copy %llu, %s",
        name_.c_str(), n(c.frames_in), n(c.frames_out), n(c.retransmitted), n(c.timeouts), n(c.losses_seen),
        n(c.duplicates), n(c.early), n(c.bad_check), n(c.unknown_link), n(c.answers_withheld), n(c.proofs_asked),
        n(c.challenges), n(c.not_authentic), n(c.acks_out), n(c.zero_copied), port_->counters().c_str());
} catch (const std::exception&) {
}

void Engine::close_links() {
    if (owner_ != ::getpid()) return;  // a forked child has neither port nor threads
    stop_.store(true);
    wake_helper();
    std::unique_lock lock(mutex, std::defer_lock);
    for (int tries = 0; !lock.try_lock(); ++tries) {
        if (tries == 100) return;
        ::usleep(100);
    }
    node_->close_links(now());
    port_->transmit();
}

// Calls nothing that takes a VI's lock, as poll would: its holder may be the thread that ends the process.
void Engine::wait_for_closes(int64_t until) {
    if (owner_ != ::getpid()) return;
    for (bool all = false; !all && !is_lost() && now_ns() < until;) {
        if (const std::unique_lock lock(mutex, std::try_to_lock); lock.owns_lock()) {
            const int64_t now = this->now();
            port_->receive([&](std::span<const std::byte> frame, const NicAddress& from) {
                node_->input(frame, from, now);
            });
            if (node_->next_deadline() <= now) node_->advance(now);
            finish_frames();
            all = node_->closes_open() == 0;
        }
        if (!all) ::usleep(kLookForAnswers);
    }
    log_counters();
}

Engine::~Engine() {
    if (owner_watch_ != 0) agent_->unwatch(owner_watch_);
    std::unique_lock lock(mutex);
    if (node_ != nullptr && !is_lost()) {
        log_counters();
        node_->close_links(now());
        port_->transmit();
        for (const int64_t until = now_ns() + limit_ns(TimeLimit::packet_close);
             node_->links_in_use() != 0 && now_ns() < until;) {
            lock.unlock();
            if (!poll()) ::usleep(100);
            lock.lock();
        }
    }
    stop_.store(true);
    lock.unlock();
    wake_helper();
    lock.lock();
    changed.wait(lock, [&] { return helper_ended_; });
}

// ---- the process that owns the port has died: on the event thread

void Engine::lose_port() {
    {
        const std::scoped_lock lock(mutex);
        lost_.store(true);
        changed.notify_all();
    }
    VIADUCT_LOG(error, section_, "%s: the engine process has ended; open the NIC again to start another",
                name_.c_str());
    size_t left = SIZE_MAX;  // the last one first: a NIC may be closed meanwhile
    while (left != 0) {
        uint64_t context = 0;
        {
            const std::scoped_lock lock(mutex);
            left = std::min(left, contexts_.size());
            if (left == 0) return;
            context = contexts_[--left];
        }
        agent_->nic_failed(context);
    }
}

void Engine::say_why(const char* reason, const char* cure) const {
    explain(agent_, section_, reason, cure);
}

void Engine::add_context(uint64_t id) {
    const std::scoped_lock lock(mutex);
    contexts_.push_back(id);
}

void Engine::remove_context(uint64_t id) {
    const std::scoped_lock lock(mutex);
    std::erase(contexts_, id);
}

}  // namespace viaduct::packet
