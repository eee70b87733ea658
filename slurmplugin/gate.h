/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The submit plugin's decisions, independent of Slurm: which jobs are gated, until
 * when, and the messages to their users. Nothing here does I/O, takes a lock or
 * allocates; texts are written to buffers of the caller.
 */
#ifndef FAIRLEASE_GATE_H
#define FAIRLEASE_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#define GATE_LIST 4096 /* bytes of the longest list in the settings */
#define GATE_TEXT 512  /* bytes of the longest message, mark or extended list of licences */
#define GATE_SLACK 60  /* seconds between the end of a gate and a job's last start: sched_interval's default */

/* Ways out of leases or of reclaims, and their treatment. Of jobs without leases, charge and leave differ in the sidecar only. */
enum gate_way { GATE_NO_REQUEUE, GATE_CONTIGUOUS, GATE_SESSION, GATE_HET, GATE_OTHER, GATE_NO_GPUS, GATE_EXPEDITE, GATE_WAYS };
enum gate_opt_out { GATE_UNSET, GATE_CHARGE, GATE_LEAVE, GATE_REFUSE, GATE_OVERRIDE };

/* The settings; fairlease-plugin.conf explains them. */
struct gate_settings {
	char partitions[GATE_LIST];
	char default_partition[GATE_TEXT];
	char heartbeat_dir[GATE_TEXT];
	char exclude_accounts[GATE_LIST];
	char exclude_users[GATE_LIST];
	char exclude_qos[GATE_LIST];
	char operator_uids[GATE_LIST];
	char checkpoint_mark[GATE_TEXT];
	char gate_license[64]; /* empty: gates are begin times */
	long gate_site_factor;
	long gate_seconds;
	long heartbeat_max_age; /* seconds */
	enum gate_opt_out opt_out;	   /* of all ways but no_requeue, no_gpus and expedite */
	enum gate_opt_out ways[GATE_WAYS]; /* never GATE_UNSET */
	bool gate_shards;
	bool mark_requeue;
	bool require_checkpoint;
	bool protect_gate;
};

/* The relevant part of a submission; texts may be NULL. */
struct gate_job {
	const char *partition;	/* as named by the user: NULL, "a" or "a,b" */
	const char *account;	/* NULL: the user's default */
	const char *qos;
	const char *user;	/* as in exclude_users */
	const char *comment;
	const char *hints;	/* of --fairlease */
	const char *features;	/* --constraint */
	const char *licenses;
	const char *tres[4];	/* per job, node, socket, task */
	const char *array;	/* the tasks of an array (0-9:2,15%4), NULL: none */
	time_t begin;		/* the user's --begin, 0: none */
	time_t deadline;	/* 0: none */
	long time_limit;	/* minutes, 0: none named */
	long time_min;		/* minutes, 0: none named */
	long min_nodes;		/* 0: none named */
	long max_nodes;		/* 0: none named */
	long tasks;		/* --ntasks, 0: none named */
	long tasks_per_node;	/* 0: none named */
	bool contiguous;
	bool shares;		/* --exclusive=user, =mcs or =topo */
	bool batch;		/* has a script */
	bool het;		/* a component of a heterogeneous job */
	bool cron;		/* from scrontab */
	bool no_requeue;
	bool warned;		/* has a --signal of its own */
};

/* What is left of the budget of a job's account, as the daemon tells. Hours are GPU hours at prices. */
struct gate_budget {
	char tenant[64];
	char prices[GATE_TEXT]; /* of GPU hours by model: *=1,h100=4; * is the cheapest, for jobs that name no model and no features */
	char per[16];		/* week, month, quarter or year */
	char ends[32];		/* the end of the period in words */
	time_t end;
	double total, left; /* left: without what accepted jobs may still use */
};

enum { GATE_ACCEPTED = 1024 };

/*
 * What jobs may use that were submitted lately: a ring, by tenant, user and second. The daemon's list has those of before it was made. Slurm may still
 * refuse a job after the plugin, and sbatch --test-only submits none: so this counts against its own user only.
 */
struct gate_accepted {
	struct {
		time_t at;
		uid_t user;
		char tenant[64];
		double hours;
	} jobs[GATE_ACCEPTED];
	unsigned next;
};

/*
 * Reads settings from a text. Returns false with an error message, with
 * file:line, in error.
 */
bool gate_parse(const char *text, const char *file, struct gate_settings *s, char *error, size_t size);

/*
 * False if the text of slurm.conf certainly lacks the licence: it has no
 * Licenses= with it and includes no other file. Slurm refuses jobs that
 * request an unknown licence.
 */
bool gate_configured(const char *conf, const char *license);

/* True if the comma-separated list contains item. */
bool gate_listed(const char *list, const char *item);

/* True if a TRES request (gres/gpu:v100:2,…) requests a GPU, or a part of one (shard, mps) if parts count. */
bool gate_wants_gpu(const char *tres, bool shards);

/* True if the job requests GPUs and is not excluded; in a managed partition it is gated then. */
bool gate_concerns(const struct gate_settings *s, const struct gate_job *j);

/* True if the job may start in the partition: it names it, or no partition and it is the default one. */
bool gate_names(const struct gate_settings *s, const struct gate_job *j, const char *partition);

/* The option by which the job keeps its GPUs until it ends, and its way; NULL: none. */
const char *gate_opts_out(const struct gate_job *j, enum gate_way *way);

/* True if the job asks for no GPUs, and is refused for that in a managed partition. */
bool gate_refuses_without_gpus(const struct gate_settings *s, const struct gate_job *j);

/* Stores the i-th managed partition, from 0, in partition; false after the last. */
bool gate_partition(const struct gate_settings *s, int i, char *partition, size_t size);

/* Stores the path of a partition's heartbeat file in path. */
void gate_heartbeat(const struct gate_settings *s, const char *partition, char *path, size_t size);

/* True if a heartbeat of that time means that a daemon grants leases now. */
bool gate_beats(const struct gate_settings *s, time_t heartbeat, time_t now);

/* The daemon's gate.ttl in seconds, the third line of a heartbeat; 0: it is an older daemon's, and has none. */
long gate_ttl(const char *heartbeat);

/* True if the site refuses the job because it cannot be stopped gently. */
bool gate_refuses(const struct gate_settings *s, const struct gate_job *j);

/*
 * True if the gate is a licence that can be combined with the job's own. Stores the
 * job's new list in with: its own licences, and the gate's exactly once. Slurm accepts
 * a count of 0 and several counts of one licence, whose sum may overflow: such
 * entries of the gate's licence become one. Slurm has no "this and (that or those)":
 * jobs with alternatives get a begin-time gate.
 */
bool gate_license(const struct gate_settings *s, const char *licenses, char *with, size_t size);

/*
 * The new begin time of the job: its own, or the gate's end if that is later.
 * The gate ends GATE_SLACK before the latest start with which the job meets its
 * deadline, by Slurm's own rule (time_min, else time_limit, else a minute);
 * 0 if there is no time for a gate. The gate is as long as the smaller of gate_seconds
 * and ttl, the daemon's (0: unknown): no job waits longer than that for a dead daemon.
 */
time_t gate_begin(const struct gate_settings *s, const struct gate_job *j, long ttl, time_t now);

/* Stores the mark with the user's begin time and ours in mark. */
void gate_mark(const struct gate_job *j, time_t gate, char *mark, size_t size);

/* True if a line of the daemon's list of budgets that refuse jobs is that of an account, or of a user who has such an account (@USER). */
bool gate_line_of(const char *line, const char *prefix, const char *name);

/* True if the line of a user (@USER ACCOUNT,ACCOUNT) has the account. */
bool gate_may_use(const char *line, const char *account);

/* Reads the line of an account: ACCOUNT TENANT LEFT TOTAL PER END ENDS PRICES. False if it is of another form. */
bool gate_budget(const char *line, struct gate_budget *b);

/*
 * The GPU hours at prices that the whole run of a job can use within the period, with all tasks of an array: the GPUs of its
 * options, on as many nodes as they allow, for its time limit, or until the period ends if that is earlier or there is no limit.
 */
double gate_hours(const struct gate_job *j, const struct gate_budget *b, time_t now);

/*
 * True if a user's job can use more than is left, apart from the user's jobs that were accepted at or after made, when the daemon made
 * its list; left becomes what is left after these. Otherwise the job is noted as accepted. A job that can use nothing never exceeds it.
 */
bool gate_exceeds(struct gate_accepted *a, struct gate_budget *b, uid_t user, double hours, time_t made, time_t now);

/* Stores the message to the user, at submission or at a refusal, in text. */
void gate_explain(const struct gate_job *j, bool keeps, char *text, size_t size);
void gate_refusal(const struct gate_settings *s, char *text, size_t size);
void gate_expedite_refusal(const char *partition, char *text, size_t size);
void gate_no_gpus_refusal(const char *partition, char *text, size_t size);
void gate_budget_refusal(const struct gate_job *j, const struct gate_budget *b, double hours, char *text, size_t size);
void gate_opt_out_refusal(const char *option, const char *partition, char *text, size_t size);

/*
 * True if a user's change of a job may let it use more of a budget; then it stores the message to the user in text. In
 * the change j, all that stays is NULL or 0.
 */
bool gate_grows(const struct gate_settings *s, const struct gate_job *j, uid_t user, char *text, size_t size);

/*
 * True if a user's change of a waiting job would open its gate; then it stores the
 * message to the user in text. licenses is NULL and begin 0 if unchanged. Users may
 * choose a begin time after the gate, and any begin time if the gate is a licence.
 */
bool gate_opens(const struct gate_settings *s, uid_t user, const char *licenses, time_t begin, time_t now, char *text, size_t size);

#endif
