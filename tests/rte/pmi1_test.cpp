// SPDX-License-Identifier: BSD-2-Clause
// The PMI-1 client against a launcher made of a thread: what a good one says, in pieces too, and what a bad
// one may say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <thread>

#include "mpi-adi/rte/clients.hpp"
#include "mpi-adi/rte/line_channel.hpp"

namespace viaduct::rte {
namespace {

using testing::HasSubstr;

// Answers one client until it goes. A test may put its own answer in the place of a usual one.
class Launcher {
public:
    Launcher() {
        int both[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
        client_fd = both[0];
        fd_ = both[1];
        answers["init"] = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
        answers["get_maxes"] = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=128";
        answers["get_appnum"] = "cmd=appnum appnum=3";
        answers["get_universe_size"] = "cmd=universe_size size=8";
        answers["get_my_kvsname"] = "cmd=my_kvsname kvsname=kvs_1";
        answers["barrier_in"] = "cmd=barrier_out";
        answers["finalize"] = "cmd=finalize_ack";
        values["PMI_process_mapping"] = "(vector,(0,2,2))";
    }
    ~Launcher() { finish(); }

    // Returns when the client has left.
    void finish() {
        if (thread_.joinable()) thread_.join();
    }

    void start() {
        thread_ = std::thread([this] { serve(); });
    }
    std::unique_ptr<Runtime> join_as(int rank, int size) { return join_pmi1(client_fd, rank, size, &error); }

    std::map<std::string, std::string> answers;  // by question; empty: hang up
    std::map<std::string, std::string> values;
    bool in_pieces = false;
    std::string aborted;
    std::string told;
    std::string spawn_answer = "cmd=spawn_result rc=0";
    std::string error;
    int client_fd;

private:
    void serve() {
        LineChannel channel(fd_);
        int total = 0, missing = 0;
        while (const auto line = channel.receive()) {
            const std::string verb(field_of(*line, "cmd").value_or(""));
            if (verb.empty()) {  // of a command in several lines
                told += *line + "\n";
                if (const auto number = number_of(*line, "spawnssofar")) missing = total - *number;
                if (const auto number = number_of(*line, "totspawns")) total = *number;
                if (*line == "endcmd" && missing == 0) reply(spawn_answer + "\n");
                continue;
            }
            if (verb == "publish_name" || verb == "lookup_name") told = *line;
            if (verb == "abort") aborted = field_of(*line, "exitcode").value_or("");
            const std::string answer = answers.contains(verb) ? answers[verb] : store(verb, *line);
            if (answer.empty()) return;
            reply(answer + "\n");
        }
    }

    std::string store(const std::string& verb, const std::string& line) {
        const std::string key(field_of(line, "key").value_or(""));
        if (field_of(line, "kvsname") != "kvs_1") return "";
        if (verb == "put") {
            values[key] = field_of(line, "value").value_or("");
            EXPECT_LE(values[key].size(), 127u);
            EXPECT_LE(key.size(), 63u);
            return "cmd=put_result rc=0 msg=success";
        }
        if (verb != "get") return "";
        if (!values.contains(key)) return "cmd=get_result rc=-1 msg=key_not_found value=unknown";
        return "cmd=get_result rc=0 msg=success value=" + values[key];
    }

    void reply(const std::string& text) {
        const size_t step = in_pieces ? 3 : text.size();
        for (size_t i = 0; i < text.size(); i += step)
            ::send(fd_, text.data() + i, std::min(step, text.size() - i), MSG_NOSIGNAL);
    }

    int fd_;
    std::thread thread_;
};

TEST(Pmi1, learns_its_place_and_exchanges_cards) {
    for (const bool in_pieces : {false, true}) {
        Launcher launcher;
        launcher.in_pieces = in_pieces;
        launcher.start();
        auto job = launcher.join_as(1, 4);
        ASSERT_NE(job, nullptr) << launcher.error;
        EXPECT_EQ(job->rank(), 1);
        EXPECT_EQ(job->size(), 4);
        EXPECT_EQ(job->universe_size(), 8);
        EXPECT_EQ(job->appnum(), 3);
        EXPECT_EQ(job->job(), "kvs_1");
        EXPECT_THAT(job->nodes(), testing::ElementsAre(0, 0, 1, 1));

        std::string card(600, 0);
        for (size_t i = 0; i < card.size(); i++) card[i] = static_cast<char>(i * 7);
        EXPECT_TRUE(job->put("card", card)) << job->error();
        EXPECT_TRUE(job->fence());
        EXPECT_EQ(job->get(1, "card"), card);
        EXPECT_EQ(job->get(2, "card"), std::nullopt);
        EXPECT_THAT(job->error(), HasSubstr("refused"));
        EXPECT_TRUE(job->finalize());
        job.reset();
    }
}

TEST(Pmi1, does_without_what_a_launcher_need_not_know) {
    Launcher launcher;
    launcher.values.clear();
    launcher.answers["get_universe_size"] = "cmd=universe_size size=-1";
    launcher.answers["get_appnum"] = "cmd=appnum appnum=-1";
    launcher.start();
    auto job = launcher.join_as(0, 3);
    ASSERT_NE(job, nullptr) << launcher.error;
    EXPECT_EQ(job->universe_size(), std::nullopt);
    EXPECT_EQ(job->appnum(), std::nullopt);
    EXPECT_THAT(job->nodes(), testing::ElementsAre(0, 1, 2));
}

TEST(Pmi1, says_why_it_does_not_agree_with_a_launcher) {
    const struct {
        const char* question;
        const char* answer;
        const char* reason;
    } cases[] = {
        {"init", "cmd=response_to_init pmi_version=2 rc=-1", "refused"},
        {"init", "cmd=maxes", "answered"},
        {"init", "", "ended the connection"},
        {"init", "HTTP/1.1 400 Bad Request", "answered"},
        {"get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64", "values of 0 bytes"},
        {"get_maxes", "cmd=maxes vallen_max=-5", "values of -5 bytes"},
        {"get_maxes", "cmd=maxes vallen_max=8", "values of 8 bytes"},
        {"get_my_kvsname", "cmd=my_kvsname kvsname=", "names no key space"},
    };
    for (const auto& one : cases) {
        Launcher launcher;
        launcher.answers[one.question] = one.answer;
        launcher.start();
        EXPECT_EQ(launcher.join_as(0, 2), nullptr);
        EXPECT_THAT(launcher.error, HasSubstr(one.reason));
    }
}

TEST(Pmi1, refuses_a_place_that_cannot_be) {
    for (const auto& [rank, size] : {std::pair{0, 0}, {-1, 2}, {2, 2}, {0, 1 << 30}}) {
        std::string error;
        EXPECT_EQ(join_pmi1(5, rank, size, &error), nullptr);
        EXPECT_FALSE(error.empty());
    }
}

TEST(Pmi1, sees_damaged_cards_and_a_launcher_that_dies_in_the_fence) {
    Launcher launcher;
    launcher.values["card-1-0"] = "1.4z";
    launcher.values["card-2-0"] = "2.41";
    launcher.answers["barrier_in"] = "";
    launcher.start();
    auto job = launcher.join_as(0, 3);
    ASSERT_NE(job, nullptr) << launcher.error;
    EXPECT_EQ(job->get(1, "card"), std::nullopt);
    EXPECT_THAT(job->error(), HasSubstr("damaged"));
    EXPECT_EQ(job->get(2, "card"), std::nullopt);
    EXPECT_FALSE(job->fence());
    EXPECT_FALSE(job->finalize());
}

TEST(Pmi1, tells_the_launcher_before_it_aborts) {
    Launcher launcher;
    launcher.start();
    const pid_t child = ::fork();
    if (child == 0) {
        auto job = launcher.join_as(0, 2);
        if (job == nullptr) ::_exit(1);
        job->abort(7, "because");
    }
    ::close(launcher.client_fd);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 7);
    launcher.finish();
    EXPECT_EQ(launcher.aborted, "7");
}

TEST(Alone, is_rank_0_of_1) {
    auto job = make_alone();
    EXPECT_EQ(job->rank(), 0);
    EXPECT_EQ(job->size(), 1);
    EXPECT_TRUE(job->put("card", std::string("\0x", 2)));
    EXPECT_TRUE(job->fence());
    EXPECT_EQ(job->get(0, "card"), std::string("\0x", 2));
    EXPECT_EQ(job->get(0, "other"), std::nullopt);
    EXPECT_EQ(job->get(1, "card"), std::nullopt);
    EXPECT_TRUE(job->finalize());
}

TEST(Pmi1, names_are_done_refused_or_not_kept) {
    using Answer = Runtime::Answer;
    Launcher launcher;
    launcher.answers["publish_name"] = "cmd=publish_result info=ok rc=0 msg=success";
    launcher.answers["unpublish_name"] = "cmd=unpublish_result info=ok rc=1 msg=service_not_found";
    launcher.answers["lookup_name"] = "cmd=lookup_result port=viaduct-0123 info=ok rc=0 msg=success";
    launcher.start();
    auto job = launcher.join_as(0, 1);
    ASSERT_NE(job, nullptr) << launcher.error;
    EXPECT_EQ(job->publish("two words=1%", "viaduct-0123"), Answer::done);
    EXPECT_EQ(launcher.told, "cmd=publish_name service=two%20words%3d1%25 port=viaduct-0123");
    EXPECT_EQ(job->unpublish("a"), Answer::refused);
    std::string port;
    EXPECT_EQ(job->lookup("a", &port), Answer::done);
    EXPECT_EQ(port, "viaduct-0123");
    launcher.answers["lookup_name"] = "cmd=lookup_result rc=1 msg=service_not_found";
    EXPECT_EQ(job->lookup("a", &port), Answer::refused);
    launcher.answers["lookup_name"] = "cmd=lookup_result rc=0";
    EXPECT_EQ(job->lookup("a", &port), Answer::refused);
    launcher.answers["lookup_name"] = "cmd=unknown";
    EXPECT_EQ(job->lookup("a", &port), Answer::none);
    job.reset();
}

TEST(Pmi1, commands_to_start_go_in_lines_and_hold_no_line_of_their_own) {
    Launcher launcher;
    launcher.start();
    auto job = launcher.join_as(0, 1);
    ASSERT_NE(job, nullptr) << launcher.error;
    const Command first{"./a", {"x y", "k=v"}, 2, {{"wdir", "/"}}};
    const Command second{"b", {}, 1, {}};
    EXPECT_TRUE(job->spawn({first, second}, "viaduct-0123"));
    EXPECT_EQ(launcher.told,
              "mcmd=spawn\nnprocs=2\nexecname=./a\ntotspawns=2\nspawnssofar=1\narg1=x y\narg2=k=v\nargcnt=2\n"
              "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=viaduct-0123\n"
              "info_num=1\ninfo_key_0=wdir\ninfo_val_0=/\nendcmd\n"
              "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nargcnt=0\n"
              "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=viaduct-0123\ninfo_num=0\nendcmd\n");
    launcher.told.clear();
    EXPECT_FALSE(job->spawn({{"a\ncmd=abort", {}, 1, {}}}, "p"));
    EXPECT_FALSE(job->spawn({{"a", {"x\nendcmd"}, 1, {}}}, "p"));
    EXPECT_FALSE(job->spawn({{"a", {}, 1, {{"wdir", "/\n"}}}}, "p"));
    EXPECT_EQ(launcher.told, "");
    job.reset();
}

}  // namespace
}  // namespace viaduct::rte
