// SPDX-License-Identifier: BSD-2-Clause
// The PMIx client, for mpirun and srun --mpi=pmix (spec/mpi 1.2). libpmix is loaded when a PMIx server
// started us and never else, so that a machine without it runs everything that needs no PMIx.
#include <dlfcn.h>
#include <pmix.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>

#include "mpi-adi/rte/clients.hpp"

namespace viaduct::rte {
namespace {

// The entries of libpmix that we use.
struct Library {
    decltype(&::PMIx_Init) init = nullptr;
    decltype(&::PMIx_Finalize) finalize = nullptr;
    decltype(&::PMIx_Abort) abort = nullptr;
    decltype(&::PMIx_Put) put = nullptr;
    decltype(&::PMIx_Commit) commit = nullptr;
    decltype(&::PMIx_Fence) fence = nullptr;
    decltype(&::PMIx_Get) get = nullptr;
    decltype(&::PMIx_Spawn) spawn = nullptr;
    decltype(&::PMIx_Error_string) text = nullptr;

    // The library stays loaded: it has threads of its own.
    bool load(std::string* error) {
        void* handle = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            *error = std::string("a PMIx launcher started this process, but libpmix cannot be loaded: ") +
                     ::dlerror();
            return false;
        }
        return find(handle, "PMIx_Init", &init, error) && find(handle, "PMIx_Finalize", &finalize, error) &&
               find(handle, "PMIx_Abort", &abort, error) && find(handle, "PMIx_Put", &put, error) &&
               find(handle, "PMIx_Commit", &commit, error) && find(handle, "PMIx_Fence", &fence, error) &&
               find(handle, "PMIx_Get", &get, error) && find(handle, "PMIx_Spawn", &spawn, error) &&
               find(handle, "PMIx_Error_string", &text, error);
    }

private:
    template <class Function>
    static bool find(void* handle, const char* name, Function* function, std::string* error) {
        *function = reinterpret_cast<Function>(::dlsym(handle, name));
        if (*function == nullptr) *error = std::string("libpmix has no ") + name;
        return *function != nullptr;
    }
};

// What PMIx_Get hands out: a value whose parts come from malloc and now belong to us.
class Value {
public:
    Value() = default;
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;
    ~Value() {
        if (value_ == nullptr) return;
        if (value_->type == PMIX_BYTE_OBJECT) std::free(value_->data.bo.bytes);
        if (value_->type == PMIX_STRING) std::free(value_->data.string);
        std::free(value_);
    }
    pmix_value_t** slot() { return &value_; }

    std::optional<std::string> bytes() const {
        if (value_ == nullptr || value_->type != PMIX_BYTE_OBJECT) return std::nullopt;
        return std::string(value_->data.bo.bytes, value_->data.bo.size);
    }

    std::optional<int> number() const {
        if (value_ == nullptr) return std::nullopt;
        switch (value_->type) {
            case PMIX_UINT32:
                return static_cast<int>(value_->data.uint32);
            case PMIX_INT:
                return value_->data.integer;
            case PMIX_INT32:
                return value_->data.int32;
            case PMIX_UINT16:
                return value_->data.uint16;
            default:
                return std::nullopt;
        }
    }

private:
    pmix_value_t* value_ = nullptr;
};

constexpr char kParentPort[] = "LIBCMPI_PARENT_PORT";

// A command as PMIx takes it: arrays of C strings that live as long as this.
class App {
public:
    App(const Command& command, const std::string& port) : command_(command) {
        variable_ = std::string(kParentPort) + "=" + port;
        for (const auto& [key, value] : command.hints)
            if (key == "path") command_.program = value + "/" + command.program;
        arguments_ = {command_.program.data()};
        for (std::string& argument : command_.arguments) arguments_.push_back(argument.data());
        arguments_.push_back(nullptr);
        environment_ = {variable_.data(), nullptr};
        for (auto& [key, value] : command_.hints) {
            if (key == "wdir") folder_ = value.data();
            if (key == "host") add_hint(PMIX_HOST, value.data());
            if (key == "hostfile") add_hint(PMIX_HOSTFILE, value.data());
        }
    }
    App(const App&) = delete;
    App& operator=(const App&) = delete;
    App(App&&) = delete;

    pmix_app_t bare() {
        pmix_app_t app{};
        app.cmd = command_.program.data();
        app.argv = arguments_.data();
        app.env = environment_.data();
        app.cwd = folder_;
        app.maxprocs = command_.processes;
        app.info = hints_.empty() ? nullptr : hints_.data();
        app.ninfo = hints_.size();
        return app;
    }

private:
    void add_hint(const char* key, char* value) {
        pmix_info_t& hint = hints_.emplace_back(pmix_info_t{});
        std::strncpy(hint.key, key, PMIX_MAX_KEYLEN);
        hint.value.type = PMIX_STRING;
        hint.value.data.string = value;
    }

    Command command_;
    std::string variable_;
    char* folder_ = nullptr;
    std::vector<char*> arguments_, environment_;
    std::vector<pmix_info_t> hints_;
};

class Pmix final : public Runtime {
public:
    const char* name() const override { return "pmix"; }

    bool begin() {
        if (!library_.load(&error_)) return false;
        if (!done(library_.init(&self_, nullptr, 0), "PMIx_Init")) return false;
        job_ = self_.nspace;
        const auto size = job_number(PMIX_JOB_SIZE);
        if (!size || *size < 1 || self_.rank >= static_cast<uint32_t>(*size))
            return fail("the PMIx server tells no usable size of the job");
        rank_ = static_cast<int>(self_.rank);
        size_ = *size;
        universe_size_ = job_number(PMIX_UNIV_SIZE);
        appnum_ = number_of(self_, PMIX_APPNUM);
        for (int i = 0; i < size_; i++) place(i);
        error_.clear();
        return true;
    }

    bool put(std::string_view key, std::string_view value) override {
        pmix_value_t wrapped{};
        wrapped.type = PMIX_BYTE_OBJECT;
        wrapped.data.bo.bytes = const_cast<char*>(value.data());  // only read: PMIx_Put makes a copy
        wrapped.data.bo.size = value.size();
        return done(library_.put(PMIX_GLOBAL, std::string(key).c_str(), &wrapped), "PMIx_Put");
    }

    bool fence() override {
        if (!done(library_.commit(), "PMIx_Commit")) return false;
        pmix_info_t collect{};
        std::strncpy(collect.key, PMIX_COLLECT_DATA, PMIX_MAX_KEYLEN);
        collect.value.type = PMIX_BOOL;
        collect.value.data.flag = true;
        const pmix_proc_t all = process(PMIX_RANK_WILDCARD);
        return done(library_.fence(&all, 1, &collect, 1), "PMIx_Fence");
    }

    std::optional<std::string> get(int of, std::string_view key) override {
        const pmix_proc_t peer = process(static_cast<pmix_rank_t>(of));
        Value value;
        if (!ask(peer, std::string(key).c_str(), &value)) return std::nullopt;
        auto bytes = value.bytes();
        if (!bytes)
            fail("rank " + std::to_string(of) + " published something else under " + std::string(key));
        return bytes;
    }

    // The port goes to the processes by their environment.
    bool spawn(const std::vector<Command>& commands, const std::string& port) override {
        std::list<App> apps;
        std::vector<pmix_app_t> bare;
        bare.reserve(commands.size());
        for (const Command& command : commands) bare.push_back(apps.emplace_back(command, port).bare());
        char name_space[PMIX_MAX_NSLEN + 1] = "";
        return done(library_.spawn(nullptr, 0, bare.data(), bare.size(), name_space), "PMIx_Spawn");
    }

    std::optional<std::string> parent_port() override {
        const char* port = std::getenv(kParentPort);
        return port != nullptr ? std::optional<std::string>(port) : std::nullopt;
    }

    bool finalize() override { return done(library_.finalize(nullptr, 0), "PMIx_Finalize"); }

    // The call comes back after telling the server. The mpirun of Open MPI 4 now and then deadlocks or crashes
    // at its end when its PMIx server aborts a job while other ranks are in a fence; told by an exit without
    // finalize it ends the job just as well, with the same code. Others (srun) need the call.
    void abort(int code, const std::string& why) override {
        const bool told_by_exit = ::getenv("OMPI_MCA_orte_hnp_uri") != nullptr && (code & 0xff) != 0;
        if (!told_by_exit) library_.abort(code, why.c_str(), nullptr, 0);
        ::_exit(code);
    }

private:
    pmix_proc_t process(pmix_rank_t rank) const {
        pmix_proc_t peer{};
        std::memcpy(peer.nspace, self_.nspace, sizeof peer.nspace);
        peer.rank = rank;
        return peer;
    }

    bool done(pmix_status_t status, const char* call) {
        if (status == PMIX_SUCCESS) return true;
        return fail(std::string(call) + ": " + library_.text(status));
    }

    // Optional: the answer is here since the fence, or nowhere; without the word the server would be called
    // and waited for two seconds.
    bool ask(const pmix_proc_t& peer, const char* key, Value* value) {
        pmix_info_t optional{};
        std::strncpy(optional.key, PMIX_OPTIONAL, PMIX_MAX_KEYLEN);
        optional.value.type = PMIX_BOOL;
        optional.value.data.flag = true;
        return done(library_.get(&peer, key, &optional, 1, value->slot()), key);
    }

    std::optional<int> number_of(const pmix_proc_t& peer, const char* key) {
        Value value;
        return ask(peer, key, &value) ? value.number() : std::nullopt;
    }

    std::optional<int> job_number(const char* key) { return number_of(process(PMIX_RANK_WILDCARD), key); }

    // A rank whose node the server does not tell shares none: below zero, where no server counts.
    void place(int of) {
        const auto node = number_of(process(static_cast<pmix_rank_t>(of)), PMIX_NODEID);
        nodes_.resize(static_cast<size_t>(size_));
        nodes_[static_cast<size_t>(of)] = node.value_or(-1 - of);
    }

    Library library_;
    pmix_proc_t self_{};
};

}  // namespace

std::unique_ptr<Runtime> join_pmix(std::string* error) {
    auto client = std::make_unique<Pmix>();
    if (client->begin()) return client;
    *error = client->error();
    return nullptr;
}

}  // namespace viaduct::rte
