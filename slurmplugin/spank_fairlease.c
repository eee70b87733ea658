/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spank/fairlease: the option --fairlease=HINTS of sbatch, salloc and srun, and
 * variables of the site in every job's environment. plugstack.conf loads it with
 *
 *   optional spank_fairlease.so FAIRLEASE_PROGRESS_URL=http://slurm1:8765
 *
 * At submission it tells the user what is wrong with the hints, and hands them to
 * slurmctld's submit plugin in the job-control environment. All its functions
 * return success, so that it neither fails a submission nor drains a node. It
 * accesses no file and no network.
 */
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

#include "hints.h"

SPANK_PLUGIN(fairlease, 1);
const char fairlease_version[] = FAIRLEASE_VERSION; /* fairlease doctor reads it in the file */

enum { MOST_MISTAKES = 8 };

static char *given; /* by --fairlease; the last one counts, as with Slurm's own options */

static int take(int value, const char *hints, int remote)
{
	(void)value;
	if (!remote) {
		free(given);
		given = strdup(hints ? hints : "");
	}
	return ESPANK_SUCCESS;
}

static struct spank_option option = {
	.name = "fairlease",
	.arginfo = "HINTS",
	.usage = "[fairlease] hints on this job: kind=NAME, saves=notice|term|never|30m, save-time=90s, signal=TERM, min-lease=30m, "
		 "mem.MODEL=40g, steps=N, steps/s.MODEL=N, gpus=idle, share=yes; separated by commas",
	.has_arg = 1,
	.cb = take,
};

int slurm_spank_init(spank_t spank, int argc, char *argv[])
{
	(void)argc;
	(void)argv;
	spank_option_register(spank, &option); /* also on nodes, where Slurm looks for the options of a job */
	return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char *argv[])
{
	spank_context_t context = spank_context();
	bool step = context == S_CTX_LOCAL && getenv("SLURM_JOB_ID");
	const char *hints = given, *next;
	char mistake[HINTS_MISTAKE];

	(void)argc;
	(void)argv;
	if (context != S_CTX_ALLOCATOR && context != S_CTX_LOCAL)
		return ESPANK_SUCCESS;
	if (step) {
		if (given)
			slurm_spank_log("fairlease: --fairlease is ignored for a step: give it to sbatch, salloc or srun when the job is submitted");
		return ESPANK_SUCCESS;
	}
	if (!hints)
		hints = getenv(HINTS_VARIABLE);
	if (!hints)
		return ESPANK_SUCCESS;
	next = hints;
	for (int i = 0; i < MOST_MISTAKES && hints_mistake(hints, &next, mistake, sizeof(mistake)); i++)
		slurm_spank_log("fairlease: ignored: %s", mistake);
	spank_job_control_setenv(spank, HINTS_VARIABLE, hints, 1);
	return ESPANK_SUCCESS;
}

/* Sets the site's variables in a task, and in the batch script, unless the user has set them. */
int slurm_spank_task_init(spank_t spank, int argc, char *argv[])
{
	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value || strncmp(argv[i], "FAIRLEASE_", strlen("FAIRLEASE_"))) {
			slurm_info("fairlease: plugstack.conf: %s: ignored, write FAIRLEASE_NAME=VALUE", argv[i]);
			continue;
		}
		*value = '\0';
		spank_setenv(spank, argv[i], value + 1, 0);
		*value = '=';
	}
	return ESPANK_SUCCESS;
}
