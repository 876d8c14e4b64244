// SPDX-License-Identifier: BSD-2-Clause
#include "vipl/nic.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <exception>
#include <mutex>

#include "core/agent/asked_name.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/limits.hpp"
#include "core/log/log.hpp"
#include "core/provider/loader.hpp"
#include "core/stats/process_stats.hpp"
#include "core/sync/futex.hpp"
#include "core/wait/crowd_score.hpp"
#include "vipl/connection.hpp"
#include "vipl/cq.hpp"
#include "vipl/device.hpp"
#include "vipl/dispatcher.hpp"
#include "vipl/launcher_hints.hpp"
#include "vipl/library.hpp"
#include "vipl/memory.hpp"
#include "vipl/status.hpp"
#include "vipl/thrown.hpp"
#include "vipl/user_agent.hpp"
#include "vipl/vi.hpp"
#include "vipl/why.hpp"

namespace viaduct::vipl {

// -------------------------------------------------------------------------------------------------------
// pins

bool NicPin::try_pin(Nic& nic) {
    nic.users.fetch_add(1);
    if (nic.handle.load() != 0) return true;
    unpin(nic);
    return false;
}

void NicPin::unpin(Nic& nic) {
    if (nic.users.fetch_sub(1) == 1 && nic.handle.load() == 0) futex_wake(nic.users, 1, false);
}

NicPin::NicPin(VIP_NIC_HANDLE handle) {
    auto* nic = static_cast<Nic*>(handle_table.find(handle, HandleKind::nic));
    if (nic == nullptr) return;
    nic->users.fetch_add(1);
    if (nic->handle.load() == reinterpret_cast<uintptr_t>(handle)) {
        nic_ = nic;
    } else {
        unpin(*nic);
    }
}

NicPin::NicPin(Nic* nic, const std::atomic<uintptr_t>& still, const void* handle) {
    if (nic == nullptr || handle == nullptr) return;
    nic->users.fetch_add(1);
    if (still.load() == reinterpret_cast<uintptr_t>(handle) && nic->handle.load() != 0) {
        nic_ = nic;
    } else {
        unpin(*nic);
    }
}

void NicPin::release() {
    if (nic_ != nullptr) unpin(*std::exchange(nic_, nullptr));
}

// ------------------------------------------------------------------------------------------------------
// opening

namespace {

constexpr const char* kLookAtLimits = "look at the limits of the process (ulimit -a) and at its cgroup";
constexpr const char* kMoreFiles = "raise the limit of open files (ulimit -n)";

// A call of the kernel that the open needs has failed.
Status refuse_for_errno(const char* what) {
    const char* const cure = errno == EMFILE ? kMoreFiles : kLookAtLimits;
    refuse(VIP_ERROR_RESOURCE, cure, "%s: %s", what, std::strerror(errno));
    return Status::out_of_resources;
}

// A fresh request to open (or re-attach) this NIC at the agent, with the descriptors that peers will need. The thread
// that re-attaches it may be in a call about another object, whose reason that is not.
Status make_open_request(Nic& nic, bool again, Mail* mail) {
    kagent::OpenNic body;
    static_assert(sizeof body.device == sizeof nic.asked.name);
    std::memcpy(body.device, nic.asked.name, sizeof body.device);
    body.context_id = nic.context_id;
    body.reattach = again ? 1 : 0;
    body.address = nic.info.address;
    if (again) nic.leases.held(body.held);
    *mail = Mail::of(kagent::Type::kOpenNic, body);
    Fd table(nic.regions->open_read_only());
    if (!table.valid())
        return again ? Status::out_of_resources : refuse_for_errno("no descriptor for the table of memory regions");
    mail->descriptors.push_back(std::move(table));
    const Status status = nic.ops->describe(nic.context, mail);
    if (status == Status::out_of_resources && !again)
        refuse(VIP_ERROR_RESOURCE, kMoreFiles, "no descriptors for what peers of the NIC need");
    return status;
}

Status find_nic(Library& library, Nic& nic, const char* given, Deadline deadline) {
    const Status status = find_device(library, given, deadline, &nic.device, &nic.info);
    if (status != Status::ok) return status;
    nic.asked = asked_name(nic.device, library.config.get("names", "default_provider"));
    const LoadedProvider loaded = load_provider(nic.info.provider);
    if (loaded.provider == nullptr) {
        refuse(VIP_ERROR_RESOURCE, loaded.cure.c_str(), "provider %s of NIC '%s': %s", nic.info.provider, given,
               loaded.error.c_str());
        return Status::out_of_resources;
    }
    nic.provider = loaded.provider;
    nic.ops = &loaded.provider->data;
    return Status::ok;
}

Status make_context(Library& library, Nic& nic) {
    nic.regions = std::make_unique<RegionTable>();
    if (!nic.regions->valid()) return refuse_for_errno("no shared memory (memfd) for the table of memory regions");
    if (::getrandom(&nic.context_id, sizeof nic.context_id, 0) != sizeof nic.context_id) {
        refuse(VIP_ERROR_RESOURCE, "let the container's filter of system calls permit getrandom",
               "the system gives no random numbers: %s", std::strerror(errno));
        return Status::broken;
    }
    OpenArgs args;
    args.nic = nic.info;
    args.settings = &library.config.settings(nic.info.provider);
    args.hints = launcher_hints();
    args.agent = library.events.get();
    args.regions = nic.regions.get();
    args.context_id = nic.context_id;
    return nic.ops->open(args, &nic.context);
}

Status open_context(Library& library, Nic& nic) {
    Status status = Status::out_of_resources;
    try {
        status = make_context(library, nic);
    } catch (const std::exception& thrown) {
        refuse_thrown(thrown);
    }
    if (status == Status::ok) return status;
    if (!is_refused())
        refuse(VIP_ERROR_RESOURCE, "VIADUCT_LOG=info shows what agent and provider say",
               "the provider %s gives no reason (status %d)", nic.info.provider, static_cast<int>(status));
    put_before_reason("cannot open '%s'", nic.device.c_str());
    return status;
}

// *may_be_open: the agent has, or may have, opened it.
Status open_at_agent(Library& library, Nic& nic, Deadline deadline, bool* may_be_open) {
    // Made anew for each try: descriptors travel with the request.
    Mail request;
    Status status = make_open_request(nic, false, &request);
    if (status != Status::ok) {
        put_before_reason("cannot open '%s'", nic.device.c_str());
        return status;
    }
    Mail answer;
    *may_be_open = true;  // also when an exception ends the call
    status = library.link.call(std::move(request), &answer, deadline);
    *may_be_open = status == Status::ok;
    if (status != Status::ok) {
        refuse(VIP_ERROR_RESOURCE, "vipinfo --doctor", "the agent does not open '%s': %s", nic.device.c_str(),
               refusal_text(library, answer).c_str());
        return status;
    }
    kagent::Opened opened;
    if (!answer.get(&opened)) return Status::broken;
    if (opened.nic.address != nic.info.address) {
        refuse(VIP_ERROR_RESOURCE, "open it again", "cannot open '%s': its address has changed meanwhile",
               nic.device.c_str());
        return Status::out_of_resources;
    }
    // nic.info stays as the provider was given it, whatever else of the NIC has changed meanwhile.
    nic.leases.begin(nic, opened.lease);
    library.events->wake();
    return Status::ok;
}

// An open under way. Unless keep() was called, the destructor undoes its steps: also when an exception ends the open.
class Opening {
public:
    explicit Opening(Nic& nic) : nic_(nic) {}
    ~Opening() {
        if (kept_) return;
        if (listed_) nic_.library->remove_open(&nic_);
        if (may_be_open_) tell_agent_closed(nic_);
        take_apart(nic_);
    }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

    Status open(const char* name, Deadline* deadline);
    // Puts the NIC onto the list of open NICs and makes its handle. 0: it failed, and if *status is ok, for memory.
    uintptr_t enlist(Deadline deadline, Status* status);
    void keep() { kept_ = true; }

private:
    Nic& nic_;
    uint64_t epoch_ = 0;        // of the link, before the NIC was opened
    bool may_be_open_ = false;  // at the agent
    bool listed_ = false;
    bool kept_ = false;
};

Status Opening::open(const char* name, Deadline* deadline) {
    Library& library = *nic_.library;
    Status status = find_nic(library, nic_, name, *deadline);
    epoch_ = library.link.epoch();
    // The agent's time does not run while the provider starts its device, which may take longer than all of it.
    const int64_t begun = now_ns();
    if (status == Status::ok) status = open_context(library, nic_);
    *deadline += now_ns() - begun;
    return status == Status::ok ? open_at_agent(library, nic_, *deadline, &may_be_open_) : status;
}

uintptr_t Opening::enlist(Deadline deadline, Status* status) {
    nic_.dispatcher = std::make_shared<Dispatcher>(nic_);
    std::memcpy(nic_.address, nic_.info.address.bytes, sizeof nic_.address);
    nic_.library->add_open(&nic_);
    listed_ = true;
    *status = assure_known(nic_, epoch_, deadline);
    const bool ready = *status == Status::ok && add_group(nic_, nic_.own_group);
    return ready ? handle_table.insert(HandleKind::nic, &nic_) : 0;
}

}  // namespace

Status assure_known(Nic& nic, uint64_t epoch, Deadline deadline) {
    AgentLink& link = nic.library->link;
    // Not while a connection is being made: when it is made, all NICs on the list have been reported.
    if (link.connect(deadline) != Status::ok || link.epoch() == epoch) return Status::ok;
    Mail request;
    const Status status = make_open_request(nic, true, &request);
    if (status != Status::ok) return status;
    Mail answer;
    return link.call(std::move(request), &answer, deadline);
}

VIP_RETURN open_nic(const char* name, VIP_NIC_HANDLE* out) {
    errno = 0;
    Library* library = Library::start();
    if (library == nullptr) {
        return refuse(VIP_ERROR_RESOURCE, kLookAtLimits,
                      "cannot open '%s': no memory, thread or descriptors (epoll, eventfd) for the library itself: %s",
                      name, std::strerror(errno));
    }
    if (std::strlen(name) >= sizeof(kagent::NameText::name))
        return refuse(VIP_INVALID_PARAMETER, "vipinfo shows the names of NICs",
                      "DeviceName has %zu characters, %zu are the most", std::strlen(name),
                      sizeof(kagent::NameText::name) - 1);
    Nic* fresh = library->nics.take();
    if (fresh == nullptr)
        return refuse(VIP_ERROR_RESOURCE, kLookAtLimits, "cannot open '%s': no memory is left", name);
    Nic& nic = *fresh;
    nic.library = library;
    Opening opening(nic);

    Deadline deadline = now_ns() + limit_ns(TimeLimit::agent_call);
    Status status = opening.open(name, &deadline);
    if (status != Status::ok) return to_return(CallKind::open_nic, status);
    const uintptr_t handle = opening.enlist(deadline, &status);
    if (handle == 0) {
        if (status == Status::ok)
            return refuse(VIP_ERROR_RESOURCE, kLookAtLimits, "cannot open '%s': no memory for its handle and queues",
                          name);
        refuse(VIP_ERROR_RESOURCE, "vipinfo --doctor",
               "cannot open '%s': the agent has ended meanwhile, and the next one does not open it", name);
        return to_return(CallKind::open_nic, status);
    }
    opening.keep();
    nic.handle.store(handle);
    stats::process_stats.count(stats::ProcessCount::nics_opened);
    *out = reinterpret_cast<VIP_NIC_HANDLE>(handle);
    return VIP_SUCCESS;
}

Status reattach_nic(Nic& nic, AgentLink& link) {
    Mail request;
    Status status = make_open_request(nic, true, &request);
    if (status != Status::ok) return status;
    Mail answer;
    status = link.exchange_now(std::move(request), &answer);
    nic.unknown_to_agent.store(status == Status::unknown_name);
    return status;
}

Status make_known(Nic& nic, Deadline deadline) {
    AgentLink& link = nic.library->link;
    if (const Status connected = link.connect(deadline); connected != Status::ok) return connected;
    if (!nic.unknown_to_agent.load()) return Status::ok;
    // A caller that only polls needs a moment. A caller that waits without end holds no other thread up.
    const int64_t now = now_ns();
    const Deadline until = std::clamp(deadline, now + limit_ns(TimeLimit::agent_connect_least),
                                      now + limit_ns(TimeLimit::agent_call));
    std::unique_lock lock(nic.make_known_mutex, std::defer_lock);
    while (!lock.try_lock()) {
        if (now_ns() >= until) return Status::timeout;
        ::usleep(1000);
    }
    if (!nic.unknown_to_agent.load()) return Status::ok;
    Mail request;
    Status status = make_open_request(nic, true, &request);
    if (status != Status::ok) return status;
    Mail answer;
    status = link.call(std::move(request), &answer, until);
    if (status == Status::ok) {
        nic.unknown_to_agent.store(false);
        return Status::ok;
    }
    const char* const what = status == Status::unknown_name ? "has vanished" : "is not opened by the agent";
    refuse(VIP_ERROR_RESOURCE, "vipinfo --providers shows why it is not listed; once it is, try again",
           "NIC '%s' %s: %s", nic.info.name, what, refusal_text(*nic.library, answer).c_str());
    return Status::out_of_resources;
}

// -------------------------------------------------------------------------------------------------------
// groups

bool add_group(Nic& nic, PollGroup& poll) try {
    {
        const std::lock_guard lock(nic.groups_mutex);
        nic.groups.reserve(nic.groups.size() + 1);  // memory runs short before anything has changed
    }
    Group* group = nullptr;
    if (nic.ops->group_create(nic.context, &group) != Status::ok) return false;
    poll.lock.lock();
    poll.group = group;
    poll.lock.unlock();
    const std::lock_guard lock(nic.groups_mutex);
    nic.groups.push_back(&poll);
    return true;
} catch (const std::exception&) {
    return false;
}

void remove_group(Nic& nic, PollGroup& poll) {
    {
        const std::lock_guard lock(nic.groups_mutex);
        nic.groups.erase(std::find(nic.groups.begin(), nic.groups.end(), &poll));
    }
    poll.lock.lock();
    Group* group = std::exchange(poll.group, nullptr);
    poll.lock.unlock();
    nic.ops->group_destroy(group);
}

void poll_everything(Nic& nic) {
    const std::unique_lock lock(nic.groups_mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;  // another thread does it
    for (PollGroup* poll : nic.groups) {
        if (!poll->lock.try_lock()) continue;
        nic.ops->poll_group(poll->group);
        poll->lock.unlock();
    }
}

void poll_idle(Nic& nic) {
    stats::process_stats.count_loosely(stats::ProcessCount::rounds);
    nic.library->poll_open();
    if (nic.gives_way.load(std::memory_order_relaxed)) between_polls();
}

// ----------------------------------------------------------------------------------------------------
// attributes

void query_nic(const Nic& nic, VIP_NIC_ATTRIBUTES* out) {
    const NicInfo& info = nic.info;
    // A limit that does not fit the numbers of a 32-bit program is more than it can use.
    const auto most = [](uint64_t n) { return static_cast<VIP_ULONG>(std::min<uint64_t>(n, ULONG_MAX)); };
    std::memset(out, 0, sizeof *out);
    std::memcpy(out->Name, info.name, std::min(sizeof(out->Name), sizeof(info.name)) - 1);
    out->HardwareVersion = info.hardware_version;
    out->ProviderVersion = info.provider_version;
    out->NicAddressLen = kNicAddressBytes;
    out->LocalNicAddress = nic.address;
    out->ThreadSafe = VIP_TRUE;
    out->MaxDiscriminatorLen = static_cast<VIP_UINT16>(std::min(info.max_discriminator, kMaxDiscriminator));
    out->MaxRegisterBytes = most(info.max_register_bytes);
    out->MaxRegisterRegions = most(info.max_register_regions);
    out->MaxRegisterBlockBytes = most(info.max_register_block_bytes);
    out->MaxVI = most(info.max_vi);
    out->MaxDescriptorsPerQueue = most(info.max_descriptors_per_queue);
    out->MaxSegmentsPerDesc = most(info.max_segments);
    out->MaxCQ = most(info.max_cq);
    out->MaxCQEntries = most(info.max_cq_entries);
    out->MaxTransferSize = most(info.max_transfer);
    out->NativeMTU = most(info.native_mtu);
    out->MaxPtags = most(info.max_ptags);
    out->ReliabilityLevelSupport = info.reliability_mask;
    out->RDMAReadSupport = info.rdma_read_mask;
}

}  // namespace viaduct::vipl
