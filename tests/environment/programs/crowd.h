/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/*
 * So many processes open a NIC at once and keep it until all have an answer: each is served or refused for want of
 * resources, and none waits for longer than a call without a timeout may. Ends the program when that is not so.
 */
void crowd(unsigned processes);
