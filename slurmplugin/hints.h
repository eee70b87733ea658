/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hints of --fairlease, independent of Slurm: their check at submission, and
 * their note in admin_comment. The sidecar reads the same words in
 * sidecar/cluster/hints.go; hints.txt tests that both accept the same ones. Nothing
 * here does I/O or takes a lock; texts are written to buffers of the caller.
 */
#ifndef FAIRLEASE_HINTS_H
#define FAIRLEASE_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#ifndef FAIRLEASE_VERSION
#define FAIRLEASE_VERSION "" /* unknown: see the Makefile */
#endif
#define HINTS_VARIABLE "FAIRLEASE_HINTS" /* the environment's twin of --fairlease */
#define HINTS_NOTE "fairlease:"		 /* the word of admin_comment */
#define HINTS_LENGTH 512		 /* bytes of hints that the sidecar reads, with a comma behind each */
#define HINTS_MISTAKE 256		 /* bytes of the longest message */

/*
 * Gives the mistakes in hints, one after the other. Set *next to the hints before
 * the first call. Returns true with a message for the user in mistake, or false
 * when there are no more.
 */
bool hints_mistake(const char *hints, const char **next, char *mistake, size_t size);

/*
 * Stores the note of the hints in note: one word, without what could end it. Hints
 * that do not fit are left out. Returns false if there are none.
 */
bool hints_note(const char *hints, char *note, size_t size);

#endif
