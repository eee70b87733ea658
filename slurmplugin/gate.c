/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gate.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { WORD, LIST, NAMES, SECONDS, SWITCH };

struct setting {
	const char *key;
	enum kind kind;
	size_t offset, size;
};

#define TEXT_SETTING(key, kind) \
	{ #key, kind, offsetof(struct gate_settings, key), sizeof(((struct gate_settings *)0)->key) }
#define PLAIN_SETTING(key, kind) { #key, kind, offsetof(struct gate_settings, key), 0 }

static const struct setting all[] = {
	TEXT_SETTING(partitions, NAMES),
	TEXT_SETTING(default_partition, NAMES),
	TEXT_SETTING(heartbeat_dir, WORD),
	TEXT_SETTING(exclude_accounts, LIST),
	TEXT_SETTING(exclude_users, LIST),
	TEXT_SETTING(exclude_qos, LIST),
	TEXT_SETTING(operator_uids, LIST),
	TEXT_SETTING(checkpoint_mark, WORD),
	PLAIN_SETTING(gate_seconds, SECONDS),
	PLAIN_SETTING(heartbeat_max_age, SECONDS),
	PLAIN_SETTING(gate_shards, SWITCH),
	PLAIN_SETTING(mark_requeue, SWITCH),
	PLAIN_SETTING(require_checkpoint, SWITCH),
	PLAIN_SETTING(protect_gate, SWITCH),
};
enum { SETTINGS = sizeof(all) / sizeof(all[0]) };

/* A stretch of somebody else's text. */
struct span {
	const char *at;
	size_t len;
};

static bool is(struct span s, const char *word)
{
	return strlen(word) == s.len && !memcmp(s.at, word, s.len);
}

static struct span trimmed(struct span s)
{
	while (s.len && isspace((unsigned char)s.at[0]))
		s = (struct span){ s.at + 1, s.len - 1 };
	while (s.len && isspace((unsigned char)s.at[s.len - 1]))
		s.len--;
	return s;
}

/* Takes the next item off a text, up to one of the separators; false at its end. */
static bool next(const char **text, const char *separators, struct span *item)
{
	if (!*text)
		return false;
	item->at = *text;
	item->len = strcspn(*text, separators);
	*text = item->at[item->len] ? item->at + item->len + 1 : NULL;
	return true;
}

static const struct setting *find(struct span key)
{
	for (int i = 0; i < SETTINGS; i++)
		if (is(key, all[i].key))
			return &all[i];
	return NULL;
}

/* Stores a value; returns what is wrong with it, or NULL. */
static const char *store(const struct setting *what, struct span value, struct gate_settings *s)
{
	char *field = (char *)s + what->offset;
	char *end;
	long seconds;

	switch (what->kind) {
	case NAMES: /* become file names */
		if (memchr(value.at, '/', value.len) || (value.len && value.at[0] == '.'))
			return "is not made of partition names";
		/* fall through */
	case WORD:
	case LIST:
		if (value.len >= what->size)
			return "is too long";
		memcpy(field, value.at, value.len);
		field[value.len] = '\0';
		return NULL;
	case SECONDS:
		errno = 0;
		seconds = strtol(value.at, &end, 10);
		if (!value.len || end != value.at + value.len || errno || seconds < 1 || seconds > 366 * 86400L)
			return "is not a number of seconds from 1 to a year";
		*(long *)field = seconds;
		return NULL;
	case SWITCH:
		if (!is(value, "yes") && !is(value, "no"))
			return "is neither yes nor no";
		*(bool *)field = is(value, "yes");
		return NULL;
	}
	return NULL;
}

bool gate_parse(const char *text, const char *file, struct gate_settings *s, char *error, size_t size)
{
	bool seen[SETTINGS] = { false };
	struct span line;

	*s = (struct gate_settings){
		.gate_seconds = 600,
		.heartbeat_max_age = 60,
		.heartbeat_dir = "/run/fairlease",
		.checkpoint_mark = "checkpoint",
	};
	for (int number = 1; next(&text, "\n", &line); number++) {
		struct span key, value;
		const struct setting *what;
		const char *equals, *wrong;

		line = trimmed(line);
		if (!line.len || line.at[0] == '#')
			continue;
		equals = memchr(line.at, '=', line.len);
		if (!equals) {
			snprintf(error, size, "%s:%d: not of the form key=value", file, number);
			return false;
		}
		key = trimmed((struct span){ line.at, (size_t)(equals - line.at) });
		value = trimmed((struct span){ equals + 1, line.len - (size_t)(equals + 1 - line.at) });
		what = find(key);
		if (!what) {
			snprintf(error, size, "%s:%d: unknown key '%.*s'", file, number, (int)(key.len > 64 ? 64 : key.len), key.at);
			return false;
		}
		if (seen[what - all]) {
			snprintf(error, size, "%s:%d: %s is set twice", file, number, what->key);
			return false;
		}
		seen[what - all] = true;
		wrong = store(what, value, s);
		if (wrong) {
			snprintf(error, size, "%s:%d: %s %s", file, number, what->key, wrong);
			return false;
		}
	}
	if (!s->partitions[0]) {
		snprintf(error, size, "%s: partitions is not set: name the partitions that fairlease manages", file);
		return false;
	}
	return true;
}

bool gate_listed(const char *list, const char *item)
{
	struct span entry;

	while (item && item[0] && next(&list, ",", &entry))
		if (is(trimmed(entry), item))
			return true;
	return false;
}

/* True unless the request ends in a count of 0: "gpu", "gpu:v100" and "gpu:2" ask for something. */
static bool some(struct span request)
{
	size_t digits = 0;
	bool zero = true;

	while (digits < request.len && isdigit((unsigned char)request.at[request.len - 1 - digits])) {
		if (request.at[request.len - 1 - digits] != '0')
			zero = false;
		digits++;
	}
	return !digits || !zero || digits == request.len || !strchr(":=", request.at[request.len - 1 - digits]);
}

static bool named(struct span request, const char *name)
{
	size_t len = strlen(name);

	return request.len >= len && !memcmp(request.at, name, len) && (request.len == len || strchr(":=", request.at[len]));
}

bool gate_wants_gpu(const char *tres, bool shards)
{
	struct span request;

	while (next(&tres, ",;", &request)) {
		request = trimmed(request);
		if (request.len > 5 && (!memcmp(request.at, "gres/", 5) || !memcmp(request.at, "gres:", 5)))
			request = (struct span){ request.at + 5, request.len - 5 };
		if ((named(request, "gpu") || (shards && named(request, "shard"))) && some(request))
			return true;
	}
	return false;
}

/* Takes the next name off a list, as a text of its own; false at the list's end. */
static bool next_name(const char **list, char *name, size_t size)
{
	struct span item;

	while (next(list, ",", &item)) {
		item = trimmed(item);
		if (!item.len || item.len >= size)
			continue;
		memcpy(name, item.at, item.len);
		name[item.len] = '\0';
		return true;
	}
	return false;
}

/* Finds the first partition of the job that is managed. */
static bool managed(const struct gate_settings *s, const char *wanted, char *partition, size_t size)
{
	if (!wanted || !wanted[0])
		wanted = s->default_partition;
	while (next_name(&wanted, partition, size))
		if (gate_listed(s->partitions, partition))
			return true;
	return false;
}

bool gate_partition(const struct gate_settings *s, int i, char *partition, size_t size)
{
	const char *list = s->partitions;

	do {
		if (!next_name(&list, partition, size))
			return false;
	} while (i-- > 0);
	return true;
}

bool gate_concerns(const struct gate_settings *s, const struct gate_job *j, char *partition, size_t size)
{
	bool gpu = false;

	if (!j->batch || j->het || j->cron)
		return false;
	for (int i = 0; i < 4; i++)
		gpu = gpu || gate_wants_gpu(j->tres[i], s->gate_shards);
	if (!gpu || gate_listed(s->exclude_accounts, j->account) || gate_listed(s->exclude_users, j->user) ||
	    gate_listed(s->exclude_qos, j->qos))
		return false;
	return managed(s, j->partition, partition, size);
}

void gate_heartbeat(const struct gate_settings *s, const char *partition, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", s->heartbeat_dir, partition);
}

bool gate_beats(const struct gate_settings *s, time_t heartbeat, time_t now)
{
	return now - heartbeat <= s->heartbeat_max_age && heartbeat - now <= s->heartbeat_max_age;
}

bool gate_refuses(const struct gate_settings *s, const struct gate_job *j)
{
	bool marked = s->checkpoint_mark[0] && j->comment && strstr(j->comment, s->checkpoint_mark);

	return s->require_checkpoint && !j->warned && !marked;
}

time_t gate_begin(const struct gate_settings *s, const struct gate_job *j, time_t now)
{
	time_t gate = now + s->gate_seconds;

	return j->begin > gate ? j->begin : gate;
}

void gate_mark(const struct gate_job *j, time_t gate, char *mark, size_t size)
{
	snprintf(mark, size, "fl:begin=%lld,gate=%lld", (long long)j->begin, (long long)gate);
}

void gate_explain(const struct gate_job *j, char *text, size_t size)
{
	const char *then = j->no_requeue ? "it then keeps its GPUs until it ends"
					 : "at a lease's end it may be requeued, so save your work when signalled";

	snprintf(text, size, "fairlease: this job waits for a GPU lease of %s%.64s; %s; see: fairlease explain JOBID",
		 j->account ? "account " : "your default account", j->account ? j->account : "", then);
}

void gate_refusal(const struct gate_settings *s, char *text, size_t size)
{
	snprintf(text, size, "fairlease: GPU jobs here must be able to save their work and go on later: submit with --signal=USR1@120 or the like%s%s",
		 s->checkpoint_mark[0] ? ", or say that yours can with --comment=" : "", s->checkpoint_mark);
}

bool gate_opens(const struct gate_settings *s, uid_t user, time_t begin, time_t now, char *text, size_t size)
{
	char uid[32];

	snprintf(uid, sizeof(uid), "%lld", (long long)user);
	if (!s->protect_gate || !begin || begin > now + s->gate_seconds || user == 0 || gate_listed(s->operator_uids, uid))
		return false;
	snprintf(text, size, "fairlease: a waiting GPU job's start time is set by its lease; it may only be moved further than %ld s away; see: fairlease explain JOBID",
		 s->gate_seconds);
	return true;
}
