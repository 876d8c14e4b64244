# SPDX-License-Identifier: BSD-2-Clause
"""Mutants of the agent (kagent)."""

from mutant import Mutant

AGENT = "kagent/"

MUTANTS = [
    Mutant(
        "confirmed-by-another", ("C7",), "any process confirms a connection",
        AGENT + "connection_table.cpp",
        "    if (it->second.end.party.session != session) return 0;\n", "    if (session == UINT64_MAX) return 0;\n",
        ("unit ConnectionTableTest.OnlyTheRequesterCanConfirm",),
    ),
    Mutant(
        "told-before-it-is-out", (), "an end counts as connected while the other one's message is still in the agent",
        AGENT + "agent_connect.cpp",
        "        if (!gone && !outbox_.all_out(t.other)) return false;\n", "",
        ("unit AgentConnectTest.APeerIsToldOnceTheOtherOnesJoinedIsOut", "unit AgentConnectTest.ARequesterIsToldOnceTheAcceptorsJoinedIsOut"),
    ),
    Mutant(
        "numbers-from-one", (), "each agent gives its connections the same numbers",
        AGENT + "agent.cpp",
        "*this, random_id())", "*this, random_id() >> 63)",
        ("unit AgentConnectTest.NumbersMeanNothingToAnotherAgent",),
    ),
    Mutant(
        "name-through-any-context", (), "names are looked up through the context of another",
        AGENT + "agent_names.cpp",
        "    NameLookup body;\n    const Context* c = mail.get(&body) ? registry_.find(body.context_id, s.id) : nullptr;",
        "    NameLookup body;\n    const Context* c = mail.get(&body) ? registry_.find(body.context_id) : nullptr;",
        ("unit AgentRulesTest.NoSessionLooksUpNamesThroughAnothersContext",),
    ),
    Mutant(
        "address-through-any-context", (), "so are addresses",
        AGENT + "agent_names.cpp",
        "!mail.get(&body) || registry_.find(body.context_id, s.id) == nullptr", "!mail.get(&body) || registry_.find(body.context_id) == nullptr",
        ("unit AgentRulesTest.NoSessionLooksUpNamesThroughAnothersContext",),
    ),
    Mutant(
        "context-closed-by-any", (), "any process closes a context",
        AGENT + "agent_nics.cpp",
        "    if (!mail.get(&body) || registry_.find(body.context_id, s.id) == nullptr) {\n        refuse(s,"
        " mail.header.ticket, Status::invalid, \"no such context in this session\");",
        "    if (!mail.get(&body) || registry_.find(body.context_id) == nullptr) {\n        refuse(s,"
        " mail.header.ticket, Status::invalid, \"no such context in this session\");",
        ("unit AgentNicTest.NoSessionCanUseAnothersContext",),
    ),
    Mutant(
        "context-claimed-by-another-user", (), "a process of another user claims a context",
        AGENT + "agent_nics.cpp",
        "same_user(owner->second, s) &&\n                          owner->second.credentials.pid == s.credentials.pid;",
        "owner->second.credentials.pid == s.credentials.pid;",
        ("unit AgentRulesTest.AContextIsClaimedByItsOwnProcessThatSaysSoAndWithinTheLimits",),
    ),
    Mutant(
        "context-claimed-by-another-process", (), "another process claims a context",
        AGENT + "agent_nics.cpp",
        "same_user(owner->second, s) &&\n                          owner->second.credentials.pid == s.credentials.pid;",
        "same_user(owner->second, s);",
        ("unit AgentNicTest.ContextIdIsTakenOnceButTheSameProcessMayReattach",),
    ),
    Mutant(
        "context-claimed-unasked", (), "an open takes a context away",
        AGENT + "agent_nics.cpp",
        "body.reattach == 0 || !same", "!same",
        ("unit AgentRulesTest.AContextIsClaimedByItsOwnProcessThatSaysSoAndWithinTheLimits",),
    ),
    Mutant(
        "claim-beyond-limit", (), "a process that claims a context holds what it says",
        AGENT + "registry.cpp",
        "        if (context.held[kind] > limits_.limit(quota_of(kind))) return Status::out_of_resources;\n", "        (void)kind;\n",
        ("unit AgentRulesTest.AContextIsClaimedByItsOwnProcessThatSaysSoAndWithinTheLimits",),
    ),
    Mutant(
        "reattached-to-another-nic", (), "a context that is reattached does not keep the NIC that it has open",
        AGENT + "agent_nics.cpp",
        "    if (old != nullptr) return old->nic;\n", "",
        ("unit AgentNicsChangeTest.AContextThatIsReattachedKeepsItsNic",),
    ),
    Mutant(
        "reattached-by-name", (), "a context of an earlier agent gets the NIC of its name, not of its address",
        AGENT + "agent_nics.cpp",
        "body.reattach != 0 ? nic_to_reattach(old, body, &why) : nic_to_open(body, &why)", "nic_to_open(body, &why)",
        ("unit AgentNicsChangeTest.AContextOfAnEarlierAgentGetsTheNicOfItsAddress",),
    ),
    Mutant(
        "vanished-and-listed", (), "a NIC that has vanished is listed while a program has it open",
        AGENT + "nic_listing.cpp",
        "        it->second.present = false;\n", "        (void)it;\n",
        ("unit AgentNicsChangeTest.ProgramsThatHaveANicOpenKeepItWhenItHasVanished",),
    ),
    Mutant(
        "vanished-by-a-failure", (), "an answer for want of descriptors takes NICs away",
        AGENT + "nic_listing.cpp",
        "    if (answer->complete) {\n", "    if (answer != nullptr) {\n",
        ("unit NicListingTest.AnAnswerWithoutAllNicsTakesNoneAway",),
    ),
    Mutant(
        "asked-once", (), "a change while a provider answers is missed",
        AGENT + "nic_inquiries.cpp",
        "std::exchange(inquiry.again, false)", "false",
        ("unit NicInquiriesTest.AProviderIsAskedOnceMoreWhenSomethingChangesWhileItAnswers",),
    ),
    Mutant(
        "unrest-without-end", (), "reports that do not end put an inquiry off for ever",
        AGENT + "inquiry_times.hpp",
        "std::min(now + kQuiet, unrest_ends_)", "std::max(now + kQuiet, unrest_ends_ - kLongestUnrest)",
        ("unit InquiryTimesTest.ReportsThatDoNotEndPutTheInquiryOffForABoundedTime",),
    ),
    Mutant(
        "context-without-id", (), "a context may have no id",
        AGENT + "agent_nics.cpp",
        "!mail.get(&body) || body.context_id == 0 || ", "!mail.get(&body) || ",
        ("unit AgentRulesTest.AContextHasAnId",),
    ),
    Mutant(
        "more-given-back-than-held", (), "a lease may be given back twice",
        AGENT + "registry.cpp",
        "    if (back > held) return Status::invalid;\n", "",
        ("unit AgentLimitTest.LeasesAreAllOrNothingAndComeBack",),
    ),
    Mutant(
        "hello-by-any-name", (), "any first message that is long enough is a hello",
        AGENT + "agent.cpp",
        "    if (mail.type() != Type::kHello || !mail.get(&hello)) {", "    if (!mail.get(&hello)) {",
        ("unit AgentRulesTest.AHelloByAnotherNameIsNone",),
    ),
    Mutant(
        "sessions-unlimited", (), "a user may have any number of sessions",
        AGENT + "agent.cpp",
        "    if (!limits_.take(s.credentials.uid, Quota::sessions, 1)) {", "    if (!limits_.take(s.credentials.uid, Quota::sessions, 1) && s.id == 0) {",
        ("unit AgentLimitTest.LimitsAreEachUsersOwn",),
    ),
    Mutant(
        "dropped-heard", (), "a dropped client may still say hello",
        AGENT + "agent.cpp",
        "    if (!it->second.dropped) check_and_dispatch(", "    check_and_dispatch(",
        ("unit AgentRulesTest.ADroppedClientIsNeitherReadNorAnswered",),
    ),
    Mutant(
        "dropped-told", (), "a dropped client is still told",
        AGENT + "agent.cpp",
        "    if (s.dropped) return;\n    mail.header", "    mail.header",
        ("unit AgentRulesTest.ADroppedClientIsNeitherReadNorAnswered",),
    ),
    Mutant(
        "lost-files-unnoticed", (), "files that were lost on the way are not missed",
        AGENT + "agent.cpp",
        "    if (mail.descriptors_lost) {", "    if (mail.descriptors_lost && s.dropped) {",
        ("unit AgentRulesTest.FilesThatWereLostOnTheWayAreSaid",),
    ),
    Mutant(
        "ended-by-a-user-without-number", (), "a user without a number ends the agent",
        AGENT + "agent.cpp",
        "return c.known && (c.uid == 0 || c.uid == ::geteuid());", "return c.uid == 0 || c.uid == ::geteuid();",
        ("unit AgentRulesTest.AUserWithoutANumberCannotEndTheAgentThatHasTheSame",),
    ),
    Mutant(
        "full-agent-stays", (), "an agent of inherited limits does not report them to a client without room",
        AGENT + "agent.cpp",
        "s.refused ? settings_.flaws : 0", "0",
        ("unit AgentQuotaTest.AProcessWithoutRoomMayHaveAnAgentOfInheritedLimitsReplaced",),
    ),
    Mutant(
        "full-agent-is-not-asked", (), "a client that is refused does not ask the agent to end",
        "core/agent/link_connect.cpp",
        "if (status == Status::out_of_resources && replace_agent(", "if (status == Status::ok && replace_agent(",
        ("unit AgentLinkTest.FullAgentsOfWorseLimitsAreAskedToEndUntilOneServes",),
    ),
    Mutant(
        "without-room-out", (), "a program without room is turned away by a daemon of inherited limits",
        "core/daemon/admission.cpp",
        "return p.refusal != Refusal::ended && rules_.flaws != 0 && p.known && may_replace(p.user);", "return false;",
        ("unit AdmissionTest.AUserWithoutRoomEntersADaemonThatItMayHaveReplaced",
         "unit FullDaemonTest.AProgramThatMayHaveTheDaemonReplacedEntersWithoutRoom"),
    ),
    Mutant(
        "reserve-lost", (), "the descriptor of a program that has left is not kept for the next one",
        "core/daemon/admission.cpp",
        "    acceptor_.keep_reserve();\n", "",
        ("unit FullDaemonTest.TheDescriptorOfAProgramThatLeavesIsKeptForTheNextOne",),
    ),
    Mutant(
        "worse-limits-start-first", (), "a program of worse limits starts the next agent at once",
        "core/agent/find_agent.hpp",
        "return !others_are_first() && (", "return (",
        ("unit AgentSearchTest.AProgramOfWorseLimitsStartsAnAgentLater",),
    ),
    Mutant(
        "capable-in-any-namespace", (), "a capability of a user namespace counts as permission to raise limits",
        "core/process/host_capability.cpp",
        " || space.st_ino != kFirstUserNamespace)", ")",
        ("unit CouldDoBetter.IsWhatTheKernelAllowsInAUserNamespace",),
    ),
    Mutant(
        "udpd-stays", (), "viaduct-udpd of inherited limits does not end for a program",
        "providers/udp/daemon/server.cpp",
        "    if (options_.flaws == 0 || !daemon::may_replace(s.user)) return;", "    if (options_.flaws < UINT32_MAX) return;",
        ("unit ReplacedDaemonTest.ItEndsForAProgramThoughAnotherOneIsThere",),
    ),
    Mutant(
        "users-meet", (), "processes of two users meet",
        AGENT + "agent_connect.cpp",
        "(settings_.cross_user ? 0 : user << kUserShift)", "0 * (user << kUserShift)",
        ("unit AgentConnectTest.UsersAreApartUnlessTheConfigurationSaysOtherwise",),
    ),
    Mutant(
        "providers-meet", (), "NICs of two providers meet",
        AGENT + "agent_connect.cpp",
        "e.domain = provider | ", "e.domain = 0 * provider | ",
        ("unit AgentRulesTest.NicsOfTwoProvidersNeverMeet",),
    ),
    Mutant(
        "private-files-shown", (), "another user gets the files that are for the own user only",
        AGENT + "agent_connect.cpp",
        "(j.same_user != 0 ? 0 :", "(true ? 0 :",
        ("unit AgentConnectTest.PrivateDescriptorsStayWithTheirUser",),
    ),
    Mutant(
        "ticket-twice", (), "a ticket may have two open requests",
        AGENT + "agent_connect.cpp",
        "    if (table_.open(s.id, ticket)) {", "    if (table_.open(s.id, ticket) && s.dropped) {",
        ("unit AgentLimitTest.OutstandingRequestsAreCountedExactly",),
    ),
    Mutant(
        "failed-connection-charged", (), "a connection that could not be made stays charged",
        AGENT + "agent_connect.cpp",
        "    } else {\n        limits_.give(a->user, Quota::descriptors, 1);\n    }", "    }",
        ("unit AgentRulesTest.AConnectionThatCannotBeMadeCostsNothing",),
    ),
    Mutant(
        "names-unlimited", (), "a session gives itself any number of names",
        AGENT + "agent_names.cpp",
        "s.names.size() >= kMaxNames", "s.names.size() >= kMaxNames * 1000",
        ("unit AgentRulesTest.ASessionGivesItselfSoManyNames",),
    ),
    Mutant(
        "accepted-by-another-session", (), "another session accepts",
        AGENT + "connection_table.cpp",
        "it->second.owner.session == party.session && it->second.owner.context == party.context;", "it->second.owner.context == party.context;",
        ("unit ConnectionTableTest.OthersCannotAcceptOrRejectAnIncoming",),
    ),
    Mutant(
        "rejected-by-another-context", (), "another context rejects",
        AGENT + "connection_table.cpp",
        "e.owner.session != party.session || e.owner.context != party.context", "e.owner.session != party.session",
        ("unit ConnectionTableTest.OthersCannotAcceptOrRejectAnIncoming",),
    ),
    Mutant(
        "taken-back-by-another-context", (), "another context of the requester takes an accepted connection back",
        AGENT + "connection_table.cpp",
        "e.end.party.session == party.session && e.end.party.context == party.context)", "e.end.party.session == party.session)",
        ("unit ConnectionTableTest.RequesterThatCannotTakeUpTheConnectionTellsTheAcceptorAtOnce",),
    ),
    Mutant(
        "incomings-counted-when-held-again", (), "a request that is held again still counts as incoming",
        AGENT + "connection_table.cpp",
        "    if (const auto c = incoming_count_.find(e.owner.context);\n        c != incoming_count_.end() &&"
        " --c->second == 0) {\n        incoming_count_.erase(c);\n    }\n    e.state = State::held;",
        "    e.state = State::held;",
        ("unit ConnectionTableTest.IncomingsAreCountedWhileTheyAreOpen",),
    ),
    Mutant(
        "incomings-counted-when-accepted", (), "so does one that was accepted",
        AGENT + "connection_table.cpp",
        "    if (const auto c = incoming_count_.find(e.owner.context);\n        c != incoming_count_.end() &&"
        " --c->second == 0) {\n        incoming_count_.erase(c);\n    }\n    unindex",
        "    unindex",
        ("unit ConnectionTableTest.IncomingsAreCountedWhileTheyAreOpen",),
    ),
    Mutant(
        "held-again-last", (), "a request that is held again waits behind those that came later",
        AGENT + "connection_table.cpp",
        "held_[e.key].push_front(request->first);", "held_[e.key].push_back(request->first);",
        ("unit ConnectionTableTest.RequestThatGoesBackToBeingHeldIsBeforeThoseThatCameLater",),
    ),
    Mutant(
        "accept-cancelled-twice", (), "an accept may be cancelled twice",
        AGENT + "connection_endings.cpp",
        "            if (e.canceller.ticket != 0) return Cancelled::too_late;\n", "",
        ("unit ConnectionTableTest.CancelOfAnAcceptIsAnsweredAfterTheAccept",),
    ),
    Mutant(
        "peer-ends-with-its-grace", (), "one of two equal requests ends when the other has found its peer",
        AGENT + "connection_endings.cpp",
        "            if (e.deadline > now) {", "            if (e.deadline > now && now < 0) {",
        ("unit ConnectionTableTest.OneOfTwoEqualRequestsWaitsOnWhenTheOtherHasFoundItsPeer",),
    ),
    Mutant(
        "share-of-others-ignored", (), "one user may take the descriptors of all",
        AGENT + "limits.cpp",
        "return q == Quota::descriptors ? std::min(own, fair::left(capacity_, descriptors_, have)) : own;", "return own;",
        ("unit AgentQuotaTest.FilesOfAllUsersAreSharedByThem",),
    ),
    Mutant(
        "returned-descriptors-charged-to-all", (), "descriptors that were given back are not there for others",
        AGENT + "limits.cpp",
        "    if (q == Quota::descriptors) descriptors_ -= back;\n", "",
        ("unit AgentRulesTest.WhatAUserGivesBackIsThereForTheOthers",),
    ),
    Mutant(
        "more-returned-than-had", (), "a user that gives back more than it has gains by it",
        AGENT + "limits.cpp",
        "const uint64_t back = std::min(have, amount);", "const uint64_t back = amount;",
        ("unit AgentRulesTest.NoUserGivesBackMoreThanItHas",),
    ),
]
