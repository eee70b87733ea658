/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "gate.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { WORD, LIST, NAMES, LICENSE, SECONDS, FACTOR, SWITCH, OPT_OUT, OVERRIDABLE, OPTION };

struct setting {
	const char *key;
	enum kind kind;
	size_t offset, size;
};

#define TEXT_SETTING(key, kind) \
	{ #key, kind, offsetof(struct gate_settings, key), sizeof(((struct gate_settings *)0)->key) }
#define PLAIN_SETTING(key, kind) { #key, kind, offsetof(struct gate_settings, key), 0 }
#define WAY_SETTING(key, way, kind) { "opt_out." key, kind, offsetof(struct gate_settings, ways) + (way) * sizeof(enum gate_opt_out), 0 }

static const struct setting all[] = {
	TEXT_SETTING(partitions, NAMES),
	TEXT_SETTING(default_partition, NAMES),
	TEXT_SETTING(heartbeat_dir, WORD),
	TEXT_SETTING(exclude_accounts, LIST),
	TEXT_SETTING(exclude_users, LIST),
	TEXT_SETTING(exclude_qos, LIST),
	TEXT_SETTING(operator_uids, LIST),
	TEXT_SETTING(checkpoint_mark, WORD),
	TEXT_SETTING(gate_license, LICENSE),
	PLAIN_SETTING(gate_site_factor, FACTOR),
	PLAIN_SETTING(gate_seconds, SECONDS),
	PLAIN_SETTING(heartbeat_max_age, SECONDS),
	PLAIN_SETTING(gate_shards, SWITCH),
	PLAIN_SETTING(mark_requeue, SWITCH),
	PLAIN_SETTING(require_checkpoint, SWITCH),
	PLAIN_SETTING(protect_gate, SWITCH),
	PLAIN_SETTING(opt_out, OPT_OUT),
	WAY_SETTING("no_requeue", GATE_NO_REQUEUE, OVERRIDABLE),
	WAY_SETTING("contiguous", GATE_CONTIGUOUS, OVERRIDABLE),
	WAY_SETTING("session", GATE_SESSION, OPT_OUT),
	WAY_SETTING("het", GATE_HET, OPT_OUT),
	WAY_SETTING("other", GATE_OTHER, OPT_OUT),
	WAY_SETTING("no_gpus", GATE_NO_GPUS, OPT_OUT),
	WAY_SETTING("expedite", GATE_EXPEDITE, OPTION),
};
enum { SETTINGS = sizeof(all) / sizeof(all[0]) };

static const char *const opt_outs[] = { [GATE_LEAVE] = "leave", [GATE_CHARGE] = "charge", [GATE_REFUSE] = "refuse", [GATE_OVERRIDE] = "override" };

/* A part of another text, not terminated. */
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

/* Slurm's accounts and users know no case. */
static bool is_name(struct span s, const char *name)
{
	return s.len && strlen(name) == s.len && !strncasecmp(s.at, name, s.len);
}

/* Removes the next item from a text, up to a separator; false at its end. */
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

/* Reads a whole number of at most ten digits; false for any other text. */
static bool whole(struct span text, long *number)
{
	size_t sign = text.len && text.at[0] == '-';

	if (text.len == sign || text.len > sign + 10)
		return false;
	for (size_t i = sign; i < text.len; i++)
		if (!isdigit((unsigned char)text.at[i]))
			return false;
	*number = strtol(text.at, NULL, 10);
	return true;
}

/* Partitions become names of heartbeat files. */
static bool file_names(struct span text)
{
	return !memchr(text.at, '/', text.len) && !(text.len && text.at[0] == '.');
}

/* The characters of licence names, since they become part of lists. */
static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool license_name(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!in_name(text.at[i]))
			return false;
	return true;
}

/* Stores a value; returns an error message, or NULL. */
static const char *store(const struct setting *what, struct span value, struct gate_settings *s)
{
	char *field = (char *)s + what->offset;
	long number;

	switch (what->kind) {
	case NAMES:
	case LICENSE:
	case WORD:
	case LIST:
		if (what->kind == NAMES && !file_names(value))
			return "is not made of partition names";
		if (what->kind == LICENSE && !license_name(value))
			return "is not the name of a licence: use letters, digits, _, - and .";
		if (value.len >= what->size)
			return "is too long";
		memcpy(field, value.at, value.len);
		field[value.len] = '\0';
		return NULL;
	case SECONDS:
		if (!whole(value, &number) || number < 1 || number > 366 * 86400L)
			return "is not a number of seconds from 1 to a year";
		*(long *)field = number;
		return NULL;
	case FACTOR:
		if (!whole(value, &number) || number < -1073741823 || number > 0)
			return "is not a whole number from -1073741823 to 0";
		*(long *)field = number;
		return NULL;
	case SWITCH:
		if (!is(value, "yes") && !is(value, "no"))
			return "is neither yes nor no";
		*(bool *)field = is(value, "yes");
		return NULL;
	case OPT_OUT:
	case OVERRIDABLE:
	case OPTION:
		for (number = GATE_CHARGE; number <= (what->kind == OPT_OUT ? GATE_REFUSE : GATE_OVERRIDE); number++) {
			if (is(value, opt_outs[number]) && (number != GATE_LEAVE || what->kind != OPTION)) {
				*(enum gate_opt_out *)field = (enum gate_opt_out)number;
				return NULL;
			}
		}
		if (what->kind == OPTION)
			return "is none of charge, refuse and override";
		return what->kind == OVERRIDABLE ? "is none of charge, leave, refuse and override" : "is none of charge, leave and refuse";
	}
	return NULL;
}

bool gate_parse(const char *text, const char *file, struct gate_settings *s, char *error, size_t size)
{
	bool seen[SETTINGS] = { false };
	struct span line;

	*s = (struct gate_settings){
		.gate_seconds = 600,
		.gate_shards = true,
		.heartbeat_max_age = 60,
		.protect_gate = true,
		.heartbeat_dir = "/run/fairlease",
		.checkpoint_mark = "checkpoint",
		.gate_site_factor = -1000000000,
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
	for (enum gate_way way = 0; way < GATE_WAYS; way++) {
		bool leased = way == GATE_NO_REQUEUE || way == GATE_NO_GPUS || way == GATE_EXPEDITE;

		if (!s->ways[way])
			s->ways[way] = s->opt_out && !leased ? s->opt_out : GATE_CHARGE;
	}
	if (!s->partitions[0]) {
		snprintf(error, size, "%s: partitions is not set: name the partitions that fairlease manages", file);
		return false;
	}
	return true;
}

/* True if the line contains the word. */
static bool has_word(struct span line, const char *word, bool any_case)
{
	size_t len = strlen(word);

	for (size_t end, i = 0; i < line.len; i = end + 1) {
		for (end = i; end < line.len && in_name(line.at[end]); end++)
			;
		if (end - i == len && !(any_case ? strncasecmp(line.at + i, word, len) : memcmp(line.at + i, word, len)))
			return true;
	}
	return false;
}

bool gate_configured(const char *conf, const char *license)
{
	bool licenses = false; /* the line is Licenses=, or continues it */
	struct span line;

	while (next(&conf, "\n", &line)) {
		const char *comment = memchr(line.at, '#', line.len);

		if (comment)
			line.len = (size_t)(comment - line.at);
		line = trimmed(line);
		if (line.len > 8 && !strncasecmp(line.at, "include", 7) && isspace((unsigned char)line.at[7]))
			return true;
		licenses = licenses || has_word(line, "licenses", true);
		if (licenses && has_word(line, license, false))
			return true;
		licenses = licenses && line.len && line.at[line.len - 1] == '\\';
	}
	return false;
}

bool gate_listed(const char *list, const char *item)
{
	struct span entry;

	while (item && item[0] && next(&list, ",", &entry))
		if (is(trimmed(entry), item))
			return true;
	return false;
}

/* False if the request ends in a count of 0: "gpu", "gpu:v100" and "gpu:2" request GPUs. */
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

/* "gpu:2" of "gres/gpu:2". */
static struct span without_type(struct span request)
{
	request = trimmed(request);
	if (request.len > 5 && (!memcmp(request.at, "gres/", 5) || !memcmp(request.at, "gres:", 5)))
		request = (struct span){ request.at + 5, request.len - 5 };
	return request;
}

bool gate_wants_gpu(const char *tres, bool shards)
{
	struct span request;

	while (next(&tres, ",;", &request)) {
		request = without_type(request);
		if ((named(request, "gpu") || (shards && (named(request, "shard") || named(request, "mps")))) && some(request))
			return true;
	}
	return false;
}

/* Removes the next name from a list, and copies it; false at the list's end. */
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

bool gate_names(const struct gate_settings *s, const struct gate_job *j, const char *partition)
{
	return gate_listed(j->partition && j->partition[0] ? j->partition : s->default_partition, partition);
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

static bool excluded(const struct gate_settings *s, const struct gate_job *j)
{
	return gate_listed(s->exclude_accounts, j->account) || gate_listed(s->exclude_users, j->user) || gate_listed(s->exclude_qos, j->qos);
}

static bool wants_gpus(const struct gate_job *j, bool shards)
{
	for (int i = 0; i < 4; i++)
		if (gate_wants_gpu(j->tres[i], shards))
			return true;
	return false;
}

bool gate_concerns(const struct gate_settings *s, const struct gate_job *j)
{
	return wants_gpus(j, s->gate_shards) && !excluded(s, j);
}

bool gate_refuses_without_gpus(const struct gate_settings *s, const struct gate_job *j)
{
	return s->ways[GATE_NO_GPUS] == GATE_REFUSE && !wants_gpus(j, true) && !excluded(s, j);
}

/* Takes the next request for GPUs of a list: gives their count, and their model or an empty one; 0: there are no more. */
static long next_gpus(const char **tres, struct span *model)
{
	struct span request;

	while (next(tres, ",;", &request)) {
		size_t digits = 0;
		long count = 1;

		request = without_type(request);
		if (!named(request, "gpu"))
			continue;
		while (isdigit((unsigned char)request.at[request.len - 1 - digits])) /* ends at "gpu" */
			digits++;
		if (digits && strchr(":=", request.at[request.len - 1 - digits]))
			count = strtol(request.at + request.len - digits, NULL, 10);
		*model = (struct span){ request.at + 3, 0 };
		if (request.len > 4) {
			model->at++;
			while (model->len < request.len - 4 && !strchr(":=", model->at[model->len]))
				model->len++;
			if (model->len == request.len - 4 && isdigit((unsigned char)model->at[0]))
				model->len = 0; /* a count */
		}
		if (count > 0)
			return count < INT_MAX / 2 ? count : INT_MAX / 2;
	}
	return 0;
}

/* The number of GPUs that a TRES request asks for. */
static long gpus(const char *tres)
{
	struct span model;
	long n = 0, count;

	while ((count = next_gpus(&tres, &model)))
		n = n + count < INT_MAX / 2 ? n + count : INT_MAX / 2;
	return n;
}

/* True if the options of the job let Slurm give it more than one node. The sidecar (Request.MostNodes) has the same rules. */
static bool spreads(const struct gate_job *j)
{
	long job = gpus(j->tres[0]), node = gpus(j->tres[1]), task = gpus(j->tres[3]), most = j->max_nodes;

	if (j->min_nodes > 1)
		return true;
	if (job && node)
		return job > node;
	if (j->tasks && (!most || most > j->tasks)) /* every node needs a task */
		most = j->tasks;
	if (most)
		return most > 1;
	if (node || (task && j->tasks_per_node)) /* Slurm takes no more nodes than it needs */
		return false;
	return job > 1 || task > 1;
}

/* True if the requests name GPUs of more than one model. */
static bool several_models(const char *const tres[4])
{
	struct span first = { NULL, 0 }, model;

	for (int i = 0; i < 4; i++) {
		const char *list = tres[i];

		while (next_gpus(&list, &model)) {
			if (!model.len)
				continue;
			if (first.at && (first.len != model.len || memcmp(first.at, model.at, first.len)))
				return true;
			first = model;
		}
	}
	return false;
}

/* The sidecar (Rules.wayOut) has the same order. */
const char *gate_opts_out(const struct gate_job *j, enum gate_way *way)
{
	bool socket = gate_wants_gpu(j->tres[2], false), models = several_models(j->tres);

	*way = GATE_HET;
	if (j->het)
		return "heterogeneous components (:)";
	*way = GATE_CONTIGUOUS; /* it can be taken away, the others cannot; one node is contiguous */
	if (j->contiguous && !j->cron && !j->shares && !socket && !models && spreads(j))
		return "--contiguous";
	*way = GATE_SESSION;
	if (!j->batch)
		return "salloc, or srun outside of a batch job";
	*way = GATE_OTHER;
	if (j->cron)
		return "scrontab";
	if (j->shares)
		return "--exclusive=user, =mcs or =topo";
	if (socket)
		return "--gpus-per-socket";
	if (models)
		return "several GPU models in one job";
	if (j->features && strpbrk(j->features, "[]()*,"))
		return "brackets, * or a comma in --constraint";
	*way = GATE_NO_REQUEUE;
	return j->no_requeue ? "--no-requeue" : NULL;
}

void gate_heartbeat(const struct gate_settings *s, const char *partition, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", s->heartbeat_dir, partition);
}

bool gate_beats(const struct gate_settings *s, time_t heartbeat, time_t now)
{
	return now - heartbeat <= s->heartbeat_max_age && heartbeat - now <= s->heartbeat_max_age;
}

long gate_ttl(const char *heartbeat)
{
	struct span line;
	long ttl;

	for (int number = 1; next(&heartbeat, "\n", &line); number++)
		if (number == 3)
			return whole(line, &ttl) && ttl > 0 ? ttl : 0;
	return 0;
}

/* Copies a word of a line; false if there is none, or it is too long. */
static bool word(const char **line, char *to, size_t size)
{
	struct span w;

	if (!next(line, " \n", &w) || !w.len || w.len >= size)
		return false;
	memcpy(to, w.at, w.len);
	to[w.len] = '\0';
	return true;
}

bool gate_line_of(const char *line, const char *prefix, const char *name)
{
	size_t before = strlen(prefix);

	return !strncmp(line, prefix, before) && is_name((struct span){ line + before, strcspn(line + before, " \n") }, name);
}

bool gate_may_use(const char *line, const char *account)
{
	struct span item;

	next(&line, " \n", &item);
	while (next(&line, ",\n", &item))
		if (is_name(item, account))
			return true;
	return false;
}

bool gate_budget(const char *line, struct gate_budget *b)
{
	char name[GATE_TEXT], left[32], total[32], end[32];

	if (!word(&line, name, sizeof(name)) || !word(&line, b->tenant, sizeof(b->tenant)) || !word(&line, left, sizeof(left)) || !word(&line, total, sizeof(total)) ||
	    !word(&line, b->per, sizeof(b->per)) || !word(&line, end, sizeof(end)) || !word(&line, b->ends, sizeof(b->ends)) ||
	    !word(&line, b->prices, sizeof(b->prices)))
		return false;
	b->left = strtod(left, NULL);
	b->total = strtod(total, NULL);
	b->end = (time_t)strtoll(end, NULL, 10);
	return true;
}

/* The price of a GPU hour of a model: of one that is not listed the cheapest, and of any model with features (--constraint) the dearest. */
static double price(const struct gate_budget *b, struct span model, bool features)
{
	const char *list = b->prices;
	double cheapest = 0, dearest = 0;
	struct span item;

	while (next(&list, ",", &item)) {
		size_t name = strcspn(item.at, "=");
		double hour;

		if (name >= item.len)
			continue;
		hour = strtod(item.at + name + 1, NULL);
		if (model.len && name == model.len && !memcmp(item.at, model.at, name))
			return hour;
		if (item.at[0] == '*')
			cheapest = hour;
		if (hour > dearest)
			dearest = hour;
	}
	return features && !model.len ? dearest : cheapest;
}

/* The number of tasks of an array, 1 of a job that is none. */
static double tasks_of(const char *array)
{
	const char *most = array ? strchr(array, '%') : NULL;
	double tasks = 0;
	struct span item;

	while (next(&array, ",", &item)) {
		char *rest;
		long first, last, step = 1;

		if (most && item.at > most)
			break;
		first = last = strtol(item.at, &rest, 10);
		if (*rest == '-')
			last = strtol(rest + 1, &rest, 10);
		if (*rest == ':')
			step = strtol(rest + 1, &rest, 10);
		if (first >= 0 && last >= first && step > 0)
			tasks += (double)((last - first) / step + 1);
	}
	return tasks > 0 ? tasks : 1;
}

/* The most nodes that the options of the job let Slurm give it: one, if they name no number. */
static long most_nodes(const struct gate_job *j)
{
	long least = j->min_nodes ? j->min_nodes : 1, most = j->max_nodes;

	if (j->tasks && most > j->tasks) /* every node needs a task */
		most = j->tasks;
	return most > least ? most : least;
}

double gate_hours(const struct gate_job *j, const struct gate_budget *b, time_t now)
{
	long nodes = most_nodes(j);
	long tasks = j->tasks ? j->tasks : j->tasks_per_node ? j->tasks_per_node * nodes : nodes;
	bool features = j->features && j->features[0];
	const long times[4] = { 1, nodes, nodes, tasks };
	double most = 0, seconds = difftime(b->end, j->begin > now ? j->begin : now);

	for (int i = 0; i < 4; i++) {
		const char *list = j->tres[i];
		struct span model;
		double hour = 0;
		long count;

		while ((count = next_gpus(&list, &model)))
			hour += (double)count * price(b, model, features);
		if (hour * (double)times[i] > most)
			most = hour * (double)times[i];
	}
	if (j->time_limit && j->time_limit != 0xffffffffL && (double)j->time_limit * 60 < seconds)
		seconds = (double)j->time_limit * 60;
	return seconds > 0 ? most * tasks_of(j->array) * seconds / 3600 : 0;
}

bool gate_exceeds(struct gate_accepted *a, struct gate_budget *b, uid_t user, double hours, time_t made, time_t now)
{
	if (hours <= 0)
		return false;
	for (unsigned i = 0; i < GATE_ACCEPTED; i++)
		if (a->jobs[i].at >= made && a->jobs[i].user == user && !strcmp(a->jobs[i].tenant, b->tenant))
			b->left -= a->jobs[i].hours;
	if (hours > b->left + 0.0005)
		return true;
	for (unsigned i = 0; i < GATE_ACCEPTED; i++)
		if (a->jobs[i].at == now && a->jobs[i].user == user && !strcmp(a->jobs[i].tenant, b->tenant)) {
			a->jobs[i].hours += hours; /* many small jobs do not drive others out */
			return false;
		}
	a->jobs[a->next].at = now;
	a->jobs[a->next].user = user;
	memcpy(a->jobs[a->next].tenant, b->tenant, sizeof(b->tenant));
	a->jobs[a->next].hours = hours;
	a->next = (a->next + 1) % GATE_ACCEPTED;
	return false;
}

bool gate_refuses(const struct gate_settings *s, const struct gate_job *j)
{
	const char *mark = s->checkpoint_mark;
	bool marked = mark[0] && ((j->comment && strstr(j->comment, mark)) || (j->hints && strstr(j->hints, mark)));

	return s->require_checkpoint && !j->warned && !marked;
}

/* True if an item of a list of licences names the gate's licence. Stores its count, 0 unless that is a plain number. */
static bool is_gate(const struct gate_settings *s, struct span item, long *count)
{
	struct span name = { item.at, 0 };

	while (name.len < item.len && !strchr(":=", name.at[name.len]))
		name.len++;
	if (!is(name, s->gate_license))
		return false;
	*count = 1;
	if (name.len < item.len && (!whole((struct span){ item.at + name.len + 1, item.len - name.len - 1 }, count) || *count > INT_MAX / 2))
		*count = 0;
	return true;
}

/* True if a list of licences has the gate's licence exactly once, with a count of at least 1. */
static bool gated(const struct gate_settings *s, const char *list)
{
	struct span item;
	int found = 0;
	long count;

	while (next(&list, ",;", &item)) {
		if (!is_gate(s, item, &count))
			continue;
		if (found++ || count < 1)
			return false;
	}
	return found == 1;
}

bool gate_license(const struct gate_settings *s, const char *licenses, char *with, size_t size)
{
	const char *list = licenses;
	struct span item;
	size_t len = 0, own = licenses ? strlen(licenses) : 0;
	bool named = false;
	long count;

	if (!s->gate_license[0] || own >= size || (own && strchr(licenses, '|')))
		return false;
	if (gated(s, licenses)) {
		memcpy(with, licenses, own + 1);
		return true;
	}
	if (own + strlen(s->gate_license) + 4 > size)
		return false;
	while (next(&list, ",;", &item)) {
		if (is_gate(s, item, &count)) {
			named = true;
			continue;
		}
		if (len)
			with[len++] = ',';
		memcpy(with + len, item.at, item.len);
		len += item.len;
	}
	if (!named && own) /* as the user wrote them */
		memcpy(with, licenses, len = own);
	snprintf(with + len, size - len, "%s%s:1", len ? "," : "", s->gate_license);
	return true;
}

time_t gate_begin(const struct gate_settings *s, const struct gate_job *j, long ttl, time_t now)
{
	time_t gate = now + (ttl && ttl < s->gate_seconds ? ttl : s->gate_seconds);

	if (j->deadline) {
		long minutes = j->time_min ? j->time_min : j->time_limit ? j->time_limit : 1;
		time_t latest = j->deadline - minutes * 60 - GATE_SLACK;

		if (latest <= now)
			return 0;
		if (gate > latest)
			gate = latest;
	}
	return j->begin > gate ? j->begin : gate;
}

void gate_mark(const struct gate_job *j, time_t gate, char *mark, size_t size)
{
	snprintf(mark, size, "fl:begin=%lld,gate=%lld", (long long)j->begin, (long long)gate);
}

void gate_explain(const struct gate_job *j, bool keeps, char *text, size_t size)
{
	const char *then = keeps ? "it then keeps its GPUs until it ends"
					 : "at a lease's end it may be requeued, so save your work when signalled";

	snprintf(text, size, "fairlease: this job waits for a GPU lease of %s%.64s; %s; see: fairlease explain JOBID",
		 j->account ? "account " : "your default account", j->account ? j->account : "", then);
}

void gate_refusal(const struct gate_settings *s, char *text, size_t size)
{
	snprintf(text, size, "fairlease: GPU jobs here must be able to save their work and resume: submit with --signal, for example --signal=USR1@120%s%s",
		 s->checkpoint_mark[0] ? ", or say that yours can with --comment=" : "", s->checkpoint_mark);
}

void gate_budget_refusal(const struct gate_job *j, const struct gate_budget *b, double hours, char *text, size_t size)
{
	snprintf(text, size, "fairlease: this job may use %.2f GPU-hours at prices%s, and account %s has %.2f left of its budget of %.2f for this %s, besides what its other jobs may use: "
			     "ask for a shorter --time or fewer GPUs, or wait for the next period, from %s; see: fairlease budgets",
		 hours, j->time_limit ? "" : " (it states no --time)", b->tenant, b->left > 0 ? b->left : 0.0, b->total, b->per, b->ends);
}

void gate_opt_out_refusal(const char *option, const char *partition, char *text, size_t size)
{
	snprintf(text, size, "fairlease: GPU jobs of partition %.64s cannot wait for a lease with %s: submit with sbatch and without it, or use another partition",
		 partition, option);
}

void gate_expedite_refusal(const char *partition, char *text, size_t size)
{
	snprintf(text, size, "fairlease: GPU jobs of partition %.64s cannot use --requeue=expedite: write --requeue, or use another partition", partition);
}

void gate_no_gpus_refusal(const char *partition, char *text, size_t size)
{
	snprintf(text, size, "fairlease: partition %.64s is for jobs with GPUs: ask for some (--gres=gpu:1), or use another partition", partition);
}

/* True if the user may change what others may not. */
static bool exempt(const struct gate_settings *s, uid_t user)
{
	char uid[32];

	snprintf(uid, sizeof(uid), "%lld", (long long)user);
	return !s->protect_gate || user == 0 || gate_listed(s->operator_uids, uid);
}

bool gate_grows(const struct gate_settings *s, const struct gate_job *j, uid_t user, char *text, size_t size)
{
	bool grows = j->time_limit || j->begin || j->account || j->partition || j->features || j->min_nodes || j->max_nodes || j->tasks || j->tasks_per_node;

	for (int i = 0; i < 4; i++)
		grows = grows || j->tres[i];
	if (!grows || exempt(s, user))
		return false;
	snprintf(text, size, "fairlease: an account of yours has a budget that refuses jobs: cancel the job and submit it again to change its time limit, start time, size, constraint, "
			     "account or partition, or ask an operator; see: fairlease budgets");
	return true;
}

bool gate_opens(const struct gate_settings *s, uid_t user, const char *licenses, time_t begin, time_t now, char *text, size_t size)
{
	if (exempt(s, user))
		return false;
	if (s->gate_license[0]) {
		if (!licenses || (!strchr(licenses, '|') && gated(s, licenses)))
			return false;
		snprintf(text, size, "fairlease: a waiting GPU job keeps the licence %s:1 until its lease: include %s:1 in the new list, or ask an operator about a job that has none; "
			       "see: fairlease explain JOBID",
			 s->gate_license, s->gate_license);
		return true;
	}
	if (!begin || begin > now + s->gate_seconds)
		return false;
	snprintf(text, size, "fairlease: a waiting GPU job's start time is set by its lease; a user may only set it to more than %ld s from now; see: fairlease explain JOBID",
		 s->gate_seconds);
	return true;
}
