// SPDX-License-Identifier: BSD-2-Clause
// How new answers of a provider become part of the agent's listing of NICs.
#include "kagent/nic_listing.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fake_provider/fake_control.hpp"

namespace viaduct::kagent {
namespace {

using Names = std::vector<std::string>;

// An offer of a provider that numbers the interfaces that it finds: the number is the place in its list.
OfferedNic found(uint16_t place, uint8_t address, const std::string& interface) {
    OfferedNic offer{fake::nic("udp", place), {"udp:" + interface, "udp:10.0.0." + std::to_string(address)}};
    offer.nic.address = NicAddress{{10, 0, 0, address, 0, 1}};
    std::snprintf(offer.nic.description, sizeof offer.nic.description, "VI over %.20s, 10.0.0.%u", interface.c_str(),
                  unsigned{address});
    return offer;
}

class NicListingTest : public ::testing::Test {
protected:
    NicChanges answer(std::vector<OfferedNic> offered, bool complete = true, size_t provider = 0) {
        NicAnswer a;
        a.complete = complete;
        a.offered = std::move(offered);
        NicChanges changes =
            listing.merge(provider, provider == 0 ? "udp" : "other", &a, [&](size_t id) { return open.contains(id); });
        rejected = std::move(a.rejected);
        return changes;
    }
    Names names() const {
        Names all;
        for (const NicInfo& nic : listing.present()) all.emplace_back(nic.name);
        return all;
    }
    // The last byte of the address of a NIC that is there; 0: there is none of that name.
    unsigned address(const std::string& name) const {
        for (const NicInfo& nic : listing.present())
            if (name == nic.name) return nic.address.bytes[3];
        return 0;
    }
    size_t id(const std::string& name) const {
        for (size_t i = 0; i < listing.present().size(); ++i)
            if (name == listing.present()[i].name) return listing.id_at(i);
        return SIZE_MAX;
    }

    NicListing listing;
    std::set<size_t> open;
    std::vector<RejectedNic> rejected;
};

TEST_F(NicListingTest, ANicThatAppearsIsListedAndTheOthersKeepTheirNumbers) {
    answer({found(0, 2, "eth0")});
    const size_t eth0 = id("udp0");
    const NicChanges changes = answer({found(0, 1, "br0"), found(1, 2, "eth0")});  // the new one comes first
    EXPECT_EQ(changes.appeared, Names{"udp1"});
    EXPECT_TRUE(changes.changed.empty());
    EXPECT_TRUE(changes.vanished.empty());
    EXPECT_EQ(names(), (Names{"udp0", "udp1"}));
    EXPECT_EQ(address("udp0"), 2u);
    EXPECT_EQ(address("udp1"), 1u);
    EXPECT_EQ(id("udp0"), eth0);
    EXPECT_EQ(listing.present()[1].index, 1u);
    EXPECT_STREQ(listing.present()[1].provider, "udp");
}

// The interface of the first port is renamed, and is that of the second port then. Its provider finds the port by the
// address, whatever number the agent gives the NIC.
TEST_F(NicListingTest, AConfiguredPortThatTakesOverTheAddressOfAnotherIsItsNic) {
    OfferedNic port{fake::nic("acenic", 0), {}};
    std::strcpy(port.nic.description, "VI over Ethernet: iface=eth0");
    answer({port});
    const size_t former = id("acenic0");
    open.insert(former);
    OfferedNic other{fake::nic("acenic", 1), {}};
    std::strcpy(other.nic.description, "VI over Ethernet: iface=eth1");
    other.nic.address = port.nic.address;
    EXPECT_EQ(answer({other}).changed, Names{"acenic0"});
    EXPECT_EQ(names(), Names{"acenic0"});
    EXPECT_EQ(id("acenic0"), former);
    EXPECT_STREQ(listing.present()[0].description, "VI over Ethernet: iface=eth1");
    EXPECT_EQ(listing.present()[0].address, port.nic.address);
}

TEST_F(NicListingTest, AnAddressThatChangesBackIsThatOfTheFirstNicAgain) {
    answer({found(0, 1, "eth0")});
    const size_t first = id("udp0");
    open.insert(first);
    answer({found(0, 9, "eth0")});
    const size_t second = id("udp0");
    open.insert(second);
    EXPECT_EQ(answer({found(0, 1, "eth0")}).changed, Names{"udp0"});
    EXPECT_EQ(id("udp0"), first);
    EXPECT_EQ(address("udp0"), 1u);
    EXPECT_EQ(answer({found(0, 9, "eth0")}).changed, Names{"udp0"});
    EXPECT_EQ(id("udp0"), second);
    EXPECT_EQ(listing.all().size(), 2u);
    // The same when no NIC is there in between.
    answer({});
    EXPECT_EQ(answer({found(0, 1, "eth0")}).appeared, Names{"udp0"});
    EXPECT_EQ(id("udp0"), first);
}

TEST_F(NicListingTest, ANicThatGoesTakesNoNumberOfAnotherWithIt) {
    answer({found(0, 1, "eth0"), found(1, 2, "eth1")});
    const NicChanges changes = answer({found(0, 2, "eth1")});
    EXPECT_EQ(changes.vanished, Names{"udp0"});
    EXPECT_EQ(names(), Names{"udp1"});
    EXPECT_EQ(address("udp1"), 2u);
    EXPECT_TRUE(listing.has_vanished("udp0"));
    EXPECT_TRUE(listing.has_vanished("/dev/udp0"));
    EXPECT_TRUE(listing.has_vanished("udp:eth0"));
    EXPECT_FALSE(listing.has_vanished("udp1"));
    EXPECT_FALSE(listing.has_vanished("udp7"));
    EXPECT_EQ(listing.all().size(), 1u) << "no program has it open";
}

TEST_F(NicListingTest, ANumberIsFreeAgainWhenNoProgramHasItsNicOpen) {
    answer({found(0, 1, "eth0"), found(1, 2, "eth1")});
    const size_t vanished = id("udp0");
    open.insert(vanished);
    answer({found(0, 2, "eth1")});
    EXPECT_STREQ(listing.nic(vanished).name, "udp0") << "a program has it open";
    answer({found(0, 3, "eth2"), found(1, 2, "eth1")});
    EXPECT_EQ(names(), (Names{"udp1", "udp2"}));
    EXPECT_EQ(address("udp2"), 3u);
    open.clear();
    answer({found(0, 3, "eth2"), found(1, 4, "eth3"), found(2, 2, "eth1")});
    EXPECT_EQ(names(), (Names{"udp0", "udp1", "udp2"}));
    EXPECT_EQ(address("udp0"), 4u);
    EXPECT_EQ(address("udp1"), 2u);
    EXPECT_EQ(address("udp2"), 3u);
    EXPECT_EQ(listing.all().size(), 3u);
}

TEST_F(NicListingTest, ANicThatComesBackWhileItIsOpenIsTheSameOne) {
    answer({found(0, 1, "eth0"), found(1, 2, "eth1")});
    const size_t eth0 = id("udp0");
    open.insert(eth0);
    answer({found(0, 2, "eth1")});
    EXPECT_EQ(answer({found(0, 1, "eth0"), found(1, 2, "eth1")}).appeared, Names{"udp0"});
    EXPECT_EQ(id("udp0"), eth0);
    EXPECT_EQ(names(), (Names{"udp0", "udp1"}));
    EXPECT_FALSE(listing.has_vanished("udp0"));
}

TEST_F(NicListingTest, ANicThatComesBackWithAnotherAddressKeepsItsNumber) {
    const OfferedNic second{fake::nic("udp", 1), {}};
    OfferedNic first{fake::nic("udp", 0), {}};  // a port that the configuration numbers
    answer({first, second});
    const size_t former = id("udp0");
    open.insert(former);
    answer({second});
    first.nic.address.bytes[0] ^= 4;
    EXPECT_EQ(answer({first, second}).appeared, Names{"udp0"});
    EXPECT_EQ(listing.present()[0].address, first.nic.address);
    EXPECT_NE(id("udp0"), former);
    EXPECT_STREQ(listing.nic(former).name, "udp0");
}

TEST_F(NicListingTest, ANewAddressIsForLaterOpensAndProgramsThatHaveTheNicOpenKeepTheFormer) {
    answer({found(0, 1, "eth0")});
    const size_t former = id("udp0");
    open.insert(former);
    const NicChanges changes = answer({found(0, 9, "eth0")});
    EXPECT_EQ(changes.changed, Names{"udp0"});
    EXPECT_TRUE(changes.appeared.empty());
    EXPECT_TRUE(changes.vanished.empty());
    EXPECT_EQ(names(), Names{"udp0"});
    EXPECT_EQ(address("udp0"), 9u);
    EXPECT_NE(id("udp0"), former);
    EXPECT_EQ(listing.nic(former).address.bytes[3], 1u);
    EXPECT_TRUE(listing.has_vanished("udp:10.0.0.1"));
    EXPECT_FALSE(listing.has_vanished("udp:eth0"));
}

TEST_F(NicListingTest, NewLimitsAreForLaterOpens) {
    answer({found(0, 1, "eth0")});
    const size_t eth0 = id("udp0");
    OfferedNic other = found(0, 1, "eth0");
    other.nic.native_mtu = 9000;
    EXPECT_EQ(answer({other}).changed, Names{"udp0"});
    EXPECT_EQ(listing.present()[0].native_mtu, 9000u);
    EXPECT_EQ(id("udp0"), eth0);
    EXPECT_TRUE(answer({other}).changed.empty()) << "the same answer is no change";
}

TEST_F(NicListingTest, ANicWithoutOtherNamesIsKnownByNameAndDescription) {
    OfferedNic port{fake::nic("udp", 0), {}};
    answer({port});
    port.nic.address.bytes[0] ^= 4;
    EXPECT_EQ(answer({port}).changed, Names{"udp0"});
    std::snprintf(port.nic.description, sizeof port.nic.description, "another port");
    port.nic.address.bytes[0] ^= 8;
    const NicChanges changes = answer({port});
    EXPECT_EQ(changes.vanished, Names{"udp0"});
    EXPECT_EQ(changes.appeared, Names{"udp0"});
}

TEST_F(NicListingTest, ConfiguredPortsThatExchangeTheirAddressesKeepTheirNumbers) {
    OfferedNic first{fake::nic("udp", 0), {}}, second{fake::nic("udp", 1), {}};
    answer({first, second});
    std::swap(first.nic.address, second.nic.address);
    EXPECT_EQ(answer({first, second}).changed, (Names{"udp0", "udp1"}));
    ASSERT_EQ(names(), (Names{"udp0", "udp1"}));
    EXPECT_EQ(listing.present()[0].address, first.nic.address);
    EXPECT_STREQ(listing.present()[0].description, first.nic.description);
}

TEST_F(NicListingTest, AnAnswerWithoutAllNicsTakesNoneAway) {
    answer({found(0, 1, "eth0"), found(1, 2, "eth1")});
    EXPECT_TRUE(answer({}, false).vanished.empty());
    EXPECT_EQ(names(), (Names{"udp0", "udp1"}));
    EXPECT_EQ(answer({found(0, 2, "eth1"), found(1, 3, "eth2")}, false).appeared, Names{"udp2"});
    EXPECT_EQ(names(), (Names{"udp0", "udp1", "udp2"}));
}

TEST_F(NicListingTest, ProvidersKeepTheirNicsApart) {
    OfferedNic other{fake::nic("other", 0), {}};
    answer({found(0, 1, "eth0")});
    answer({other}, true, 1);
    EXPECT_EQ(names(), (Names{"udp0", "other0"}));
    EXPECT_EQ(answer({}).vanished, Names{"udp0"});
    EXPECT_EQ(names(), Names{"other0"});
    other.nic.address = NicAddress{{10, 0, 0, 5, 0, 1}};
    answer({other}, true, 1);
    answer({found(0, 5, "eth0")});
    EXPECT_EQ(names(), Names{"other0"});
    ASSERT_EQ(rejected.size(), 1u);
    EXPECT_EQ(rejected[0].reason, "another NIC has this address");
}

TEST_F(NicListingTest, TwoOffersOfOneAddressAreOneNic) {
    answer({found(0, 1, "eth0"), found(1, 1, "eth1")});
    EXPECT_EQ(names(), Names{"udp0"});
    ASSERT_EQ(rejected.size(), 1u);
    EXPECT_EQ(rejected[0].name, "udp1");
}

TEST_F(NicListingTest, TheLinkIsOfTheNicOfThatId) {
    answer({found(0, 1, "eth0"), found(1, 2, "eth1")});
    listing.set_link(id("udp1"), false);
    EXPECT_EQ(listing.present()[0].link_up, 1u);
    EXPECT_EQ(listing.present()[1].link_up, 0u);
    EXPECT_EQ(listing.nic(id("udp1")).link_up, 0u);
}

}  // namespace
}  // namespace viaduct::kagent
