/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_run - what a program of filter_emit() answers, computed as the kernel does.  Pure.
 *
 * The supervisor asks this about a notified call: the registers in a notification are those that
 * the kernel's own run has read.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* SECCOMP_RET_KILL_PROCESS for a program that filter_emit() does not write. */
uint32_t filter_run(const struct sock_filter *insns, size_t ninsns,
		    const struct seccomp_data *data);
