// SPDX-License-Identifier: BSD-2-Clause
#include "providers/wire/request_cookies.hpp"

namespace viaduct::wire {

namespace {

// The hash covers the pass, so a cookie is good for one attempt only.
uint64_t cookie_of(const Key& secret, const NicAddress& from, LinkId source, const Connect& request) {
    SipHash hash(secret);
    hash.add(from.bytes, sizeof from.bytes);
    hash.add(&source, sizeof source);
    hash.add(&request.nonce, sizeof request.nonce);
    hash.add(&request.pass, sizeof request.pass);
    hash.add(&request.remote.discriminator_len, sizeof request.remote.discriminator_len);
    hash.add(request.remote.discriminator, request.remote.discriminator_len);
    const uint64_t cookie = hash.finish();
    return cookie != 0 ? cookie : 1;
}

}  // namespace

void RequestCookies::renew(const Key& fresh, Time now) {
    before_.reset();
    if (now < renew_at_ + life_) before_ = current_;
    current_ = fresh;
    renew_at_ = now + life_;
}

uint64_t RequestCookies::make(const NicAddress& from, LinkId source, const Connect& request) const {
    return cookie_of(*current_, from, source, request);
}

bool RequestCookies::is_shown(const NicAddress& from, LinkId source, const Connect& request, Time now) const {
    if (request.cookie == 0) return false;
    if (current_ && now < renew_at_ + life_ && request.cookie == cookie_of(*current_, from, source, request))
        return true;
    return before_ && now < renew_at_ && request.cookie == cookie_of(*before_, from, source, request);
}

}  // namespace viaduct::wire
