// SPDX-License-Identifier: BSD-2-Clause
// The start and the end of a job: launcher, modules, exchange of addresses, connections; and back. The order
// is that of docs/adi.md. MPI_Init and MPI_Finalize come here.
#include <sys/auxv.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/process/cpu_quota.hpp"
#include "core/wait/time_slice.hpp"
#include "mpi-adi/engine/card.hpp"
#include "mpi-adi/engine/check/check.hpp"
#include "mpi-adi/engine/engine.hpp"
#include "mpi-adi/engine/progress_thread.hpp"
#include "mpi-adi/engine/robust/state.hpp"
#include "mpi-adi/transport/adi/params.hpp"

namespace viaduct::mpi {
namespace {

// The engine's own messages (the barrier at the end) travel beside all communicators.
constexpr int kBarrierTag = 1;

// Microseconds.
constexpr unsigned kTimeToBeRead = 50'000;
constexpr unsigned kOneTurn = 20'000;
constexpr unsigned kTurns = 16;

// The system keeps the low eight bits of an exit code. A job that was cut short must not look successful, so where
// those bits are 0 the code is kCutShort.
int code_for_launcher(int code) {
    return (code & 0xff) == 0 && engine.world.size > 1 ? kCutShort : code;
}

Comm own_comm;

std::string host_name() {
    char name[HOST_NAME_MAX + 1] = "";
    ::gethostname(name, sizeof name);
    return name;
}

int give_up(const std::string& why) {
    say(why);
    return MPI_ERR_OTHER;
}

void fill_task() {
    const rte::Runtime& job = *engine.job;
    const auto size = static_cast<size_t>(job.size());
    engine.processes.assign(size, process_t{});
    engine.infos.assign(size, procinfo{});
    engine.world.processes.resize(size);
    const int own_node = job.nodes()[static_cast<size_t>(job.rank())];
    taskinfo_t& task = engine.task;
    task = {};
    task.ti_flags = TASK_WORLD;
    task.ti_index = job.rank();
    task.ti_nprocs = job.size();
    std::snprintf(task.ti_job, sizeof task.ti_job, "%s", job.job().c_str());
    task.ti_procs = engine.infos.data();
    for (size_t i = 0; i < size; i++) {
        process_t& process = engine.processes[i];
        process.p_gid.pg_node = engine.infos[i].pi_nodeid = job.nodes()[i];
        process.p_gid.pg_wrank = static_cast<int>(i);
        process.p_conns = 1;
        engine.infos[i].pi_proc = &process;
        engine.infos[i].pi_proto = -1;
        engine.world.processes[i] = &process;
        task.ti_nlocal += job.nodes()[i] == own_node ? 1 : 0;
    }
    task.ti_nremote = task.ti_nprocs - task.ti_nlocal;
    std::vector<int> nodes = job.nodes();
    std::sort(nodes.begin(), nodes.end());
    task.ti_nhosts = static_cast<int>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
}

size_t index_of(int rank) { return static_cast<size_t>(rank); }

bool first_of_node() {
    const std::vector<int> nodes = engine.job->nodes();
    const auto own = nodes.begin() + engine.world.rank;
    return std::find(nodes.begin(), own, *own) == own;
}

bool learns_waiting() { return std::strcmp(adi::param_text(adi::Param::wait_learning), "off") != 0; }

// A module that cannot work here is left out: others may reach all processes.
Card open_modules() {
    Card card;
    card.host = host_name();
    // Where the system call is forbidden: the random bytes that the kernel gives each program at its start.
    if (::getrandom(&card.number, sizeof card.number, 0) != sizeof card.number)
        std::memcpy(&card.number, reinterpret_cast<const void*>(::getauxval(AT_RANDOM)), sizeof card.number);
    card.processors = own_processors();
    card.group = own_cpu_quota().group;
    if (learns_waiting() && engine.task.ti_nlocal > 1 && first_of_node() &&
        engine.placement.create(index_of(engine.world.rank), engine.processes.size()))
        card.placement = engine.placement.name();
    for (int p = 0; p < mpip_protocol_count(); p++) {
        protocol& module = mpip_protocols[p];
        const auto number = static_cast<size_t>(p);
        if (mpip_map_functions(mpip_protocol_name(p), &module) != MPIP_SUCCESS) {
            engine.refusals[number] = "not part of this library";
            continue;
        }
        void* environment = nullptr;
        if (module.pt_initialize() != MPIP_SUCCESS ||
            module.pt_initconns(&engine.task, &environment) != MPIP_SUCCESS) {
            engine.refusals[number] = mpip_last_error();
            module.pt_loaded = 0;
            continue;
        }
        const auto bytes = static_cast<size_t>(engine.task.ti_myenvsize[p]);
        card.environments.emplace_back(module.pt_name, std::string(static_cast<const char*>(environment), bytes));
    }
    return card;
}

// Contexts that processes of several jobs use begin with the number of the process that has made them, so these numbers
// differ between jobs: the first one is random.
void number_processes(uint32_t random) {
    const auto size = static_cast<uint32_t>(engine.world.size);
    const uint32_t first = 1 + random % (kProcessNumbers - 1 - size);
    for (uint32_t rank = 0; rank < size; rank++) engine.world.numbers.push_back(first + rank);
}

bool exchange(const Card& own) {
    rte::Runtime& job = *engine.job;
    if (!job.put("cmpi", own.encode()) || !job.fence()) return false;
    const int own_node = job.nodes()[static_cast<size_t>(job.rank())];
    std::vector<std::string> neighbours;
    int sharers = 0;  // ranks that live on our ration of processor time
    std::string placement;
    for (int rank = 0; rank < job.size(); rank++) {
        const auto bytes = job.get(rank, "cmpi");
        const auto card = bytes ? Card::decode(*bytes) : std::nullopt;
        if (!card) {
            say("rank " + std::to_string(rank) + " published no card this library can read: " + job.error());
            return false;
        }
        if (rank == 0) number_processes(card->number);
        procinfo& info = engine.infos[static_cast<size_t>(rank)];
        std::snprintf(info.pi_host, sizeof info.pi_host, "%s", card->host.c_str());
        if (info.pi_nodeid == own_node) {
            if (neighbours.empty()) placement = card->placement;
            neighbours.push_back(card->processors);
            sharers += !own.group.empty() && card->group == own.group ? 1 : 0;
        }
        for (size_t p = 0; p < NPROTO; p++) {
            const std::string* found = card->environment_of(mpip_protocol_name(static_cast<int>(p)));
            engine.environment_sizes[p].push_back(found != nullptr ? static_cast<int>(found->size()) : 0);
            if (found != nullptr) engine.environments[p] += *found;
        }
    }
    for (size_t p = 0; p < NPROTO; p++) {
        engine.task.ti_renvsizes[p] = engine.environment_sizes[p].data();
        engine.task.ti_renvs[p] = engine.environments[p].data();
    }
    const std::vector<std::string_view> masks(neighbours.begin(), neighbours.end());
    engine.crowded = is_crowded(own.processors, masks.data(), masks.size()) ||
                     (!own.group.empty() && sharers > own_cpu_quota().processors);
    if (engine.crowded) engine.task.ti_flags |= TASK_CROWDED;
    if (own.placement.empty() && engine.crowded && learns_waiting())
        engine.placement.open(placement, index_of(job.rank()), engine.processes.size());
    return true;
}

// Null: any module.
const char* forced_protocol() {
    const char* const name = adi::param_text(adi::Param::protocol);
    return *name != '\0' ? name : nullptr;
}

// Once on each node: its processes have the same files, and the same variables from the launcher.
void report_parameters() {
    if (!first_of_node()) return;
    const char* problem = nullptr;
    for (size_t i = 0; (problem = mpip_param_problem(i)) != nullptr; i++) say(problem);
}

// Why a forced protocol is not there at all, if that is so.
std::string refusal_of(const char* name) {
    for (int p = 0; p < NPROTO; p++) {
        const std::string& why = engine.refusals[static_cast<size_t>(p)];
        if (name != nullptr && std::strcmp(name, mpip_protocol_name(p)) == 0 && !why.empty())
            return std::string("; ") + name + ": " + why;
    }
    return {};
}

int connect() {
    taskinfo_t& task = engine.task;
    const char* const forced = forced_protocol();
    int unreached = 0;
    if (mpip_getconns(&task, forced, &unreached) != MPIP_SUCCESS)
        return give_up("no way to rank " + std::to_string(unreached) + ": " + mpip_last_error() +
                       refusal_of(forced));
    std::vector<protocol*> made;
    for (int p = 0; p < NPROTO; p++) {
        protocol& module = mpip_protocols[p];
        if (!module.pt_loaded || task.ti_nproto[p] == 0) continue;
        if (module.pt_makeconns(&task, task.ti_renvs[p]) != MPIP_SUCCESS) {
            const std::string why = mpip_last_error();
            for (protocol* one : made) one->pt_undoconns(&task, nullptr);
            return give_up(std::string(module.pt_name) + " cannot connect: " + why);
        }
        made.push_back(&module);
    }
    for (protocol* module : made)
        if (module->pt_completeconns(&task) != MPIP_SUCCESS)
            return give_up(std::string(module->pt_name) + " cannot connect: " + mpip_last_error());
    // What a peer connects with may be there only as long as we are: our segment, our listener. So no process gets past
    // MPI_Init, from where the program may end it, before all have connected.
    if (engine.world.size > 1 && !engine.job->fence())
        return give_up("waiting for the others to connect failed: " + engine.job->error());

    // Most polls are answered by the module for which messages have the shortest way.
    std::stable_sort(made.begin(), made.end(), [](const protocol* a, const protocol* b) {
        return a->pt_prop.mp_exclusivity > b->pt_prop.mp_exclusivity;
    });
    // What a process sends to itself is there at once, so that module is polled last.
    std::stable_partition(made.begin(), made.end(),
                          [](const protocol* one) { return one->pt_number != MPIP_PROTO_SELF; });
    for (protocol* module : made) {
        engine.active[engine.active_count++] = module;
        if (module->pt_number != MPIP_PROTO_SELF) engine.sleepers[engine.sleeper_count++] = module;
    }
    return MPI_SUCCESS;
}

void make_own_comm() {
    own_comm.send_context = own_comm.recv_context = kJobContext;
    own_comm.rank = engine.world.rank;
    own_comm.size = own_comm.remote_size = engine.world.size;
    engine.own_processes = engine.world.processes;
    own_comm.peers = engine.own_processes.data();
    attach(own_comm);
}

// With all processes that are left: with processes that fail meanwhile, others' messages are no sign that a third
// one has come.
int barrier_of_those_left() {
    std::vector<Request*> messages;
    for (int rank = 0; rank < engine.world.size; rank++) {
        if (rank == engine.world.rank) continue;
        messages.push_back(irecv(own_comm, Channel::p2p, rank, kBarrierTag, {}));
        messages.push_back(isend(own_comm, Channel::p2p, rank, kBarrierTag, {}));
    }
    const int error = wait_all(messages.data(), static_cast<int>(messages.size()));
    return robust::is_loss(error) ? MPI_SUCCESS : error;
}

// Dissemination: in each round a rank gets a message of one twice as far away, so at the end it has been told of
// all.
int barrier() {
    if ((engine.task.ti_flags & TASK_ROBUST) != 0) return barrier_of_those_left();
    const int size = engine.world.size;
    int failed = MPI_SUCCESS;
    for (int distance = 1; distance < size; distance *= 2) {
        const int to = (engine.world.rank + distance) % size;
        const int from = (engine.world.rank - distance + size) % size;
        const int error = sendrecv(own_comm, Channel::p2p, to, kBarrierTag, {}, from, kBarrierTag, {});
        if (failed == MPI_SUCCESS) failed = error;
    }
    return failed;
}

// Whether every send has at least started. What is started and not received yet the barrier waits for:
// a rank that has come there has received everything.
bool everything_sent() {
    return std::all_of(engine.processes.begin(), engine.processes.end(),
                       [](const process_t& process) { return process.p_sendhead == nullptr; });
}

Engine& make_engine() {
    static Engine* made = new Engine;
    return *made;
}

}  // namespace

Engine& engine = make_engine();

const World& world() { return engine.world; }

void say(const std::string& text) {
    const std::string line = "libcmpi: rank " + std::to_string(engine.world.rank) + " of " +
                             std::to_string(engine.world.size) + " on " + host_name() + ": " + text + "\n";
    ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
    (void)ignored;
}

int start_job() {
    std::string error;
    engine.job = rte::join(&error);
    if (engine.job == nullptr) return give_up(error);
    engine.world.rank = engine.job->rank();
    engine.world.size = engine.job->size();
    engine.world.nodes = engine.job->nodes();
    engine.world.universe_size = engine.job->universe_size().value_or(0);
    engine.world.appnum = engine.job->appnum().value_or(-1);

    fill_task();
    if (mpip_set_upcalls(&kUpcalls) != MPIP_SUCCESS) return give_up(mpip_last_error());
    if (adi::param_number(adi::Param::robust) != 0) robust::forgive_all();
    report_parameters();
    switch_wait_learning(learns_waiting());
    const Card own = open_modules();
    if (adi::param_number(adi::Param::check) != 0)
        checking::begin();
    else
        checking::stay_off();
    if (!exchange(own)) return give_up("the exchange of addresses failed: " + engine.job->error());
    if (const int failed = connect(); failed != MPI_SUCCESS) return failed;
    make_own_comm();
    open_wait_page();
    if (engine.world.size > 1) take_short_slice();
    engine.stage = Stage::running;
    return MPI_SUCCESS;
}

int start_progress() {
    if (std::strcmp(adi::param_text(adi::Param::progress), "thread") != 0) return MPI_SUCCESS;
    const std::string why = start_progress_thread(adi::param_text(adi::Param::progress_cpus));
    return why.empty() ? MPI_SUCCESS : give_up(why);
}

int leave_job() {
    stop_progress_thread();
    progress_until(everything_sent);
    const int failed = barrier();
    progress_until(everything_sent);
    engine.stage = Stage::finalizing;
    for (int i = 0; i < engine.active_count; i++) engine.active[i]->pt_closeconns(nullptr, 0, nullptr);
    detach(own_comm);
    for (protocol& module : mpip_protocols)
        if (module.pt_loaded) module.pt_finalize();
    give_slice_back();
    engine.placement.leave();
    engine.active_count = engine.sleeper_count = 0;
    const bool left = engine.job->finalize();
    engine.stage = Stage::after;
    return left ? failed : give_up("leaving the job failed: " + engine.job->error());
}

void end_job(int code, const char* format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::fflush(nullptr);
    try {
        say(text);
    } catch (const std::bad_alloc&) {
        const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
        (void)ignored;
    }
    // A launcher that is told to abort ends everything at once, and may drop what is unread in its pipes. When several
    // ranks tell it at the same moment, it sometimes loses the exit code. So they take turns: all but the first are
    // ended meanwhile.
    const auto turn = static_cast<unsigned>(engine.world.rank) % kTurns;
    ::usleep(kTimeToBeRead + turn * kOneTurn);
    code = code_for_launcher(code);
    if (engine.job != nullptr) engine.job->abort(code, text);
    ::_exit(code);
}

}  // namespace viaduct::mpi
