// SPDX-License-Identifier: BSD-2-Clause
// The interface for tools: what is there, its texts, control variables before and after the job begins, counters
// against messages that this program sends itself, and every wrong argument.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

std::string cvar_text(int index) {
    MPI_T_cvar_handle handle;
    int count = 0;
    EXPECT(MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS);
    std::vector<char> text(size_t(count) + 1, 'x');
    EXPECT(MPI_T_cvar_read(handle, text.data()) == MPI_SUCCESS);
    EXPECT(text[size_t(count)] == 'x' && std::memchr(text.data(), 0, size_t(count)));
    EXPECT(MPI_T_cvar_write(handle, "via") == MPI_T_ERR_CVAR_SET_NEVER);
    EXPECT(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL);
    return text.data();
}

int cvar(const char* name) {
    int index = -1;
    EXPECT(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS);
    return index;
}

int pvar(const char* name, int var_class) {
    int index = -1;
    EXPECT(MPI_T_pvar_get_index(name, var_class, &index) == MPI_SUCCESS);
    return index;
}

// Whether one write to a number succeeds, and what stands there after it.
int write_number(int index, MPI_Count value, MPI_Count* after) {
    MPI_T_cvar_handle handle;
    int count = 0;
    MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count);
    EXPECT(count == 1);
    const int code = MPI_T_cvar_write(handle, &value);
    EXPECT(MPI_T_cvar_read(handle, after) == MPI_SUCCESS);
    MPI_T_cvar_handle_free(&handle);
    return code;
}

void not_initialised() {
    int number = -1;
    MPI_T_pvar_session session;
    EXPECT(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED && number == -1);
    EXPECT(MPI_T_pvar_session_create(&session) == MPI_T_ERR_NOT_INITIALIZED);
    EXPECT(MPI_T_event_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED);
    EXPECT(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
}

void texts() {
    const int index = cvar("CMPI_SHM_RING");
    int length = 5, scope = 0, bind = 0;
    char name[32];
    std::memset(name, 'Z', sizeof name);
    MPI_Datatype type;
    EXPECT(MPI_T_cvar_get_info(index, name, &length, nullptr, &type, nullptr, nullptr, nullptr, &bind, &scope) ==
           MPI_SUCCESS);
    EXPECT(std::string(name) == "CMPI" && name[5] == 'Z' && length == int(sizeof "CMPI_SHM_RING"));
    EXPECT(type == MPI_COUNT && bind == MPI_T_BIND_NO_OBJECT && scope == MPI_T_SCOPE_ALL_EQ);
    length = 0;
    EXPECT(MPI_T_cvar_get_info(index, nullptr, &length, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                               nullptr) == MPI_SUCCESS);
    EXPECT(length == int(sizeof "CMPI_SHM_RING"));
    char text[MPI_MAX_ERROR_STRING];
    int error_class = 0;
    EXPECT(MPI_Error_string(MPI_T_ERR_INVALID_NAME, text, &length) == MPI_SUCCESS && std::strstr(text, "name"));
    EXPECT(MPI_Error_class(MPI_T_ERR_INVALID_NAME, &error_class) == MPI_SUCCESS);
    EXPECT(error_class == MPI_T_ERR_INVALID_NAME);
}

void control_before_the_job() {
    MPI_Count value = 0;
    const int ring = cvar("CMPI_SHM_RING");
    EXPECT(write_number(ring, 8192, &value) == MPI_SUCCESS && value == 8192);
    EXPECT(write_number(ring, 1, &value) == MPI_T_ERR_INVALID && value == 8192);
    const char* given = std::getenv("CMPI_PROTOCOL");
    EXPECT(cvar_text(cvar("CMPI_PROTOCOL")) == (given ? given : ""));
}

void control_in_the_job() {
    MPI_Count value = 0;
    EXPECT(write_number(cvar("CMPI_SHM_RING"), 16384, &value) == MPI_T_ERR_CVAR_SET_NEVER && value == 8192);
}

unsigned long long read(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
    unsigned long long value = ~0ull;
    EXPECT(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS);
    return value;
}

void send_to_self(int messages) {
    for (int i = 0; i < messages; ++i) {
        int out = i, in = -1;
        MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        EXPECT(in == i);
    }
}

void counters() {
    MPI_T_pvar_session session, other;
    MPI_T_pvar_handle first, second, elsewhere;
    int count = 0;
    EXPECT(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    EXPECT(MPI_T_pvar_session_create(&other) == MPI_SUCCESS);
    const int index = pvar("self_eager", MPI_T_PVAR_CLASS_COUNTER);
    EXPECT(MPI_T_pvar_handle_alloc(session, index, nullptr, &first, &count) == MPI_SUCCESS && count == 1);
    EXPECT(MPI_T_pvar_handle_alloc(session, index, nullptr, &second, &count) == MPI_SUCCESS);
    EXPECT(MPI_T_pvar_handle_alloc(other, index, nullptr, &elsewhere, &count) == MPI_SUCCESS);
    send_to_self(3);  // nothing counts yet
    EXPECT(read(session, first) == 0);
    EXPECT(MPI_T_pvar_start(session, first) == MPI_SUCCESS);
    send_to_self(4);
    EXPECT(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);  // the first runs already
    send_to_self(5);
    EXPECT(read(session, first) == 9 && read(session, second) == 5 && read(other, elsewhere) == 0);
    EXPECT(MPI_T_pvar_stop(session, first) == MPI_SUCCESS);
    send_to_self(1);
    EXPECT(read(session, first) == 9 && read(session, second) == 6);
    EXPECT(MPI_T_pvar_start(session, first) == MPI_SUCCESS);
    send_to_self(2);
    EXPECT(read(session, first) == 11);
    unsigned long long value = 0;
    EXPECT(MPI_T_pvar_readreset(session, second, &value) == MPI_SUCCESS && value == 8 && read(session, second) == 0);
    value = 100;
    EXPECT(MPI_T_pvar_write(session, second, &value) == MPI_SUCCESS);
    send_to_self(1);
    EXPECT(read(session, second) == 101);
    EXPECT(MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    EXPECT(read(session, first) == 0 && read(session, second) == 0);

    EXPECT(MPI_T_pvar_read(other, first, &value) == MPI_T_ERR_INVALID_HANDLE);
    MPI_T_pvar_handle freed = second;
    EXPECT(MPI_T_pvar_handle_free(session, &second) == MPI_SUCCESS && second == MPI_T_PVAR_HANDLE_NULL);
    EXPECT(MPI_T_pvar_start(session, freed) == MPI_T_ERR_INVALID_HANDLE);
    EXPECT(MPI_T_pvar_session_free(&session) == MPI_SUCCESS && session == MPI_T_PVAR_SESSION_NULL);
    EXPECT(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES) == MPI_T_ERR_INVALID_SESSION);
    // The other session is left to MPI_T_finalize.
}

void states(int stage, unsigned long long processes) {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int count = 0, value = -1, items = 0;
    MPI_T_pvar_session_create(&session);
    const int index = pvar("job_stage", MPI_T_PVAR_CLASS_STATE);
    MPI_T_enum names = MPI_T_ENUM_NULL;
    int readonly = 0, continuous = 0;
    MPI_T_pvar_get_info(index, nullptr, nullptr, nullptr, nullptr, nullptr, &names, nullptr, nullptr, nullptr,
                        &readonly, &continuous, nullptr);
    EXPECT(readonly && continuous && MPI_T_enum_get_info(names, &items, nullptr, nullptr) == MPI_SUCCESS && items == 4);
    char text[16];
    int length = sizeof text;
    EXPECT(MPI_T_enum_get_item(names, stage, &value, text, &length) == MPI_SUCCESS && value == stage);
    EXPECT(std::string(text) == (stage == 0 ? "before" : "running"));
    EXPECT(MPI_T_enum_get_item(names, 4, &value, text, &length) == MPI_T_ERR_INVALID_INDEX);
    EXPECT(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &items, nullptr, nullptr) == MPI_T_ERR_INVALID_HANDLE);

    MPI_T_pvar_handle_alloc(session, index, nullptr, &handle, &count);
    EXPECT(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS && value == stage);
    EXPECT(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    EXPECT(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE);
    EXPECT(MPI_T_pvar_write(session, handle, &value) == MPI_T_ERR_PVAR_NO_WRITE);
    EXPECT(MPI_T_pvar_readreset(session, handle, &value) == MPI_T_ERR_PVAR_NO_ATOMIC);
    EXPECT(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(session, pvar("job_processes", MPI_T_PVAR_CLASS_SIZE), nullptr, &handle, &count);
    EXPECT(read(session, handle) == processes);
    MPI_T_pvar_session_free(&session);
}

// Every variable is in one category, and the first holds all others.
void categories() {
    int number = 0, cvars = 0, pvars = 0, seen_cvars = 0, seen_pvars = 0, subs = 0, index = -1;
    MPI_T_category_get_num(&number);
    MPI_T_cvar_get_num(&cvars);
    MPI_T_pvar_get_num(&pvars);
    for (int i = 0; i < number; ++i) {
        int c = 0, p = 0, s = 0;
        MPI_T_category_get_info(i, nullptr, nullptr, nullptr, nullptr, &c, &p, &s);
        seen_cvars += c;
        seen_pvars += p;
        subs += s;
        std::vector<int> members(size_t(p) + 1, -1);
        EXPECT(MPI_T_category_get_pvars(i, p, members.data()) == MPI_SUCCESS && members[size_t(p)] == -1);
        EXPECT(p == 0 || (members[0] >= 0 && members[size_t(p) - 1] < pvars));
    }
    EXPECT(cvars > 0 && seen_cvars == cvars && seen_pvars == pvars && subs == number - 1);
    EXPECT(MPI_T_category_get_index("via", &index) == MPI_SUCCESS && index > 0);
    EXPECT(MPI_T_category_get_index("nothing", &index) == MPI_T_ERR_INVALID_NAME);
    EXPECT(MPI_T_category_get_cvars(number, 0, nullptr) == MPI_T_ERR_INVALID_INDEX);
    EXPECT(MPI_T_category_get_num_events(0, &number) == MPI_SUCCESS && number == 0);
    EXPECT(MPI_T_category_changed(&number) == MPI_SUCCESS);
}

void wrong_arguments() {
    int index = 0, number = 0;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    EXPECT(MPI_T_cvar_get_index("CMPI_NOTHING", &index) == MPI_T_ERR_INVALID_NAME);
    EXPECT(MPI_T_pvar_get_index("self_eager", MPI_T_PVAR_CLASS_TIMER, &index) == MPI_T_ERR_INVALID_NAME);
    MPI_T_cvar_get_num(&number);
    EXPECT(MPI_T_cvar_handle_alloc(number, nullptr, &handle, &index) == MPI_T_ERR_INVALID_INDEX);
    EXPECT(MPI_T_cvar_handle_alloc(-1, nullptr, &handle, &index) == MPI_T_ERR_INVALID_INDEX);
    EXPECT(MPI_T_cvar_read(handle, &number) == MPI_T_ERR_INVALID_HANDLE);
    EXPECT(MPI_T_cvar_handle_free(&handle) == MPI_T_ERR_INVALID_HANDLE);
    EXPECT(MPI_T_event_get_num(&number) == MPI_SUCCESS && number == 0);
    EXPECT(MPI_T_source_get_num(&number) == MPI_SUCCESS && number == 0);
    EXPECT(MPI_T_event_get_index("anything", &index) == MPI_T_ERR_INVALID_NAME);
    MPI_Count stamp = 0;
    EXPECT(MPI_T_source_get_timestamp(0, &stamp) == MPI_T_ERR_INVALID_INDEX);
    EXPECT(MPI_T_event_handle_free(nullptr, nullptr, nullptr) == MPI_T_ERR_INVALID_HANDLE);
}

}  // namespace

int main(int argc, char** argv) {
    not_initialised();
    int provided = -1;
    EXPECT(MPI_T_init_thread(99, &provided) == MPI_T_ERR_INVALID);
    EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_MULTIPLE);
    texts();
    control_before_the_job();
    states(0, 0);
    MPI_Init(&argc, &argv);
    EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);  // it counts
    EXPECT(MPI_T_finalize() == MPI_SUCCESS);
    control_in_the_job();
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    states(1, static_cast<unsigned long long>(size));
    counters();
    categories();
    wrong_arguments();
    EXPECT(MPI_T_finalize() == MPI_SUCCESS);
    not_initialised();
    return report();
}
