/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_times - how long an exec or a cell takes to end, for those who wait for its result.
 * Pure.
 */
#pragma once

#define SESSION_KILL_MS   5000 /* a process in an uninterruptible call ends late, not never */
#define CELL_INTERRUPT_MS 2000 /* for the interpreter to end an interrupted cell: session_cell.h */

/* The longest time from cancelling a cell until its end: the interrupt, then the kill. */
#define CELL_CANCEL_MS (CELL_INTERRUPT_MS + SESSION_KILL_MS)
