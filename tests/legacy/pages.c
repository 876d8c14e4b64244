/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pages.c -- shared memory by page faults, as a software DSM makes it.
 *
 *   via_pages -s          [-d device] [-m rounds] [-r d|r]
 *   via_pages -c hostname [-d device] [-m rounds] [-r d|r]
 *
 * The server is the home of the pages and waits for the farewell only.  The
 * client has the same pages, registered, but without access: the first load
 * from one raises SIGSEGV, and the handler fetches the page by RDMA read.  The
 * first store raises another one, and the handler keeps a twin of the page.  At
 * the end of a round all words that differ from the twin are written home by
 * RDMA, and the page is without access again.
 */
#include "viautil.h"
#include <signal.h>
#include <sys/mman.h>

#define PAGES 16
#define PAGE 4096
#define WORDS (PAGE / (int)sizeof(int))
#define SERVICE 0x50414745

/* the other side may have longer pointers */
struct home {
    VIP_UINT64 address;
    VIP_MEM_HANDLE handle;
    int unused;
};

enum { absent, clean, dirty } mode[PAGES];
int rounds = 10, level = 'd';
char *device = DEFAULT_DEVICE;
VIP_VI_HANDLE vi;
char *shared;                   /* the pages */
char *twins;                    /* as they were fetched; client */
char *control;                  /* a descriptor to send, one to receive, data */
VIP_MEM_HANDLE shared_handle, control_handle;
struct home home;
int loads = 0, stores = 0, diffs = 0;

#define SEND ((VIP_DESCRIPTOR *)control)
#define RECV ((VIP_DESCRIPTOR *)(control + 64))
#define MESSAGE (control + 128)

/* in round r three words of two pages out of three grow by one */
int grows(int page, int word, int round)
{
    int first = (round * 7 + page) % (WORDS - 3);

    return page % 3 != 0 && word >= first && word < first + 3;
}

void check_page(int page, int after)
{
    int *p = (int *)(shared + page * PAGE);
    int word, round, expected;

    for (word = 0; word < WORDS; word++) {
        expected = page * WORDS + word;
        for (round = 0; round < after; round++)
            expected += grows(page, word, round);
        if (p[word] != expected)
            die("a wrong word");
    }
}

void complete(VIP_RETURN (*wait)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR **),
              VIP_DESCRIPTOR *expected)
{
    VIP_DESCRIPTOR *d;

    must(wait(vi, VIP_INFINITE, &d), "Wait");
    if (d != expected)
        die("another descriptor than the one posted");
}

/* between an address of ours and the same place at home */
void move(int operation, char *mine, int length)
{
    VIP_DESCRIPTOR *d = SEND;

    memset(d, 0, sizeof *d);
    d->CS.Control = operation;
    d->CS.SegCount = 2;
    d->CS.Length = length;
    d->DS[0].Remote.Data.AddressBits = home.address + (mine - shared);
    d->DS[0].Remote.Handle = home.handle;
    d->DS[1].Local.Data.Address = mine;
    d->DS[1].Local.Handle = shared_handle;
    d->DS[1].Local.Length = length;
    must(VipPostSend(vi, d, control_handle), "VipPostSend");
    complete(VipSendWait, d);
}

void protect(int page, int how)
{
    if (mprotect(shared + page * PAGE, PAGE, how) != 0)
        die("mprotect");
}

void fault(int number, siginfo_t *info, void *context)
{
    long offset = (char *)info->si_addr - shared;
    long page = offset / PAGE;

    if (offset < 0 || page >= PAGES || mode[page] == dirty)
        die("a segmentation fault of its own");
    protect(page, PROT_READ | PROT_WRITE);
    if (mode[page] == absent) {
        move(VIP_CONTROL_OP_RDMAREAD, shared + page * PAGE, PAGE);
        protect(page, PROT_READ);
        mode[page] = clean;
        loads++;
    } else {
        memcpy(twins + page * PAGE, shared + page * PAGE, PAGE);
        mode[page] = dirty;
        stores++;
    }
}

void write_home(int page)
{
    int *now = (int *)(shared + page * PAGE);
    int *then = (int *)(twins + page * PAGE);
    int first, end;

    for (first = 0; first < WORDS; first = end + 1) {
        for (end = first; end < WORDS && now[end] != then[end]; end++)
            ;
        if (end > first) {
            move(VIP_CONTROL_OP_RDMAWRITE, (char *)&now[first],
                 (end - first) * sizeof(int));
            diffs++;
        }
    }
}

void play(int round)
{
    int page, word;

    for (page = 0; page < PAGES; page++) {
        check_page(page, round);
        for (word = 0; word < WORDS; word++)
            if (grows(page, word, round))
                ((int *)(shared + page * PAGE))[word]++;
    }
    for (page = 0; page < PAGES; page++) {
        if (mode[page] == dirty)
            write_home(page);
        protect(page, PROT_NONE);
        mode[page] = absent;
    }
}

void prepare(void)
{
    open_nic(device, 0, 0);
    control = page_alloc(PAGE);
    control_handle = register_memory(control, PAGE, 0, 0);
    shared = page_alloc(PAGES * PAGE);
    shared_handle = register_memory(shared, PAGES * PAGE, 1, 1);
    vi = new_vi(level_of(level), nicattr.MaxTransferSize, 1, 1, 0, 0);
    fill_descriptor(RECV, 0, MESSAGE, sizeof home, control_handle, 0);
    must(VipPostRecv(vi, RECV, control_handle), "VipPostRecv");
}

void send_message(char *data, int length)
{
    memcpy(MESSAGE, data, length);
    fill_descriptor(SEND, 0, MESSAGE, length, control_handle, 0);
    must(VipPostSend(vi, SEND, control_handle), "VipPostSend");
    complete(VipSendWait, SEND);
}

void server(void)
{
    VIP_VI_ATTRIBUTES va;
    VIP_CONN_HANDLE connection;
    int i;

    prepare();
    for (i = 0; i < PAGES * WORDS; i++)
        ((int *)shared)[i] = i;
    must(VipConnectWait(nic, local_address(SERVICE, level, 0), VIP_INFINITE,
                        new_address(), &va, &connection), "VipConnectWait");
    must(VipConnectAccept(connection, vi), "VipConnectAccept");
    home.address = (unsigned long)shared;
    home.handle = shared_handle;
    send_message((char *)&home, sizeof home);
    complete(VipRecvWait, RECV);        /* the farewell */
    for (i = 0; i < PAGES; i++)
        check_page(i, rounds);
    printf("server: %d pages as they should be after %d rounds\n", PAGES, rounds);
}

void client(char *host)
{
    struct sigaction action;
    int i;

    prepare();
    twins = page_alloc(PAGES * PAGE);
    request_connection(vi, local_address(SERVICE, level, getpid()),
                       remote_address(host, SERVICE, level, 0));
    complete(VipRecvWait, RECV);
    memcpy(&home, MESSAGE, sizeof home);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, 0);
    for (i = 0; i < PAGES; i++)
        protect(i, PROT_NONE);
    for (i = 0; i < rounds; i++)
        play(i);
    send_message("bye", 4);
    printf("client: %d pages fetched, %d twins, %d pieces written home\n", loads,
           stores, diffs);
}

int main(int argc, char **argv)
{
    int c, is_server = 0;
    char *host = 0;

    myname = "pages";
    while ((c = getopt(argc, argv, "sc:d:m:r:")) != -1)
        switch (c) {
        case 's': is_server = 1; break;
        case 'c': host = optarg; break;
        case 'd': device = optarg; break;
        case 'm': rounds = atoi(optarg); break;
        case 'r': level = optarg[0]; break;
        default: die("usage");
        }
    if (is_server)
        server();
    else if (host)
        client(host);
    else
        die("-s or -c hostname");
    return 0;
}
