/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of hints.c; run by `make check` with the table of hints as argument. */
#include "hints.h"

#include <stdio.h>
#include <string.h>

static int failures;

#define EXPECT(what) \
	do { \
		if (!(what)) { \
			printf("%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, #what); \
			failures++; \
		} \
	} while (0)

/* The first message about hints; empty: there is none. */
static const char *first(const char *hints)
{
	static char mistake[HINTS_MISTAKE];
	const char *next = hints;

	if (!hints_mistake(hints, &next, mistake, sizeof(mistake)))
		mistake[0] = '\0';
	return mistake;
}

/* The table that the sidecar's parser passes too. */
static void the_table_holds(const char *path)
{
	FILE *table = fopen(path, "r");
	char line[1024];
	int lines = 0;

	if (!table) {
		perror(path);
		failures++;
		return;
	}
	for (; fgets(line, sizeof(line), table); lines++) {
		char *hints = strchr(line, ' ');
		bool good = !strncmp(line, "good ", 5);

		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#')
			continue;
		if (!hints || good != !*first(hints + 1)) {
			printf("%s:%d: %s: said '%s'\n", path, lines + 1, line, hints ? first(hints + 1) : "");
			failures++;
		}
	}
	EXPECT(lines > 90);
	fclose(table);
}

static void all_mistakes_are_told(void)
{
	const char *hints = "kind=a/b,gpus=idle mem.a100=40,sorts=1", *next = hints;
	char mistake[HINTS_MISTAKE];

	EXPECT(hints_mistake(hints, &next, mistake, sizeof(mistake)));
	EXPECT(!strcmp(mistake, "kind=a/b: a kind is up to 64 letters, digits and ._-+#@:"));
	EXPECT(hints_mistake(hints, &next, mistake, sizeof(mistake)));
	EXPECT(!strcmp(mistake, "mem.a100=40: write GPU memory with its unit, like 900m or 37.5g, from 1m to 16t"));
	EXPECT(hints_mistake(hints, &next, mistake, sizeof(mistake)));
	EXPECT(!strcmp(mistake, "sorts=1: unknown; hints are kind=, saves=, save-time=, signal=, min-lease=, mem.MODEL=, steps=, steps/s.MODEL=, gpus=idle and share=yes"));
	EXPECT(!hints_mistake(hints, &next, mistake, sizeof(mistake)));
}

static void long_hints_are_told(void)
{
	char hints[2000];

	memset(hints, ',', sizeof(hints));
	memcpy(hints + 600, "kind=a,steps=1", 15);
	EXPECT(!strcmp(first(hints), "kind: hints end after 512 bytes; shorten them"));
	memset(hints, 'x', sizeof(hints) - 1);
	hints[sizeof(hints) - 1] = '\0';
	EXPECT(strstr(first(hints), ": hints end after 512 bytes; shorten them"));
}

static bool noted(const char *hints, size_t size, const char *want)
{
	char note[HINTS_LENGTH + sizeof(HINTS_NOTE)] = "";

	if (hints_note(hints, note, size) != (want != NULL) || (want && strcmp(note, want))) {
		printf("%s: noted as '%s', not '%s'\n", hints, note, want ? want : "nothing");
		return false;
	}
	return true;
}

static void the_note_is_one_word(void)
{
	EXPECT(noted("kind=a", HINTS_LENGTH, "fairlease:kind=a"));
	EXPECT(noted(" kind=a;\tmem.v100=3g,,\nsignal=B:TERM ", HINTS_LENGTH, "fairlease:kind=a,mem.v100=3g,signal=B:TERM"));
	EXPECT(noted("kind=a|fl:begin=0,\x01\xc3\xa9", HINTS_LENGTH, "fairlease:kind=a_fl:begin=0,___"));
	EXPECT(noted("", HINTS_LENGTH, NULL));
	EXPECT(noted(" ,;", HINTS_LENGTH, NULL));
	EXPECT(noted("kind=a,steps=5", sizeof("fairlease:kind=a,steps=5"), "fairlease:kind=a,steps=5"));
	EXPECT(noted("kind=a,steps=5", sizeof("fairlease:kind=a,steps=5") - 1, "fairlease:kind=a"));
	EXPECT(noted("kind=a,steps=5", sizeof("fairlease:kind=a") - 1, NULL));
}

/* Draws hints from parts of hints: the sanitizers find accesses outside of the buffers. */
static void any_text_is_read(void)
{
	static const char *const parts[] = { "kind=", "mem.", "steps/s.", "saves=", "save-time=", "min-lease=", "signal=", "a100=", "B:", "SIG", "9", "1-2:3",
					     "1e", "-", ".", "g", ",", ";", " ", "|", "\xff", "%s", "99999999999999999999", "h", "d", "=" };
	unsigned long long state = 1;

	for (int i = 0; i < 50000; i++) {
		char hints[1024] = "", mistake[HINTS_MISTAKE], note[64];
		const char *next = hints;
		int mistakes = 0;

		for (size_t used = 0; used < (size_t)(i % 900);) {
			state = state * 6364136223846793005ULL + 1442695040888963407ULL;
			used += (size_t)snprintf(hints + used, sizeof(hints) - used, "%s", parts[(state >> 33) % (sizeof(parts) / sizeof(*parts))]);
		}
		while (hints_mistake(hints, &next, mistake, sizeof(mistake)))
			EXPECT(*mistake && ++mistakes <= HINTS_LENGTH);
		if (hints_note(hints, note, sizeof(note)))
			EXPECT(!strncmp(note, HINTS_NOTE, strlen(HINTS_NOTE)) && !strpbrk(note, " ;|\n\t"));
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: hints.test hints.txt\n");
		return 2;
	}
	the_table_holds(argv[1]);
	all_mistakes_are_told();
	long_hints_are_told();
	the_note_is_one_word();
	any_text_is_read();
	printf("hints_test: %s\n", failures ? "FAILED" : "ok");
	return failures != 0;
}
