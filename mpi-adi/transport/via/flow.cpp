// SPDX-License-Identifier: BSD-2-Clause
// What is done between packets: connections with new credit push what waited (spec/adi C54, G8), connections
// that received post their receives anew and tell of them. Done when nothing is coming in, so that it is not
// in the way of an answer.
#include "mpi-adi/transport/via/device.hpp"

namespace viaduct::via {

int work_on_flow_list() {
    int done = 0;
    Lane* list = viadev.flow_head;
    viadev.flow_head = nullptr;
    while (list != nullptr) {
        Lane* c = list;
        list = c->nextflow;
        c->inflow = false;
        viadev.push(c->peer);
        ++done;
    }
    return done;
}

int do_chores() {
    int done = 0;
    Lane* list = viadev.chores_head;
    viadev.chores_head = nullptr;
    while (list != nullptr) {
        Lane* c = list;
        list = c->next_chore;
        c->in_chores = false;
        if (c->peer.lost()) continue;
        if (c->slots.open) tell_slot_news(c);
        post_missing_receives(c);
        const bool answer = c->answer_late && c->credits.missing_reserve() == 0;
        if (answer) c->answer_late = false;
        if (answer || c->credits.want_noop()) send_noop(c);
        push_loan(c);
        if (c->peer.blocked()) viadev.push(c->peer);
        ++done;
    }
    return done;
}

}  // namespace viaduct::via
