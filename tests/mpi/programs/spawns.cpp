// SPDX-License-Identifier: BSD-2-Clause
// Processes that start others, and names of ports. Arguments: what to do. A started process is told what to do by its
// arguments, too.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "tests/eventually.hpp"
#include "tests/open_files.hpp"

namespace {

// The sum of all ranks of the other side.
void expect_sum(MPI_Comm inter, int others) {
    const int own = rank_in(inter);
    int all = -1;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, inter);
    EXPECT(all == others * (others - 1) / 2);
}

// A started process: tells its parents what it was given.
int child(int argc, char** argv) {
    MPI_Comm parents;
    MPI_Comm_get_parent(&parents);
    EXPECT(parents != MPI_COMM_NULL);
    if (parents == MPI_COMM_NULL) return 1;
    int others = 0, size = 0;
    MPI_Comm_remote_size(parents, &others);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int* number = nullptr;
    int known = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &known);
    char text[256], here[128] = "";
    EXPECT(::getcwd(here, sizeof here) != nullptr);
    std::snprintf(text, sizeof text, "%d of %d, command %d, %s|%s in %s", rank_in(MPI_COMM_WORLD), size,
                  known != 0 ? *number : -1, argc > 2 ? argv[2] : "", argc > 3 ? argv[3] : "", here);
    MPI_Send(text, int(std::strlen(text)) + 1, MPI_CHAR, 0, 7, parents);
    expect_sum(parents, others);
    MPI_Comm_disconnect(&parents);
    MPI_Comm_get_parent(&parents);
    EXPECT(parents == MPI_COMM_NULL);
    return wrong;
}

std::vector<std::string> texts_of(MPI_Comm inter, int others) {
    std::vector<std::string> all;
    for (int i = 0; i < others && rank_in(MPI_COMM_WORLD) == 0; i++) {
        char text[256];
        MPI_Recv(text, sizeof text, MPI_CHAR, i, 7, inter, MPI_STATUS_IGNORE);
        all.emplace_back(text);
    }
    return all;
}

void start_some(char* program, int others, int rounds) {
    MPI_Comm parents;
    MPI_Comm_get_parent(&parents);
    EXPECT(parents == MPI_COMM_NULL);
    char kind[] = "child", first[] = "two words", second[] = "a=b";
    char* arguments[] = {kind, first, second, nullptr};
    viaduct::tests::OpenFiles open_before;
    for (int round = 0; round < rounds; round++) {
        MPI_Comm inter;
        std::vector<int> codes(size_t(others), -1);
        EXPECT(MPI_Comm_spawn(program, arguments, others, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes.data()) ==
               MPI_SUCCESS);
        for (const int code : codes) EXPECT(code == MPI_SUCCESS);
        int size = 0;
        MPI_Comm_remote_size(inter, &size);
        EXPECT(size == others);
        const auto texts = texts_of(inter, others);
        for (size_t i = 0; i < texts.size(); i++) {
            const std::string begin =
                std::to_string(i) + " of " + std::to_string(others) + ", command 0, two words|a=b in ";
            EXPECT(texts[i].starts_with(begin));
        }
        expect_sum(inter, others);
        MPI_Comm_disconnect(&inter);
        if (round == 0) open_before = viaduct::tests::open_files();
        EXPECT(viaduct::tests::open_files().size() == open_before.size());  // nothing is left
    }
}

void start_several_programs(char* program) {
    char kind[] = "child", first[] = "one", second[] = "two";
    char* of_first[] = {kind, first, nullptr};
    char* of_second[] = {kind, second, nullptr};
    char* programs[] = {program, program};
    char** arguments[] = {of_first, of_second};
    const int processes[] = {1, 2};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Info_create(&infos[0]);
    MPI_Info_set(infos[0], "wdir", "/");
    MPI_Info_set(infos[0], "soft", "1");
    int codes[3] = {-1, -1, -1};
    MPI_Comm inter;
    EXPECT(MPI_Comm_spawn_multiple(2, programs, arguments, processes, infos, 0, MPI_COMM_WORLD, &inter, codes) ==
           MPI_SUCCESS);
    EXPECT(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == MPI_SUCCESS);
    const auto texts = texts_of(inter, 3);
    if (!texts.empty()) {
        EXPECT(texts[0] == "0 of 3, command 0, one| in /");
        EXPECT(texts[1].starts_with("1 of 3, command 1, two| in "));
        EXPECT(texts[2].starts_with("2 of 3, command 1, two| in "));
    }
    expect_sum(inter, 3);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&infos[0]);
}

void start_nothing() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm inter;
    int codes[2] = {-1, -1};
    EXPECT(MPI_Comm_spawn("./no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes) ==
           MPI_ERR_SPAWN);
    EXPECT(inter == MPI_COMM_NULL);
    if (rank_in(MPI_COMM_WORLD) == 0) EXPECT(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
    EXPECT(MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, -1, MPI_COMM_WORLD, &inter, codes) == MPI_ERR_ROOT);
}

// Without a launcher, or with one that cannot: an error, and the process goes on.
void alone(char* program) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm inter;
    int code = -1;
    EXPECT(MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, &code) == MPI_ERR_SPAWN);
    EXPECT(code == MPI_ERR_SPAWN);
}

void expect_no_name(const char* service) {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char port[MPI_MAX_PORT_NAME];
    EXPECT(MPI_Lookup_name(service, MPI_INFO_NULL, port) == MPI_ERR_NAME);
    EXPECT(MPI_Unpublish_name(service, MPI_INFO_NULL, "port") == MPI_ERR_SERVICE);
}

void publish_and_take_back(const char* service) {
    expect_no_name(service);
    char port[MPI_MAX_PORT_NAME], found[MPI_MAX_PORT_NAME];
    MPI_Open_port(MPI_INFO_NULL, port);
    EXPECT(MPI_Publish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS);
    EXPECT(MPI_Publish_name(service, MPI_INFO_NULL, port) == MPI_ERR_SERVICE);
    EXPECT(MPI_Lookup_name(service, MPI_INFO_NULL, found) == MPI_SUCCESS && std::strcmp(port, found) == 0);
    EXPECT(MPI_Lookup_name("another name", MPI_INFO_NULL, found) == MPI_ERR_NAME);
    EXPECT(MPI_Unpublish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS);
    expect_no_name(service);
    MPI_Close_port(port);
}

// For a caller.
void publish(const char* service) {
    publish_and_take_back(service);
    char port[MPI_MAX_PORT_NAME];
    MPI_Open_port(MPI_INFO_NULL, port);
    EXPECT(MPI_Publish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS);
    MPI_Comm inter;
    EXPECT(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter) == MPI_SUCCESS);
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
    // It stays: a name without its publisher is none.
}

void look_up(const char* service) {
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter = MPI_COMM_NULL;
    // The name that was published first, and taken back, may have been seen.
    const auto connects = [&] {
        return MPI_Lookup_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS &&
               MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter) == MPI_SUCCESS;
    };
    const bool connected =
        viaduct::tests::eventually("the service has a port", connects, {.limit = std::chrono::seconds(30)}).holds;
    EXPECT(connected);
    if (!connected) return;
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string part = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    if (part == "child") child(argc, argv);
    else if (part == "some") start_some(argv[0], std::atoi(argv[2]), std::atoi(argv[3]));
    else if (part == "several") start_several_programs(argv[0]);
    else if (part == "nothing") start_nothing();
    else if (part == "alone") alone(argv[0]);
    else if (part == "name") publish_and_take_back("a name");
    else if (part == "publish") publish(argv[2]);
    else if (part == "look-up") look_up(argv[2]);
    else if (part == "no-name") expect_no_name(argv[2]);
    else std::abort();
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
