/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * job_submit/fairlease: gates GPU jobs of managed partitions at submission, so
 * that they wait for a lease instead of starting at once. See
 * fairlease-plugin.conf for its settings. It also copies the hints of --fairlease to
 * admin_comment: slurmctld shows neither them nor a job's environment to others.
 *
 * slurmctld calls it with its locks held, so it never waits, takes no lock but its own for a few
 * instructions (accepted), and accesses only the heartbeats of the job's managed partitions, with one stat()
 * each, up to the first fresh one, which it reads for a gate by begin time, and the daemon's list of budgets that refuse jobs (.budgets
 * beside them). While all heartbeats are missing or old no daemon grants leases there, and the plugin does nothing; while the list is,
 * no budget refuses jobs: Slurm goes on without fairlease. Settings are read once, at load; an unknown one prevents
 * loading.
 *
 * Built from Slurm's public headers alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>
#include <slurm/spank.h> /* slurm_info(), slurm_error() */

#include "gate.h"
#include "hints.h"

const char plugin_name[] = "fairlease gate for GPU jobs";
const char plugin_type[] = "job_submit/fairlease";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
const char fairlease_version[] = FAIRLEASE_VERSION; /* fairlease doctor reads it in the file */

typedef struct job_record job_record_t; /* opaque: public headers do not show it */

/* slurmctld frees err_msg and admin_comment with its own allocator, so they must come from it. */
extern void slurm_xstrcat(char **text, const char *more);

/* slurmctld's own copy of slurmdbd's users, with their default accounts. */
extern int assoc_mgr_fill_in_user(void *db, slurmdb_user_rec_t *user, int enforce, slurmdb_user_rec_t **found, bool locked) __attribute__((weak));

static struct gate_settings settings;
static struct gate_accepted accepted;
static pthread_mutex_t accepting = PTHREAD_MUTEX_INITIALIZER; /* guards accepted */

/* Slurm's own search for slurm.conf, without slurmctld -f. */
static const char *slurm_conf(void)
{
	const char *conf = getenv("SLURM_CONF");

	return conf && strchr(conf, '/') ? conf : "/etc/slurm/slurm.conf";
}

/* Reads a whole file into text; returns false, with errno set, if it cannot or the file is too long. */
static bool slurp(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t len;

	if (!file)
		return false;
	len = fread(text, 1, size, file);
	if (ferror(file) || len == size) {
		if (!ferror(file))
			errno = EFBIG;
		fclose(file);
		return false;
	}
	text[len] = '\0';
	fclose(file);
	return true;
}

/* Replaces user names by user ids: submissions contain only ids, and a lookup at submission may be slow. */
static void resolve_users(char *users, size_t size)
{
	char names[GATE_LIST], *rest, *name;
	size_t used = 0;

	snprintf(names, sizeof(names), "%s", users);
	users[0] = '\0';
	for (name = strtok_r(names, ", \t", &rest); name; name = strtok_r(NULL, ", \t", &rest)) {
		struct passwd *user = getpwnam(name);
		int wrote;

		if (!user && name[strspn(name, "0123456789")]) {
			slurm_error("%s: exclude_users: no user %s here: ignored", plugin_type, name);
			continue;
		}
		if (user)
			wrote = snprintf(users + used, size - used, "%lld,", (long long)user->pw_uid);
		else
			wrote = snprintf(users + used, size - used, "%s,", name);
		if (wrote < 0 || (size_t)wrote >= size - used) {
			users[used] = '\0';
			slurm_error("%s: exclude_users: too long, ignored from %s on", plugin_type, name);
			return;
		}
		used += (size_t)wrote;
	}
}

/* Slurm refuses jobs with an unknown licence. It reads slurm.conf when it loads this plugin, so the check is here. */
static void check_license(void)
{
	enum { LONGEST = 16 << 20 };
	char *conf = malloc(LONGEST);

	if (conf && slurp(slurm_conf(), conf, LONGEST) && !gate_configured(conf, settings.gate_license)) {
		slurm_error("%s: %s has no Licenses=%s:1000000: add it and run scontrol reconfigure; until then gates are begin times", plugin_type,
			    slurm_conf(), settings.gate_license);
		settings.gate_license[0] = '\0';
	}
	free(conf);
}

extern int init(void)
{
	char path[4096], text[65536], error[GATE_TEXT + sizeof(path)];

	/* The settings are beside slurm.conf. */
	snprintf(path, sizeof(path), "%.*s/fairlease-plugin.conf", (int)(strrchr(slurm_conf(), '/') - slurm_conf()), slurm_conf());
	if (!slurp(path, text, sizeof(text))) {
		slurm_error("%s: reading its settings: %s: %s", plugin_type, path, strerror(errno));
		return SLURM_ERROR;
	}
	if (!gate_parse(text, path, &settings, error, sizeof(error))) {
		slurm_error("%s: %s", plugin_type, error);
		return SLURM_ERROR;
	}
	resolve_users(settings.exclude_users, sizeof(settings.exclude_users));
	if (settings.gate_license[0])
		check_license();
	slurm_info("%s: gates GPU jobs of partitions %s by %s%s while %s/PARTITION is fresh", plugin_type, settings.partitions,
		   settings.gate_license[0] ? "licence " : "begin times", settings.gate_license, settings.heartbeat_dir);
	return SLURM_SUCCESS;
}

extern int fini(void)
{
	return SLURM_SUCCESS;
}

/* True while a daemon grants leases in the partition; daemon gets its user. */
static bool granting(const char *partition, time_t now, uid_t *daemon)
{
	char path[2 * GATE_TEXT];
	struct stat heartbeat;

	gate_heartbeat(&settings, partition, path, sizeof(path));
	if (stat(path, &heartbeat) || !gate_beats(&settings, heartbeat.st_mtime, now))
		return false;
	*daemon = heartbeat.st_uid;
	return true;
}

/* The gate.ttl of the partition's daemon in seconds; 0: its heartbeat does not tell. */
static long daemon_ttl(const char *partition)
{
	char path[2 * GATE_TEXT], text[64];
	ssize_t length;
	int file;

	gate_heartbeat(&settings, partition, path, sizeof(path));
	file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return 0;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	text[length > 0 ? length : 0] = '\0';
	return gate_ttl(text);
}

/* Finds a managed partition of the job in which a daemon grants leases now; false: there is none. */
static bool governed(const struct gate_job *j, time_t now, char *partition, size_t size)
{
	uid_t daemon;

	for (int i = 0; gate_partition(&settings, i, partition, size); i++)
		if (gate_names(&settings, j, partition) && granting(partition, now, &daemon))
			return true;
	return false;
}

/* What slurmctld knows of a user from slurmdbd: the name and the default account; NULL: not known. */
static slurmdb_user_rec_t user_of(uid_t uid)
{
	slurmdb_user_rec_t user = { .uid = uid };

	if (!assoc_mgr_fill_in_user || assoc_mgr_fill_in_user(NULL, &user, 0, NULL, false) != SLURM_SUCCESS)
		user = (slurmdb_user_rec_t){ .uid = uid };
	return user;
}

/* Finds a line of the daemon's list of budgets that refuse jobs, and when the list was made; NULL: none, or the list is missing or old. */
static char *budget_line(const char *prefix, const char *name, time_t now, time_t *made)
{
	char path[2 * GATE_TEXT], *line = NULL;
	size_t size = 0;
	FILE *list;
	bool found = false;

	gate_heartbeat(&settings, ".budgets", path, sizeof(path));
	list = name && name[0] ? fopen(path, "re") : NULL;
	if (!list)
		return NULL;
	if (getline(&line, &size, list) > 0) {
		*made = (time_t)strtoll(line, NULL, 10);
		while (gate_beats(&settings, *made, now) && !found && getline(&line, &size, list) > 0)
			found = gate_line_of(line, prefix, name);
	}
	fclose(list);
	if (found)
		return line;
	free(line);
	return NULL;
}

/* True if the job can use more than is left of its account's budget; then it stores the message to the user in text. Slurm refuses users who do not have the account. */
static bool exceeds(const job_desc_msg_t *d, const struct gate_job *j, time_t now, char *text, size_t size)
{
	slurmdb_user_rec_t user = user_of(d->user_id);
	const char *account = d->account && d->account[0] ? d->account : user.default_acct;
	struct gate_budget budget;
	time_t made;
	char *line = budget_line("", account, now, &made), *users = line ? budget_line("@", user.name, now, &made) : NULL;
	bool more = users && gate_may_use(users, account) && gate_budget(line, &budget);
	double hours;

	free(users);
	free(line);
	if (!more)
		return false;
	hours = gate_hours(j, &budget, now);
	pthread_mutex_lock(&accepting);
	more = gate_exceeds(&accepted, &budget, d->user_id, hours, made, now);
	pthread_mutex_unlock(&accepting);
	if (more)
		gate_budget_refusal(j, &budget, hours, text, size);
	return more;
}

/* The number that an option of the job sets; 0: it is not set. */
static long set(uint32_t number)
{
	return number == NO_VAL || number == INFINITE ? 0 : number;
}

/* Adds a line to the message for the user; another plugin may have written before. */
static void tell(char **err_msg, const char *line)
{
	if (*err_msg)
		slurm_xstrcat(err_msg, "\n");
	slurm_xstrcat(err_msg, line);
}

/* Adds a word to the job's admin_comment; other plugins' words stay. */
static void note(job_desc_msg_t *d, const char *word)
{
	if (d->admin_comment)
		slurm_xstrcat(&d->admin_comment, " ");
	slurm_xstrcat(&d->admin_comment, word);
}

/* The value of HINTS_VARIABLE; NULL: it is not set. */
static const char *hints_in(char **environment, uint32_t size)
{
	size_t n = strlen(HINTS_VARIABLE "=");

	for (uint32_t i = 0; environment && i < size; i++) {
		if (environment[i] && !strncmp(environment[i], HINTS_VARIABLE "=", n))
			return environment[i] + n;
	}
	return NULL;
}

/* The hints of spank/fairlease, else of the job's environment, which Slurm sends for batch jobs only; NULL: there are none. */
static const char *hints_of(const job_desc_msg_t *d)
{
	const char *hints = hints_in(d->spank_job_env, d->spank_job_env_size);

	return hints ? hints : hints_in(d->environment, d->env_size);
}

/* The relevant part of a submission, or of a change. */
static struct gate_job job_of(const job_desc_msg_t *d, const char *hints)
{
	return (struct gate_job){
		.partition = d->partition,
		.account = d->account,
		.qos = d->qos,
		.comment = d->comment,
		.hints = hints,
		.features = d->features,
		.licenses = d->licenses,
		.tres = { d->tres_per_job, d->tres_per_node, d->tres_per_socket, d->tres_per_task },
		.array = d->array_inx,
		.begin = d->begin_time,
		.deadline = d->deadline == NO_VAL ? 0 : d->deadline,
		.time_limit = d->time_limit == NO_VAL ? 0 : d->time_limit,
		.time_min = d->time_min == NO_VAL ? 0 : d->time_min,
		.min_nodes = set(d->min_nodes),
		.max_nodes = set(d->max_nodes),
		.tasks = d->bitflags & JOB_NTASKS_SET ? set(d->num_tasks) : 0,
		.tasks_per_node = d->ntasks_per_node == NO_VAL16 ? 0 : d->ntasks_per_node,
		.contiguous = d->contiguous == 1,
		.shares = d->shared != NO_VAL16 && d->shared > JOB_SHARED_OK,
		.batch = d->script != NULL,
		.het = d->het_job_offset != NO_VAL,
		.cron = (d->bitflags & CRON_JOB) != 0,
		.no_requeue = d->requeue == 0,
		.warned = d->warn_signal != 0 && d->warn_signal != NO_VAL16,
	};
}

extern int job_submit(job_desc_msg_t *d, uint32_t submit_uid, char **err_msg)
{
	char partition[GATE_TEXT], text[2 * GATE_TEXT], user[32];
	const char *hints = hints_of(d);
	struct gate_job job = job_of(d, hints);
	time_t now = time(NULL), gate;
	enum gate_opt_out word;
	enum gate_way way;
	const char *option;

	(void)submit_uid;
	if (hints && hints_note(hints, text, sizeof(text)))
		note(d, text);
	snprintf(user, sizeof(user), "%lld", (long long)d->user_id);
	job.user = user;
	if (gate_refuses_without_gpus(&settings, &job) && governed(&job, now, partition, sizeof(partition))) {
		gate_no_gpus_refusal(partition, text, sizeof(text));
		tell(err_msg, text);
		return ESLURM_ACCESS_DENIED;
	}
	if (!gate_concerns(&settings, &job) || !governed(&job, now, partition, sizeof(partition)))
		return SLURM_SUCCESS;
	if (job.contiguous && settings.ways[GATE_CONTIGUOUS] == GATE_OVERRIDE) {
		d->contiguous = 0;
		job.contiguous = false;
		tell(err_msg, "fairlease: --contiguous is dropped here");
	}
	if (settings.ways[GATE_NO_REQUEUE] == GATE_OVERRIDE && job.batch) {
		d->requeue = 1;
		job.no_requeue = false;
	}
#ifdef EXPEDITED_REQUEUE /* Slurm 25.11 and newer */
	if (d->bitflags & EXPEDITED_REQUEUE && settings.ways[GATE_EXPEDITE] == GATE_REFUSE) {
		gate_expedite_refusal(partition, text, sizeof(text));
		tell(err_msg, text);
		return ESLURM_ACCESS_DENIED;
	}
	if (d->bitflags & EXPEDITED_REQUEUE && settings.ways[GATE_EXPEDITE] == GATE_OVERRIDE) {
		d->bitflags &= ~EXPEDITED_REQUEUE;
		tell(err_msg, "fairlease: --requeue=expedite is --requeue here");
	}
#endif
	option = gate_opts_out(&job, &way);
	word = option ? settings.ways[way] : GATE_UNSET;
	if (word == GATE_REFUSE) {
		gate_opt_out_refusal(option, partition, text, sizeof(text));
		tell(err_msg, text);
		return ESLURM_ACCESS_DENIED;
	}
	if (option && word == GATE_LEAVE) /* it has no lease */
		return SLURM_SUCCESS;
	if ((!option || way == GATE_NO_REQUEUE) && gate_refuses(&settings, &job)) {
		gate_refusal(&settings, text, sizeof(text));
		tell(err_msg, text);
		return ESLURM_ACCESS_DENIED;
	}
	if (exceeds(d, &job, now, text, sizeof(text))) {
		tell(err_msg, text);
		return ESLURM_ACCESS_DENIED;
	}
	if (job.cron) /* it cannot be gated */
		return SLURM_SUCCESS;

	/* Slurm takes licences on the first component only */
	if ((!job.het || d->het_job_offset == 0) && gate_license(&settings, d->licenses, text, sizeof(text))) {
		if (d->licenses)
			d->licenses[0] = '\0';
		slurm_xstrcat(&d->licenses, text);
		if (d->site_factor == NO_VAL) /* else another plugin has set it */
			d->site_factor = NICE_OFFSET + (uint32_t)settings.gate_site_factor;
	} else if ((gate = gate_begin(&settings, &job, daemon_ttl(partition), now))) {
		d->begin_time = gate;
		gate_mark(&job, gate, text, sizeof(text));
		note(d, text);
	} else {
		return SLURM_SUCCESS;
	}
	if (settings.mark_requeue && !job.no_requeue)
		d->requeue = 1;
	gate_explain(&job, option != NULL, text, sizeof(text));
	tell(err_msg, text);
	return SLURM_SUCCESS;
}

/*
 * With protect_gate, users cannot open a gate early, and users who have an account whose budget refuses jobs
 * cannot let a job grow after it was accepted: Slurm lets them raise a waiting job's time limit. Public headers do not show
 * the changed job, so this applies to every job's licences (its start time, without
 * a gate_license), and to shorter limits and later start times, too. The Lua version sees the job and exempts others. SlurmUser,
 * as whom slurmctld runs, and the daemon, whose user owns the heartbeats, open them.
 */
extern int job_modify(job_desc_msg_t *d, job_record_t *job, uint32_t submit_uid, char **err_msg)
{
	char text[2 * GATE_TEXT], partition[GATE_TEXT];
	struct gate_job change = job_of(d, NULL);
	time_t now = time(NULL), made;
	bool guarded = false;
	uid_t daemon;

	(void)job;
	if (submit_uid == geteuid())
		return SLURM_SUCCESS;
	if (!gate_opens(&settings, submit_uid, d->licenses, d->begin_time, now, text, sizeof(text))) {
		char *line = gate_grows(&settings, &change, submit_uid, text, sizeof(text)) ? budget_line("@", user_of(submit_uid).name, now, &made) : NULL;

		if (!line)
			return SLURM_SUCCESS;
		free(line);
	}
	for (int i = 0; gate_partition(&settings, i, partition, sizeof(partition)); i++) {
		if (!granting(partition, now, &daemon))
			continue;
		if (submit_uid == daemon)
			return SLURM_SUCCESS;
		guarded = true;
	}
	if (!guarded)
		return SLURM_SUCCESS;
	tell(err_msg, text);
	return ESLURM_ACCESS_DENIED;
}
