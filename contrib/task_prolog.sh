#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sets fairlease's variables in every job, for sites that do not compile slurmplugin/spank_fairlease.c: name this script as TaskProlog in
# slurm.conf, or add its lines to the site's own. Slurm runs it as the user before each task and batch script, and sets what it prints as
# "export NAME=VALUE". A failed TaskProlog ends the task, so the script ends with 0.
#
# Users give hints by --comment, by --wckey, or in FAIRLEASE_HINTS, which contrib/job_submit.lua reads.

# default NAME VALUE sets a variable unless the user has set it.
default() {
	eval "[ -n \"\${$1+set}\" ]" || printf 'export %s=%s\n' "$1" "$2"
}

default FAIRLEASE_PROGRESS_URL http://slurm1:8765

exit 0
