// SPDX-License-Identifier: BSD-2-Clause
// The PMI-1 client: one question, one answer, over the descriptor the launcher left us (spec/mpi 1.3).
// Serves Hydra (MPICH, Intel MPI, MVAPICH) and srun --mpi=pmi2. Everything read is checked: a launcher of
// another mind must end in a message, not in a hang or a crash.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "core/clock/limits.hpp"
#include "mpi-adi/rte/cards.hpp"
#include "mpi-adi/rte/clients.hpp"
#include "mpi-adi/rte/line_channel.hpp"
#include "mpi-adi/rte/process_mapping.hpp"

namespace viaduct::rte {
namespace {

constexpr int kMostProcesses = 1 << 20;

class Pmi1 final : public Runtime {
public:
    Pmi1(int fd, int rank, int size) : channel_(fd) {
        rank_ = rank;
        size_ = size;
        nodes_.resize(static_cast<size_t>(size));
        for (int i = 0; i < size; i++) nodes_[static_cast<size_t>(i)] = i;
    }

    const char* name() const override { return "pmi1"; }

    bool begin() {
        if (!ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")) return false;
        if (!ask("cmd=get_maxes", "maxes")) return false;
        const int longest = number_of(answer_, "vallen_max").value_or(0);
        if (longest < kShortestValue)
            return fail("the launcher takes values of " + std::to_string(longest) + " bytes");
        // The limit may or may not count a closing zero.
        value_limit_ = static_cast<size_t>(std::min(longest, 1 << 16)) - 1;
        if (!ask("cmd=get_my_kvsname", "my_kvsname")) return false;
        const auto name = field_of(answer_, "kvsname");
        if (!name || name->empty()) return fail("the launcher names no key space");
        space_ = job_ = *name;
        learn_attributes();
        return true;
    }

    bool put(std::string_view key, std::string_view value) override {
        const auto pieces = split_card(value, value_limit_);
        if (pieces.empty()) return fail("a value too long for the launcher");
        for (size_t i = 0; i < pieces.size(); i++) {
            const std::string line =
                "cmd=put kvsname=" + space_ + " key=" + key_of(rank_, key, i) + " value=" + pieces[i];
            if (!ask(line, "put_result")) return false;
        }
        return true;
    }

    bool fence() override { return ask("cmd=barrier_in", "barrier_out"); }

    std::optional<std::string> get(int of, std::string_view key) override {
        auto value = join_card([&](size_t i) { return get_word(key_of(of, key, i)); });
        if (!value && error_.empty()) fail("rank " + std::to_string(of) + " published something damaged");
        return value;
    }

    Answer publish(const std::string& service, const std::string& port) override {
        return name_answer("cmd=publish_name service=" + word_of(service) + " port=" + port, "publish_result");
    }

    Answer unpublish(const std::string& service) override {
        return name_answer("cmd=unpublish_name service=" + word_of(service), "unpublish_result");
    }

    Answer lookup(const std::string& service, std::string* port) override {
        const Answer answer = name_answer("cmd=lookup_name service=" + word_of(service), "lookup_result");
        const auto found = answer == Answer::done ? field_of(answer_, "port") : std::nullopt;
        if (found) port->assign(*found);
        return answer == Answer::done && !found ? Answer::refused : answer;
    }

    // One block of lines for each command, and one answer to all.
    bool spawn(const std::vector<Command>& commands, const std::string& port) override {
        std::string lines;
        int number = 0;
        for (const Command& command : commands) {
            lines += "mcmd=spawn\nnprocs=" + std::to_string(command.processes) + "\n";
            lines += "execname=" + command.program + "\ntotspawns=" + std::to_string(commands.size()) + "\n";
            lines += "spawnssofar=" + std::to_string(++number) + "\n";
            int count = 0;
            for (const std::string& argument : command.arguments)
                lines += "arg" + std::to_string(++count) + "=" + argument + "\n";
            lines += "argcnt=" + std::to_string(count) + "\npreput_num=1\n";
            lines += std::string("preput_key_0=") + kParentPort + "\npreput_val_0=" + port + "\n";
            lines += "info_num=" + std::to_string(command.hints.size()) + "\n";
            count = 0;
            for (const auto& [key, value] : command.hints) {
                lines += "info_key_" + std::to_string(count) + "=" + key + "\n";
                lines += "info_val_" + std::to_string(count++) + "=" + value + "\n";
            }
            lines += "endcmd\n";
        }
        // A line that holds another one would be one more for the launcher.
        for (const Command& command : commands)
            if (!is_one_line(command)) return fail("a line break in what is to be started");
        lines.pop_back();
        return ask(std::move(lines), "spawn_result");
    }

    std::optional<std::string> parent_port() override {
        if (std::getenv("PMI_SPAWNED") == nullptr) return std::nullopt;
        return get_word(kParentPort);
    }

    bool finalize() override {
        const bool told = ask("cmd=finalize", "finalize_ack");
        channel_.close();
        return told;
    }

    bool leave_with_all(std::chrono::milliseconds at_most) override {
        if (!channel_.send("cmd=barrier_in")) return fail("the launcher has ended (cmd=barrier_in)");
        if (!channel_.wait_for_line(at_most)) return fail("other processes of the job have not come to their end");
        return is_answer("cmd=barrier_in", "barrier_out") && finalize();
    }

    void abort(int code, const std::string&) override {
        // A launcher that cannot be told has ended: wait_for_end() returns at once.
        (void)channel_.send("cmd=abort exitcode=" + std::to_string(code));
        // Hydra ends us. If we ended before, its proxy might end before mpiexec has written to it, which
        // then dies of SIGPIPE and reports no code.
        channel_.wait_for_end(std::chrono::milliseconds(limit_ns(TimeLimit::mpi_abort) / 1'000'000));
        ::_exit(code);
    }

private:
    static constexpr int kShortestValue = 64;
    static constexpr const char* kParentPort = "PARENT_ROOT_PORT_NAME";  // as in MPICH

    static std::string key_of(int rank, std::string_view key, size_t piece) {
        return std::string(key) + "-" + std::to_string(rank) + "-" + std::to_string(piece);
    }

    static bool is_one_line(const Command& command) {
        const auto one = [](const std::string& text) { return text.find('\n') == std::string::npos; };
        return one(command.program) && std::all_of(command.arguments.begin(), command.arguments.end(), one) &&
               std::all_of(command.hints.begin(), command.hints.end(),
                           [&](const auto& hint) { return one(hint.first) && one(hint.second); });
    }

    // Any name as a word without blanks and equal signs.
    static std::string word_of(const std::string& service) {
        static constexpr char kDigits[] = "0123456789abcdef";
        std::string word;
        for (const unsigned char c : service) {
            if (c > ' ' && c < 127 && c != '=' && c != '%') {
                word += static_cast<char>(c);
                continue;
            }
            word += '%';
            word += kDigits[c >> 4];
            word += kDigits[c & 15];
        }
        return word;
    }

    // A launcher with a name service says rc; others refuse the question.
    Answer name_answer(std::string question, std::string_view expected) {
        if (ask(std::move(question), expected)) return field_of(answer_, "rc") ? Answer::done : Answer::none;
        return field_of(answer_, "cmd") == expected && field_of(answer_, "rc") ? Answer::refused : Answer::none;
    }

    // One exchange. The answer must be of the expected kind and, where it has one, carry rc=0.
    bool ask(std::string question, std::string_view expected) {
        error_.clear();
        const std::string verb = question.substr(0, question.find(' '));
        if (!channel_.send(std::move(question))) return fail("the launcher has ended (" + verb + ")");
        return is_answer(verb, expected);
    }

    bool is_answer(const std::string& verb, std::string_view expected) {
        auto answer = channel_.receive();
        if (!answer) return fail("the launcher ended the connection (" + verb + ")");
        answer_ = std::move(*answer);
        if (field_of(answer_, "cmd") != expected)
            return fail("the launcher answered \"" + answer_.substr(0, 100) + "\" to " + verb);
        if (const auto code = field_of(answer_, "rc"); code && *code != "0")
            return fail("the launcher refused " + verb + ": " + answer_.substr(0, 100));
        return true;
    }

    std::optional<std::string> get_word(const std::string& key) {
        if (!ask("cmd=get kvsname=" + space_ + " key=" + key, "get_result")) return std::nullopt;
        const auto value = field_of(answer_, "value");
        if (!value) {
            fail("the launcher has no value for " + key);
            return std::nullopt;
        }
        return std::string(*value);
    }

    // Good to know, but a launcher may do without any of it.
    void learn_attributes() {
        if (ask("cmd=get_universe_size", "universe_size"))
            if (const int slots = number_of(answer_, "size").value_or(-1); slots > 0) universe_size_ = slots;
        if (ask("cmd=get_appnum", "appnum"))
            if (const int number = number_of(answer_, "appnum").value_or(-1); number >= 0) appnum_ = number;
        if (const auto mapping = get_word("PMI_process_mapping"))
            if (auto nodes = nodes_from_mapping(*mapping, size_)) nodes_ = std::move(*nodes);
        error_.clear();
    }

    LineChannel channel_;
    std::string space_;
    std::string answer_;
    size_t value_limit_ = 0;
};

}  // namespace

std::unique_ptr<Runtime> join_pmi1(int fd, int rank, int size, std::string* error) {
    if (fd < 0 || size < 1 || size > kMostProcesses || rank < 0 || rank >= size) {
        *error = "the launcher says rank " + std::to_string(rank) + " of " + std::to_string(size);
        return nullptr;
    }
    auto client = std::make_unique<Pmi1>(fd, rank, size);
    if (client->begin()) return client;
    *error = client->error();
    return nullptr;
}

}  // namespace viaduct::rte
