/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hints.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char separators[] = ",; \t\n";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+#@:";
static const char digits[] = "0123456789";

enum { LONGEST_NAME = 64, LONGEST_WORD = HINTS_LENGTH };

static const double most_steps = 9007199254740992., slowest = 1e-10, fastest = 1e9, widest = 10000, day = 86400;

/* Reads the number at the start of a text, without sign and exponent, in every locale. Returns its length; 0: there is none. */
static size_t decimal(const char *text, double *number)
{
	double place = 0;
	bool any = false;
	size_t n;

	*number = 0;
	for (n = 0;; n++) {
		if (text[n] == '.' && !place) {
			place = 1;
		} else if (isdigit((unsigned char)text[n])) {
			any = true;
			if (place)
				*number += (text[n] - '0') * (place /= 10);
			else
				*number = *number * 10 + (text[n] - '0');
		} else {
			return any ? n : 0;
		}
	}
}

/* Reads a number like 12, 12.5 or 9e4. */
static bool number(const char *text, double *n)
{
	char *end;
	long exponent;
	size_t used = decimal(text += *text == '+', n);

	if (used && (text[used] == 'e' || text[used] == 'E')) {
		const char *power = text + used + 1;

		exponent = strtol(power, &end, 10);
		if (end == power || isspace((unsigned char)*power))
			return false;
		for (; exponent > 0 && *n && *n < 1e300; exponent--)
			*n *= 10;
		for (; exponent < 0 && *n; exponent++)
			*n /= 10;
		return !*end;
	}
	return used && !text[used];
}

/* Reads one of Slurm's times: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S. */
static bool slurm_time(const char *text, double *seconds)
{
	static const double units[2][3][3] = { { { 60 }, { 60, 1 }, { 3600, 60, 1 } }, { { 3600 }, { 3600, 60 }, { 3600, 60, 1 } } };
	double parts[3], days = 0;
	int dashed = 0, n = 0;

	for (;; text++) {
		size_t used = strspn(text, digits);
		double part;

		if (!used || used > 7 || n == 3)
			return false;
		part = atof(text);
		text += used;
		if (*text == '-' && !dashed && !n) {
			dashed = 1;
			days = part;
			continue;
		}
		parts[n++] = part;
		if (*text != ':')
			break;
	}
	*seconds = days * day;
	for (int i = 0; i < n; i++)
		*seconds += parts[i] * units[dashed][n - 1][i];
	return !*text;
}

/* Reads a length of time: Slurm's forms, 10s, 1h30m or 14d. */
static bool span(const char *text, double *seconds)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "ms", 1e-3 }, { "us", 1e-6 }, { "ns", 1e-9 }, { "h", 3600 }, { "m", 60 }, { "s", 1 } };
	size_t used = strspn(text, digits), i;
	double n;

	if (slurm_time(text, seconds))
		return true;
	if (used && !strcmp(text + used, "d")) {
		decimal(text, seconds);
		*seconds *= day;
		return true;
	}
	for (*seconds = 0; *text;) {
		if (!(used = decimal(text, &n)))
			return false;
		text += used;
		for (i = 0; i < sizeof(units) / sizeof(*units) && strncmp(text, units[i].name, strlen(units[i].name)); i++)
			;
		if (i == sizeof(units) / sizeof(*units))
			return false;
		text += strlen(units[i].name);
		*seconds += n * units[i].seconds;
	}
	return used != 0;
}

static bool name(const char *text)
{
	size_t n = strspn(text, letters);

	return n && n <= LONGEST_NAME && !text[n];
}

static bool saves(const char *text)
{
	double s;

	return !strcmp(text, "notice") || !strcmp(text, "term") || !strcmp(text, "never") || (span(text, &s) && s >= 1 && s <= 365 * day);
}

static bool within_a_day(const char *text)
{
	double s;

	return span(text, &s) && s >= 1e-3 && s <= day;
}

static bool steps(const char *text)
{
	double n;

	return number(text, &n) && n > 0 && n <= most_steps;
}

static bool rate(const char *text, double *n)
{
	return number(text, n) && (!*n || (*n >= slowest && *n <= fastest));
}

static bool a_rate(const char *text)
{
	double n;

	return rate(text, &n);
}

static bool memory(const char *text)
{
	double n;
	size_t used = strspn(text, "0123456789.");
	const char *units = "mgt", *unit = text[used] ? strchr(units, tolower((unsigned char)text[used])) : NULL;

	if (!unit || text[used + 1] || decimal(text, &n) != used)
		return false;
	for (long i = unit - units; i > 0; i--)
		n *= 1024;
	return n >= 1 && n <= 16. * 1024 * 1024;
}

static bool signal_name(const char *text)
{
	static const char *const names[] = { "USR1", "USR2", "TERM", "INT", "HUP", "QUIT", "CONT", "URG", "WINCH", "ALRM", "PROF", "VTALRM" };

	if (!strcmp(text, "none"))
		return true;
	if (!strncmp(text, "B:", 2))
		text += 2;
	if (!strncasecmp(text, "SIG", 3))
		text += 3;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcasecmp(text, names[i]))
			return true;
	}
	return false;
}

static bool idle(const char *text)
{
	return !strcmp(text, "idle");
}

static bool yes(const char *text)
{
	return !strcmp(text, "yes");
}

/* The hints; those whose key ends with a dot have a GPU model behind it. */
static const struct hint {
	const char *key;
	bool (*fits)(const char *value);
	const char *advice;
} hints_known[] = {
	{ "kind", name, "a kind is up to 64 letters, digits and ._-+#@:" },
	{ "gpus", idle, "write gpus=idle, for a job that takes idle GPUs only" },
	{ "saves", saves, "write notice, term, never, or an interval of at most 365 days like 30m" },
	{ "save-time", within_a_day, "write how long one save takes, like 90s, at most a day" },
	{ "steps", steps, "write the number of steps that the job will do, above 0" },
	{ "steps/s.", a_rate, "write 0 if the job does not run there, else steps a second from 1e-10 to 1e9" },
	{ "mem.", memory, "write GPU memory with its unit, like 900m or 37.5g, from 1m to 16t" },
	{ "min-lease", within_a_day, "write how long the job wants to run at least before it is requeued, like 30m, at most a day" },
	{ "share", yes, "write share=yes, for a job that may take turns with other jobs on its GPU" },
	{ "signal", signal_name, "write none, or a signal like USR1, USR2 or TERM, with B: before it for the batch script alone" },
};

/* The hint with this key; its model is stored in model: empty if the key has none. */
static const struct hint *known(const char *key, const char **model)
{
	for (size_t i = 0; i < sizeof(hints_known) / sizeof(*hints_known); i++) {
		size_t n = strlen(hints_known[i].key);
		bool per_model = hints_known[i].key[n - 1] == '.';

		*model = key + n;
		if (per_model ? !strncmp(key, hints_known[i].key, n) : !strcmp(key, hints_known[i].key))
			return &hints_known[i];
	}
	*model = "";
	return NULL;
}

/* True if the text before here has the key already. */
static bool repeated(const char *text, const char *here, const char *key)
{
	size_t n = strlen(key);

	for (const char *word = text; (word += strspn(word, separators)) < here; word += strcspn(word, separators)) {
		if (!strncmp(word, key, n) && word[n] == '=')
			return true;
	}
	return false;
}

/* True if a rate before here is so different that one of both must be wrong. */
static bool incredible(const char *text, const char *here, double n)
{
	for (const char *word = text; n && (word += strspn(word, separators)) < here; word += strcspn(word, separators)) {
		char value[LONGEST_WORD] = "";
		double other;

		if (strncmp(word, "steps/s.", strlen("steps/s.")))
			continue;
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(word, separators), word);
		if (strchr(value, '=') && rate(strchr(value, '=') + 1, &other) && other && (n > widest * other || other > widest * n))
			return true;
	}
	return false;
}

bool hints_mistake(const char *hints, const char **next, char *mistake, size_t size)
{
	char word[LONGEST_WORD], *value;
	double n;

	for (;;) {
		const char *here = *next += strspn(*next, separators), *model, *problem = NULL;
		const struct hint *h;
		size_t length = strcspn(here, separators);

		if (!length)
			return false;
		*next = here + length;
		snprintf(word, sizeof(word), "%.*s", (int)length, here);
		value = strchr(word, '=');
		if (value)
			*value++ = '\0';
		h = known(word, &model);
		if (*next - hints >= HINTS_LENGTH) {
			snprintf(mistake, size, "%.40s: hints end after %d bytes; shorten them", word, HINTS_LENGTH);
			*next += strlen(*next);
			return true;
		}
		if (!h || !value)
			problem = "unknown; hints are kind=, saves=, save-time=, signal=, min-lease=, mem.MODEL=, steps=, steps/s.MODEL=, gpus=idle and share=yes";
		else if (*model && !name(model))
			problem = "write a GPU model as Slurm names it";
		else if (!*model && h->key[strlen(h->key) - 1] == '.')
			problem = "write a GPU model behind the dot, as Slurm names it";
		else if (!h->fits(value))
			problem = h->advice;
		else if (h->fits != idle && h->fits != yes && repeated(hints, here, word))
			problem = "given twice; keep one";
		else if (h->fits == a_rate && rate(value, &n) && incredible(hints, here, n))
			problem = "no GPU model is more than 10000 times as fast as another";
		if (!problem)
			continue;
		snprintf(mistake, size, "%.40s%s%.40s: %s", word, value ? "=" : "", value ? value : "", problem);
		return true;
	}
}

bool hints_note(const char *hints, char *note, size_t size)
{
	size_t used = (size_t)snprintf(note, size, "%s", HINTS_NOTE);
	bool any = false;

	for (const char *word = hints; *(word += strspn(word, separators)); word += strcspn(word, separators)) {
		size_t length = strcspn(word, separators);

		if (length + 2 > size - used)
			break;
		if (any)
			note[used++] = ',';
		/* Of other words in the field, |, blanks and line ends would end ours. */
		for (size_t i = 0; i < length; i++, used++)
			note[used] = isgraph((unsigned char)word[i]) && word[i] != '|' ? word[i] : '_';
		note[used] = '\0';
		any = true;
	}
	return any;
}
