/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of gate.c; run by `make check` with the shipped settings and ways.txt as arguments. */
#include "gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define EXPECT(what) \
	do { \
		if (!(what)) { \
			printf("%s:%d: %s: not so: %s\n", __FILE__, __LINE__, __func__, #what); \
			failures++; \
		} \
	} while (0)

static struct gate_settings parsed(const char *text)
{
	struct gate_settings s;
	char error[GATE_TEXT];

	if (!gate_parse(text, "f", &s, error, sizeof(error))) {
		printf("%s: not accepted: %s\n", text, error);
		failures++;
	}
	return s;
}

static bool refused(const char *text, const char *because)
{
	struct gate_settings s;
	char error[GATE_TEXT] = "";

	if (gate_parse(text, "f", &s, error, sizeof(error)) || strcmp(error, because)) {
		printf("%s: said '%s', not '%s'\n", text, error, because);
		return false;
	}
	return true;
}

/* Every word of every way; the word for all yields to it. */
static void ways_are_read(void)
{
	static const char *const keys[] = { [GATE_NO_REQUEUE] = "no_requeue", [GATE_CONTIGUOUS] = "contiguous", [GATE_SESSION] = "session",
					    [GATE_HET] = "het", [GATE_OTHER] = "other", [GATE_NO_GPUS] = "no_gpus",
					    [GATE_EXPEDITE] = "expedite" };
	static const char *const words[] = { "", "charge", "leave", "refuse", "override" };
	char text[256], error[GATE_TEXT];
	struct gate_settings s;

	for (enum gate_way way = 0; way < GATE_WAYS; way++) {
		for (enum gate_opt_out word = GATE_UNSET; word <= GATE_OVERRIDE; word++) {
			bool known = word != GATE_UNSET && (word != GATE_OVERRIDE || way == GATE_NO_REQUEUE || way == GATE_CONTIGUOUS || way == GATE_EXPEDITE);

			known = known && (word != GATE_LEAVE || way != GATE_EXPEDITE);

			snprintf(text, sizeof(text), "partitions=gpu\nopt_out.%s=%s\nopt_out=leave", keys[way], words[word]);
			EXPECT(gate_parse(text, "f", &s, error, sizeof(error)) == known);
			EXPECT(!known || s.ways[way] == word);
			EXPECT(known || strstr(error, way == GATE_EXPEDITE ? "is none of charge, refuse and override" : "is none of charge, leave"));
		}
	}
}

static void jobs_without_gpus_are_refused(void)
{
	struct gate_settings s = parsed("partitions=gpu\nopt_out.no_gpus=refuse\nexclude_accounts=staff");
	struct gate_job j = { .partition = "gpu", .batch = true };
	char text[GATE_TEXT];

	EXPECT(gate_refuses_without_gpus(&s, &j));
	gate_no_gpus_refusal("gpu", text, sizeof(text));
	EXPECT(strstr(text, "partition gpu is for jobs with GPUs"));
	j.tres[1] = "gres/shard:1";
	EXPECT(!gate_refuses_without_gpus(&s, &j));
	j.tres[1] = NULL;
	j.account = "staff";
	EXPECT(!gate_refuses_without_gpus(&s, &j));
	j.account = NULL;
	EXPECT(gate_refuses_without_gpus(&s, &j));
	s = parsed("partitions=gpu\nopt_out=refuse");
	j.partition = "gpu";
	EXPECT(!gate_refuses_without_gpus(&s, &j));
}

static void settings_are_read(void)
{
	struct gate_settings s = parsed("# words\n\n partitions = gpu,long \ngate_seconds=30\nmark_requeue=yes\nexclude_users=a,b");

	EXPECT(!strcmp(s.partitions, "gpu,long"));
	EXPECT(s.gate_seconds == 30);
	EXPECT(s.mark_requeue);
	EXPECT(s.gate_shards);
	EXPECT(!parsed("partitions=gpu\ngate_shards=no").gate_shards);
	EXPECT(s.heartbeat_max_age == 60);
	EXPECT(s.protect_gate);
	EXPECT(!strcmp(s.heartbeat_dir, "/run/fairlease"));
	EXPECT(!strcmp(s.exclude_users, "a,b"));
	EXPECT(!s.gate_license[0]);
	EXPECT(s.gate_site_factor == -1000000000);
	for (enum gate_way way = 0; way < GATE_WAYS; way++)
		EXPECT(s.ways[way] == GATE_CHARGE);
	s = parsed("partitions=gpu\ngate_license=fair-lease.2\ngate_site_factor=-50\nopt_out=refuse");
	EXPECT(!strcmp(s.gate_license, "fair-lease.2"));
	EXPECT(s.gate_site_factor == -50);
	for (enum gate_way way = 0; way < GATE_WAYS; way++)
		EXPECT(s.ways[way] == (way == GATE_NO_REQUEUE || way == GATE_NO_GPUS || way == GATE_EXPEDITE ? GATE_CHARGE : GATE_REFUSE));
	EXPECT(parsed("partitions=gpu\ngate_site_factor=0\nopt_out=leave").ways[GATE_SESSION] == GATE_LEAVE);
	ways_are_read();
}

static void wrong_settings_are_refused(void)
{
	static char longer[GATE_LIST + 64];

	EXPECT(refused("", "f: partitions is not set: name the partitions that fairlease manages"));
	EXPECT(refused("partitions=a\n\ngate=5\n", "f:3: unknown key 'gate'"));
	EXPECT(refused("partitions=a\nGATE_SECONDS=5", "f:2: unknown key 'GATE_SECONDS'"));
	EXPECT(refused("partitions=a\npartitions=b", "f:2: partitions is set twice"));
	EXPECT(refused("partitions=../a", "f:1: partitions is not made of partition names"));
	EXPECT(refused("partitions", "f:1: not of the form key=value"));
	EXPECT(refused("=a", "f:1: unknown key ''"));
	EXPECT(refused("gate_seconds=", "f:1: gate_seconds is not a number of seconds from 1 to a year"));
	EXPECT(refused("gate_seconds=\n5", "f:1: gate_seconds is not a number of seconds from 1 to a year"));
	EXPECT(refused("gate_seconds=0", "f:1: gate_seconds is not a number of seconds from 1 to a year"));
	EXPECT(refused("gate_seconds=10m", "f:1: gate_seconds is not a number of seconds from 1 to a year"));
	EXPECT(refused("gate_seconds=99999999999999999999", "f:1: gate_seconds is not a number of seconds from 1 to a year"));
	EXPECT(refused("gate_seconds=+5", "f:1: gate_seconds is not a number of seconds from 1 to a year"));
	EXPECT(refused("gate_license=a:1", "f:1: gate_license is not the name of a licence: use letters, digits, _, - and ."));
	EXPECT(refused("gate_license=a|b", "f:1: gate_license is not the name of a licence: use letters, digits, _, - and ."));
	EXPECT(refused("gate_site_factor=", "f:1: gate_site_factor is not a whole number from -1073741823 to 0"));
	EXPECT(refused("gate_site_factor=-", "f:1: gate_site_factor is not a whole number from -1073741823 to 0"));
	EXPECT(refused("gate_site_factor=1", "f:1: gate_site_factor is not a whole number from -1073741823 to 0"));
	EXPECT(refused("gate_site_factor=-1073741824", "f:1: gate_site_factor is not a whole number from -1073741823 to 0"));
	EXPECT(refused("gate_site_factor=-1e9", "f:1: gate_site_factor is not a whole number from -1073741823 to 0"));
	EXPECT(refused("opt_out=yes", "f:1: opt_out is none of charge, leave and refuse"));
	EXPECT(refused("opt_out=", "f:1: opt_out is none of charge, leave and refuse"));
	EXPECT(refused("gate_shards=true", "f:1: gate_shards is neither yes nor no"));
	memset(longer, 'x', sizeof(longer) - 1);
	memcpy(longer, "partitions=", 11);
	EXPECT(refused(longer, "f:1: partitions is too long"));
}

static void the_licence_is_looked_for(void)
{
	EXPECT(gate_configured("ClusterName=c\nLicenses=fair:1000000\n", "fair"));
	EXPECT(gate_configured("ClusterName=c licenses = matlab:5,fair:1000000", "fair"));
	EXPECT(gate_configured("Licenses=matlab:5,\\\n  fair:1000000\n", "fair"));
	EXPECT(gate_configured("ClusterName=c\n include /etc/slurm/more.conf\n", "fair"));
	EXPECT(!gate_configured("", "fair"));
	EXPECT(!gate_configured("#Licenses=fair:1\nAccountingStorageTRES=license/fair\n", "fair"));
	EXPECT(!gate_configured("Licenses=matlab:5 # fair\n", "fair"));
	EXPECT(!gate_configured("Licenses=fairy:5,un-fair:2,Fair:1\nClusterName=fair\n", "fair"));
	EXPECT(!gate_configured("#include more\nIncluded=1\n", "fair"));
}

static void requests_are_recognised(void)
{
	static const char *const gpus[] = { "gpu", "gpu:1", "gpu:v100", "gpu:v100:2", "gres/gpu:2", "gres:gpu:2", "gres/gpu=1", "gres/gpu:v100=4",
					    "gres/nic:1,gres/gpu:1", "license:x;gres/gpu:1", "gpu:v0", "gpu:10", " gpu:2" };
	static const char *const others[] = { "", "none", "gpu:0", "gpu:v100:0", "gres/gpu=0", "gpu:00", "gpus:1", "gres/gpumem:1", "mygpu:1", "nic:gpu:1",
					      "shard:1", "gres/shard:2", "gres/", "gres/,", ",;" };

	for (size_t i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++)
		if (!gate_wants_gpu(gpus[i], false)) {
			printf("'%s' asks for a GPU\n", gpus[i]);
			failures++;
		}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (gate_wants_gpu(others[i], false)) {
			printf("'%s' asks for no GPU\n", others[i]);
			failures++;
		}
	EXPECT(!gate_wants_gpu(NULL, true));
	EXPECT(gate_wants_gpu("gres/shard:2", true));
	EXPECT(!gate_wants_gpu("gres/shard:0", true));
	EXPECT(gate_wants_gpu("gres/mps:50", true));
	EXPECT(!gate_wants_gpu("gres/mps:50", false));
	EXPECT(!gate_wants_gpu("gres/mpsx:50", true));
}

static struct gate_job batch(void)
{
	return (struct gate_job){ .partition = "gpu", .account = "nlp", .user = "1001", .batch = true, .tres = { NULL, "gres/gpu:1" } };
}

static void the_right_jobs_are_gated(void)
{
	struct gate_settings s = parsed("partitions=gpu, long\ndefault_partition=gpu\nexclude_accounts=ops, sys\nexclude_users=7\nexclude_qos=debug\n");
	char p[GATE_TEXT];
	struct gate_job j;

#define NAMES_IT(wanted, name) (j = batch(), j.partition = (wanted), gate_names(&s, &j, name))
	EXPECT(NAMES_IT("gpu", "gpu"));
	EXPECT(NAMES_IT(NULL, "gpu"));
	EXPECT(NAMES_IT("", "gpu"));
	EXPECT(NAMES_IT("free, long,gpu", "long"));
	EXPECT(NAMES_IT("free,long,gpu", "gpu")); /* each of them, not only the first */
	EXPECT(!NAMES_IT("free", "gpu"));
	EXPECT(!NAMES_IT("free,lon,longer", "long"));

#define WITH(change) (j = batch(), change, gate_concerns(&s, &j))
	EXPECT(WITH(j.batch = true));
	EXPECT(WITH((j.tres[3] = "gres/gpu=1", j.tres[1] = NULL)));
	EXPECT(!WITH(j.tres[1] = NULL));
	EXPECT(!WITH(j.account = "sys"));
	EXPECT(!WITH(j.user = "7"));
	EXPECT(!WITH(j.qos = "debug"));
	EXPECT(WITH(j.account = NULL));
	EXPECT(WITH(j.no_requeue = true));
	s.default_partition[0] = '\0';
	EXPECT(!NAMES_IT(NULL, "gpu"));

	EXPECT(gate_partition(&s, 0, p, sizeof(p)) && !strcmp(p, "gpu"));
	EXPECT(gate_partition(&s, 1, p, sizeof(p)) && !strcmp(p, "long"));
	EXPECT(!gate_partition(&s, 2, p, sizeof(p)));
}

static void opting_out_is_recognised(void)
{
	struct gate_job j;
	const char *option;
	enum gate_way way;

#define OPTION(change) (j = batch(), change, option = gate_opts_out(&j, &way), option ? option : "")
	EXPECT(!strcmp(OPTION(j.batch = true), ""));
	EXPECT(!strcmp(OPTION(j.batch = false), "salloc, or srun outside of a batch job"));
	EXPECT(!strcmp(OPTION((j.het = true, j.batch = false)), "heterogeneous components (:)"));
	EXPECT(!strcmp(OPTION(j.cron = true), "scrontab"));
	EXPECT(!strcmp(OPTION(j.shares = true), "--exclusive=user, =mcs or =topo"));
	EXPECT(!strcmp(OPTION(j.tres[2] = "gres/gpu:1"), "--gpus-per-socket"));
	EXPECT(!strcmp(OPTION(j.tres[2] = "gres/nic:1"), ""));
	EXPECT(!strcmp(OPTION(j.features = "[a|b]"), "brackets, * or a comma in --constraint"));
	EXPECT(!strcmp(OPTION(j.features = "a&b|c"), ""));
	EXPECT(!strcmp(OPTION(j.tres[1] = "gres/gpu:v100:1,gres/gpu:k80:1"), "several GPU models in one job"));
	EXPECT(!strcmp(OPTION((j.tres[0] = "gres/gpu:v100", j.tres[1] = "gres/gpu:v1:1")), "several GPU models in one job"));
	EXPECT(!strcmp(OPTION((j.tres[0] = "gres/gpu:v100:4", j.tres[1] = "gres/gpu:v100")), ""));
	EXPECT(!strcmp(OPTION((j.tres[0] = "gres/gpu:4", j.tres[1] = "gpu:v100:2")), ""));
	EXPECT(!strcmp(OPTION((j.tres[0] = "gres/gpu=4,gpu:,gpu", j.tres[1] = "gres/nic:x:1,gpu:v100:1")), ""));
	EXPECT(!strcmp(OPTION(j.no_requeue = true), "--no-requeue") && way == GATE_NO_REQUEUE);
	EXPECT(!strcmp(OPTION((j.no_requeue = true, j.contiguous = true, j.min_nodes = 2)), "--contiguous") && way == GATE_CONTIGUOUS);
	EXPECT(*OPTION(j.batch = false) && way == GATE_SESSION);
	EXPECT(*OPTION(j.het = true) && way == GATE_HET);
	EXPECT(*OPTION(j.cron = true) && way == GATE_OTHER);
}

/* Gives the job an option of ways.txt; returns the way and the words of that option in messages. */
static const char *with_option(struct gate_job *j, const char *option, enum gate_way *way)
{
#define OPTION_OF(name, change, its_way, text) \
	if (!strcmp(option, name)) { \
		change; \
		*way = its_way; \
		return text; \
	}
	OPTION_OF("het", j->het = true, GATE_HET, "heterogeneous components (:)")
	OPTION_OF("contiguous", (j->contiguous = true, j->min_nodes = 2), GATE_CONTIGUOUS, "--contiguous")
	OPTION_OF("session", j->batch = false, GATE_SESSION, "salloc, or srun outside of a batch job")
	OPTION_OF("cron", j->cron = true, GATE_OTHER, "scrontab")
	OPTION_OF("exclusive", j->shares = true, GATE_OTHER, "--exclusive=user, =mcs or =topo")
	OPTION_OF("socket", j->tres[2] = "gres/gpu:1", GATE_OTHER, "--gpus-per-socket")
	OPTION_OF("models", j->tres[0] = "gres/gpu:v100:1,gres/gpu:k80:1", GATE_OTHER, "several GPU models in one job")
	OPTION_OF("brackets", j->features = "[a|b]", GATE_OTHER, "brackets, * or a comma in --constraint")
	OPTION_OF("no_requeue", j->no_requeue = true, GATE_NO_REQUEUE, "--no-requeue")
	return NULL;
}

/* Of several options the one counts that counts for the sidecar: its TestOneOfSeveralWaysOut reads the same file. */
static void one_of_several_options_counts(const char *path)
{
	char line[256], text[256];
	int lines = 0;
	FILE *file = fopen(path, "r");

	EXPECT(file);
	while (file && fgets(line, sizeof(line), file)) {
		struct gate_job j = batch();
		enum gate_way way, got, any;
		const char *want, *option;
		char *rest, *word;

		snprintf(text, sizeof(text), "%s", line);
		word = strtok_r(line, " \n", &rest);
		if (!word || word[0] == '#')
			continue;
		want = with_option(&j, word, &way);
		EXPECT(want);
		while ((word = strtok_r(NULL, " \n", &rest)))
			EXPECT(with_option(&j, word, &any));
		option = gate_opts_out(&j, &got);
		if (!want || !option || strcmp(option, want) || got != way) {
			printf("%s: %s", option ? option : "none", text);
			failures++;
		}
		lines++;
	}
	EXPECT(lines > 40);
	if (file)
		fclose(file);
}

/* One node is contiguous: the sidecar's Request.MostNodes has the same rules. */
static void contiguous_is_of_several_nodes(void)
{
	struct gate_job j;
	const char *option;
	enum gate_way way;

#define CONTIGUOUS(change) (j = batch(), j.contiguous = true, change, option = gate_opts_out(&j, &way), option && !strcmp(option, "--contiguous"))
	EXPECT(!CONTIGUOUS(j.min_nodes = 0));
	EXPECT(!CONTIGUOUS(j.min_nodes = 1));
	EXPECT(!CONTIGUOUS((j.min_nodes = 1, j.max_nodes = 1, j.tres[1] = "gpu:v100:4")));
	EXPECT(CONTIGUOUS((j.min_nodes = 2, j.max_nodes = 2)));
	EXPECT(CONTIGUOUS(j.min_nodes = 2));
	EXPECT(CONTIGUOUS((j.min_nodes = 1, j.max_nodes = 2)));
	EXPECT(!CONTIGUOUS(j.tasks = 1));
	EXPECT(CONTIGUOUS(j.tasks = 2));
	EXPECT(!CONTIGUOUS((j.tasks = 2, j.max_nodes = 1)));
#define CONTIGUOUS_JOB(job, change) CONTIGUOUS((j.tres[0] = (job), j.tres[1] = NULL, change))
	EXPECT(!CONTIGUOUS_JOB("gres/gpu:1", j.min_nodes = 0));
	EXPECT(!CONTIGUOUS_JOB("gres/gpu", j.min_nodes = 0));
	EXPECT(!CONTIGUOUS_JOB("gres/gpu:v100,gres/nic:4", j.min_nodes = 0));
	EXPECT(CONTIGUOUS_JOB("gres/gpu:8", j.min_nodes = 0));
	EXPECT(CONTIGUOUS_JOB("gres/gpu=v100=2", j.min_nodes = 1));
	EXPECT(CONTIGUOUS_JOB("gpu:10", j.min_nodes = 0));
	EXPECT(!CONTIGUOUS_JOB("gres/gpu:8", j.max_nodes = 1));
	EXPECT(!CONTIGUOUS_JOB("gres/gpu:8", j.tasks = 1));
	EXPECT(!CONTIGUOUS_JOB("gres/gpu:4", j.tres[1] = "gres/gpu:4"));
	EXPECT(CONTIGUOUS_JOB("gres/gpu:8", j.tres[1] = "gres/gpu:4"));
#define CONTIGUOUS_TASK(task, change) CONTIGUOUS((j.tres[3] = (task), j.tres[1] = NULL, change))
	EXPECT(!CONTIGUOUS_TASK("gres/gpu:1", j.min_nodes = 0));
	EXPECT(CONTIGUOUS_TASK("gres/gpu:2", j.min_nodes = 0));
	EXPECT(CONTIGUOUS_TASK("gres/gpu:1", j.tasks = 2));
	EXPECT(!CONTIGUOUS_TASK("gres/gpu:2", j.tasks_per_node = 2));
	j = batch();
	j.contiguous = true;
	EXPECT(!gate_opts_out(&j, &way));
	j.no_requeue = true;
	EXPECT(gate_opts_out(&j, &way) && way == GATE_NO_REQUEUE);
	j.min_nodes = 2;
	j.shares = true;
	EXPECT(gate_opts_out(&j, &way) && way == GATE_OTHER); /* as the sidecar: contiguous can be taken away, the others cannot */
}

static void old_heartbeats_do_not_count(void)
{
	struct gate_settings s = parsed("partitions=gpu\nheartbeat_max_age=60\nheartbeat_dir=/x");
	char path[GATE_TEXT];

	gate_heartbeat(&s, "gpu", path, sizeof(path));
	EXPECT(!strcmp(path, "/x/gpu"));
	EXPECT(gate_beats(&s, 1000, 1000));
	EXPECT(gate_beats(&s, 1000, 1060));
	EXPECT(!gate_beats(&s, 1000, 1061));
	EXPECT(gate_beats(&s, 1060, 1000));
	EXPECT(!gate_beats(&s, 1061, 1000)); /* a clock that jumped back */
}

static void begin_is_kept(void)
{
	struct gate_settings s = parsed("partitions=gpu\ngate_seconds=600");
	struct gate_job j = batch();
	char mark[GATE_TEXT];

	EXPECT(gate_begin(&s, &j, 0, 1000) == 1600);
	gate_mark(&j, 1600, mark, sizeof(mark));
	EXPECT(!strcmp(mark, "fl:begin=0,gate=1600"));
	j.begin = 1200;
	EXPECT(gate_begin(&s, &j, 0, 1000) == 1600);
	j.begin = 5000000000;
	EXPECT(gate_begin(&s, &j, 0, 1000) == 5000000000);
	gate_mark(&j, 5000000000, mark, sizeof(mark));
	EXPECT(!strcmp(mark, "fl:begin=5000000000,gate=5000000000"));
}

/* A dead daemon lets go after the smaller of gate_seconds and its own gate.ttl. */
static void the_smaller_ttl_counts(void)
{
	static const struct {
		const char *heartbeat;
		long ttl;
	} cases[] = {
		{ "1000\n996\n300\n", 300 },	  { "1000\n996\n300", 300 }, { "1000\n996\n300\nmore\n", 300 }, { "1000\n996\n", 0 }, { "1000\n", 0 },
		{ "", 0 },			  { "1000\n996\n-5\n", 0 },  { "1000\n996\n0\n", 0 },	   { "1000\n996\nx\n", 0 }, { "1000\n996\n12345678901\n", 0 },
	};
	struct gate_settings s = parsed("partitions=gpu\ngate_seconds=600");
	struct gate_job j = batch();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT(gate_ttl(cases[i].heartbeat) == cases[i].ttl);
	EXPECT(gate_begin(&s, &j, 300, 1000) == 1300);
	EXPECT(gate_begin(&s, &j, 900, 1000) == 1600);
	j.begin = 1400;
	EXPECT(gate_begin(&s, &j, 300, 1000) == 1400);
	j = batch();
	j.time_limit = 1;
	j.deadline = 1000 + 60 + GATE_SLACK + 120;
	EXPECT(gate_begin(&s, &j, 300, 1000) == 1120);
	EXPECT(gate_begin(&s, &j, 60, 1000) == 1060);
}

/* Slurm accepts a job whose begin time and time_min, or else time_limit, end by its deadline. */
static void deadlines_are_kept(void)
{
	static const struct {
		long deadline, limit, min; /* minutes from now */
		time_t begin, gate;	   /* seconds from now; gate 0: none */
	} cases[] = {
		{ 0, 60, 0, 0, 600 },	   { 65, 60, 0, 0, 240 },     { 61, 60, 0, 0, 0 },	 { 62, 60, 0, 0, 60 },
		{ 300, 60, 0, 0, 600 },	   { 30, 60, 10, 0, 600 },    { 15, 60, 10, 0, 240 },	 { 9, 60, 10, 0, 0 },
		{ 8, 0, 0, 0, 360 },	   { 2, 0, 0, 0, 0 },	      { -5, 0, 0, 0, 0 },	 { 300, 60, 0, 3600, 3600 },
		{ 125, 60, 0, 3600, 3600 }, { 65, 60, 0, 30, 240 },   { 65, 60, 0, 270, 270 },	 { 300, 0xffffffffL, 0, 0, 0 },
	};
	struct gate_settings s = parsed("partitions=gpu\ngate_seconds=600");
	const time_t now = 1000000;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct gate_job j = batch();
		time_t want = cases[i].gate ? now + cases[i].gate : 0, got;

		j.deadline = cases[i].deadline ? now + cases[i].deadline * 60 : 0;
		j.time_limit = cases[i].limit;
		j.time_min = cases[i].min;
		j.begin = cases[i].begin ? now + cases[i].begin : 0;
		got = gate_begin(&s, &j, 0, now);
		if (got != want) {
			printf("deadline %zu: gate %lld, not %lld\n", i, (long long)got, (long long)want);
			failures++;
		}
	}
}

static void licences_are_added(void)
{
	static char longest[2 * GATE_TEXT];
	static const struct {
		const char *own, *all; /* NULL: cannot be combined */
	} cases[] = {
		{ NULL, "fair:1" },
		{ "", "fair:1" },
		{ "matlab:1", "matlab:1,fair:1" },
		{ "matlab,ansys=2", "matlab,ansys=2,fair:1" },
		{ "matlab:1,", "matlab:1,,fair:1" },
		{ "a;b", "a;b,fair:1" },
		{ "fairy:1", "fairy:1,fair:1" },
		{ "fair@server:1", "fair@server:1,fair:1" },
		{ "fai", "fai,fair:1" },
		{ "fair", "fair" },
		{ "fair:1", "fair:1" },
		{ "matlab:1,fair:2", "matlab:1,fair:2" },
		{ "fair=1;matlab", "fair=1;matlab" },
		{ "a|b", NULL },
		{ "fair:1|b", NULL },
		{ "fair:0|b", NULL },
		{ "fair:0", "fair:1" },
		{ "fair=0", "fair:1" },
		{ "fair:00", "fair:1" },
		{ "fair:", "fair:1" },
		{ "fair: 1", "fair:1" },
		{ "fair:-1", "fair:1" },
		{ "fair:+1", "fair:1" },
		{ "fair:0,matlab:2", "matlab:2,fair:1" },
		{ "matlab:2;fair:0;ansys", "matlab:2,ansys,fair:1" },
		{ "fair:1,fair:0", "fair:1" },
		{ "fair:1,fair:2147483647", "fair:1" },
		{ "fair:4294967296", "fair:1" },
		{ "fair:1,fair:1", "fair:1" },
	};
	struct gate_settings s = parsed("partitions=gpu\ngate_license=fair");
	char all[GATE_TEXT];

	memset(longest, 'x', sizeof(longest) - 1);
	EXPECT(!gate_license(&s, longest, all, sizeof(all)));
	EXPECT(!gate_license(&s, longest + sizeof(longest) - sizeof(all) + 6, all, sizeof(all)));
	EXPECT(gate_license(&s, longest + sizeof(longest) - sizeof(all) + 7, all, sizeof(all)) && !strcmp(all + sizeof(all) - 9, "x,fair:1"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool can = gate_license(&s, cases[i].own, all, sizeof(all));

		if (can != (cases[i].all != NULL) || (can && strcmp(all, cases[i].all))) {
			printf("licences '%s': %s '%s'\n", cases[i].own ? cases[i].own : "none", can ? "become" : "cannot become", all);
			failures++;
		}
	}
	s.gate_license[0] = '\0';
	EXPECT(!gate_license(&s, NULL, all, sizeof(all)));
}

static void users_are_told(void)
{
	struct gate_settings s = parsed("partitions=gpu\nrequire_checkpoint=yes");
	struct gate_job j = batch();
	char text[GATE_TEXT];

	gate_explain(&j, false, text, sizeof(text));
	EXPECT(!strcmp(text, "fairlease: this job waits for a GPU lease of account nlp; at a lease's end it may be requeued, so save your work when "
			     "signalled; see: fairlease explain JOBID"));
	j.account = NULL;
	gate_explain(&j, true, text, sizeof(text));
	EXPECT(!strcmp(text, "fairlease: this job waits for a GPU lease of your default account; it then keeps its GPUs until it ends; see: fairlease explain JOBID"));

	gate_opt_out_refusal("--contiguous", "gpu", text, sizeof(text));
	EXPECT(!strcmp(text, "fairlease: GPU jobs of partition gpu cannot wait for a lease with --contiguous: submit with sbatch and without it, or use another "
			     "partition"));

	EXPECT(gate_refuses(&s, &j));
	gate_refusal(&s, text, sizeof(text));
	EXPECT(!strcmp(text, "fairlease: GPU jobs here must be able to save their work and resume: submit with --signal, for example --signal=USR1@120, or say that "
			     "yours can with --comment=checkpoint"));
	j.warned = true;
	EXPECT(!gate_refuses(&s, &j));
	j.warned = false;
	j.hints = "kind=a,checkpoint";
	EXPECT(!gate_refuses(&s, &j));
	j.hints = "kind=a";
	EXPECT(gate_refuses(&s, &j));
	j.comment = "mine, checkpoint";
	EXPECT(!gate_refuses(&s, &j));
	s.checkpoint_mark[0] = '\0';
	EXPECT(gate_refuses(&s, &j));
	s.require_checkpoint = false;
	EXPECT(!gate_refuses(&s, &j));
}

static void gates_are_protected(void)
{
	struct gate_settings s = parsed("partitions=gpu\nprotect_gate=yes\noperator_uids=990, 991\ngate_seconds=600");
	char text[GATE_TEXT];

	EXPECT(gate_opens(&s, 1001, NULL, 1000, 1000, text, sizeof(text)));
	EXPECT(strstr(text, "600 s"));
	EXPECT(gate_opens(&s, 1001, NULL, 1600, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 1001, NULL, 1601, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 1001, NULL, 0, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 0, NULL, 1000, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 991, NULL, 1000, 1000, text, sizeof(text)));
	EXPECT(gate_opens(&s, 99, NULL, 1000, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 1001, "", 0, 1000, text, sizeof(text)));

	snprintf(s.gate_license, sizeof(s.gate_license), "fair");
	EXPECT(gate_opens(&s, 1001, "", 0, 1000, text, sizeof(text)));
	EXPECT(strstr(text, "keeps the licence fair:1"));
	EXPECT(gate_opens(&s, 1001, "matlab:1", 0, 1000, text, sizeof(text)));
	EXPECT(gate_opens(&s, 1001, "fair:0", 0, 1000, text, sizeof(text)));
	EXPECT(gate_opens(&s, 1001, "fair:1,fair:0", 0, 1000, text, sizeof(text)));
	EXPECT(gate_opens(&s, 1001, "fair:1|matlab:1", 0, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 1001, "matlab:1,fair:1", 0, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 1001, NULL, 1000, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 0, "", 0, 1000, text, sizeof(text)));
	EXPECT(!gate_opens(&s, 990, "", 0, 1000, text, sizeof(text)));
	s.protect_gate = false;
	EXPECT(!gate_opens(&s, 1001, "", 1000, 1000, text, sizeof(text)));
}

static void budgets_refuse(void)
{
	const time_t now = 1000000;
	static const char line[] = "nlp-vision nlp 50.5 1000 month 1360000 2026-12-01T00:00 *=1,h100=4,a100=2.5\n";
	static const struct {
		const char *tres[4], *array;
		long limit, nodes, tasks, per_node; /* limit in minutes */
		time_t begin;
		double hours;
		long max_nodes;
		const char *features;
	} cases[] = {
		{ { "gres/gpu:2" }, NULL, 60, 0, 0, 0, 0, 2, 0, NULL },
		{ { "gres/gpu:h100:2" }, NULL, 90, 0, 0, 0, 0, 12, 0, NULL },
		{ { "gres/gpu:h100" }, NULL, 60, 0, 0, 0, 0, 4, 0, NULL },
		{ { "gres/gpu:h100:1,gres/gpu:a100:2" }, NULL, 60, 0, 0, 0, 0, 9, 0, NULL },
		{ { "gres/gpu:k80:2" }, NULL, 60, 0, 0, 0, 0, 2, 0, NULL },
		{ { NULL, "gres/gpu:4" }, NULL, 60, 3, 0, 0, 0, 12, 0, NULL },
		{ { NULL, "gres/gpu:4" }, NULL, 60, 0, 0, 0, 0, 4, 0, NULL },
		{ { NULL, NULL, NULL, "gres/gpu:2" }, NULL, 60, 0, 5, 0, 0, 10, 0, NULL },
		{ { NULL, NULL, NULL, "gres/gpu:2" }, NULL, 60, 2, 0, 3, 0, 12, 0, NULL },
		{ { NULL, NULL, "gres/gpu:1" }, NULL, 60, 2, 0, 0, 0, 2, 0, NULL },
		{ { "gres/gpu:8", "gres/gpu:4" }, NULL, 60, 1, 0, 0, 0, 8, 0, NULL },
		{ { "gres/gpu:1" }, "0-9", 60, 0, 0, 0, 0, 10, 0, NULL },
		{ { "gres/gpu:1" }, "1,3-9:2,20%3", 60, 0, 0, 0, 0, 6, 0, NULL },
		{ { "gres/gpu:1" }, "0-9%2", 60, 0, 0, 0, 0, 10, 0, NULL },
		{ { "gres/gpu:1" }, NULL, 0, 0, 0, 0, 0, 100, 0, NULL },			/* the period ends 100 hours from now */
		{ { "gres/gpu:1" }, NULL, 0xffffffffL, 0, 0, 0, 0, 100, 0, NULL },
		{ { "gres/gpu:1" }, NULL, 200 * 60, 0, 0, 0, 0, 100, 0, NULL },
		{ { "gres/gpu:1" }, NULL, 200 * 60, 0, 0, 0, 1000000 + 360000 - 7200, 2, 0, NULL },
		{ { "gres/gpu:1" }, NULL, 60, 0, 0, 0, 1000000 + 360001, 0, 0, NULL },
		{ { NULL, "gres/gpu:4" }, NULL, 60, 1, 0, 0, 0, 256, 64, NULL },
		{ { NULL, "gres/gpu:4" }, NULL, 60, 0, 0, 0, 0, 256, 64, NULL },
		{ { NULL, "gres/gpu:4" }, NULL, 60, 1, 3, 0, 0, 12, 64, NULL },	/* every node needs a task */
		{ { NULL, "gres/gpu:4" }, NULL, 60, 2, 1, 0, 0, 8, 2, NULL },
		{ { NULL, NULL, NULL, "gres/gpu:2" }, NULL, 60, 1, 0, 3, 0, 24, 4, NULL },
		{ { "gres/gpu:8" }, NULL, 60, 1, 0, 0, 0, 8, 64, NULL },
		{ { "gres/gpu:2" }, NULL, 60, 0, 0, 0, 0, 8, 0, "new" },
		{ { "gres/gpu" }, NULL, 60, 0, 0, 0, 0, 4, 0, "a&b" },
		{ { "gres/gpu:a100:2" }, NULL, 60, 0, 0, 0, 0, 5, 0, "new" },
		{ { "gres/gpu:k80:2" }, NULL, 60, 0, 0, 0, 0, 2, 0, "new" },
		{ { "gres/gpu:2" }, NULL, 60, 0, 0, 0, 0, 2, 0, "" },
		{ { "gres/gpu:0" }, NULL, 60, 0, 0, 0, 0, 0, 0, NULL },
		{ { "gres/shard:2" }, NULL, 60, 0, 0, 0, 0, 0, 0, NULL },
	};
	static struct gate_accepted accepted;
	struct gate_budget b = { .left = 0 };
	struct gate_job j = { .time_limit = 0 };
	char text[GATE_TEXT];

	EXPECT(gate_line_of(line, "", "nlp-vision") && gate_line_of(line, "", "NLP-Vision") && gate_line_of("@ann\n", "@", "ann") && gate_line_of("@ann", "@", "ann"));
	EXPECT(!gate_line_of(line, "", "nlp") && !gate_line_of(line, "", "nlp-visio") && !gate_line_of("@ann\n", "", "ann") && !gate_line_of("ann\n", "@", "ann"));
	EXPECT(!gate_line_of("", "", "nlp") && !gate_line_of("@anna\n", "@", "ann") && gate_line_of("@ann nlp,bio\n", "@", "ann"));
	/* Submissions with an account that the user does not have count for nothing: Slurm refuses them. */
	EXPECT(gate_may_use("@ann nlp,bio\n", "nlp") && gate_may_use("@ann nlp,bio\n", "Bio") && gate_may_use("@ann nlp", "nlp"));
	EXPECT(!gate_may_use("@ann nlp,bio\n", "nl") && !gate_may_use("@ann nlp,bio\n", "ann") && !gate_may_use("@ann nlp,bio\n", "nlp,bio"));
	EXPECT(!gate_may_use("@ann\n", "ann") && !gate_may_use("@ann\n", "") && !gate_may_use("@ann ,nlp\n", "") && !gate_may_use("", "nlp"));
	EXPECT(gate_budget(line, &b));
	EXPECT(!strcmp(b.tenant, "nlp") && b.left == 50.5 && b.total == 1000 && !strcmp(b.per, "month") && b.end == 1360000);
	EXPECT(!strcmp(b.ends, "2026-12-01T00:00") && !strcmp(b.prices, "*=1,h100=4,a100=2.5"));
	EXPECT(!gate_budget("nlp nlp 1 2 month 3 4", &b) && !gate_budget("nlp", &b) && !gate_budget("", &b) && !gate_budget("\n", &b));
	EXPECT(gate_budget(line, &b));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		double got;

		j = (struct gate_job){ .array = cases[i].array, .time_limit = cases[i].limit, .min_nodes = cases[i].nodes, .tasks = cases[i].tasks,
				       .tasks_per_node = cases[i].per_node, .begin = cases[i].begin, .max_nodes = cases[i].max_nodes, .features = cases[i].features };
		memcpy(j.tres, cases[i].tres, sizeof(j.tres));
		got = gate_hours(&j, &b, now);
		if (got != cases[i].hours) {
			printf("hours %zu: %f, not %f\n", i, got, cases[i].hours);
			failures++;
		}
	}
	/* Jobs that were accepted after the list was made count, until a newer list has them; those of other tenants do not. */
	EXPECT(!gate_exceeds(&accepted, &b, 7, 30, 990, 1000));
	EXPECT(gate_exceeds(&accepted, &b, 7, 30, 990, 1001) && b.left == 20.5);
	gate_budget(line, &b);
	EXPECT(!gate_exceeds(&accepted, &b, 7, 20.5, 990, 1002));
	gate_budget(line, &b);
	EXPECT(gate_exceeds(&accepted, &b, 7, 0.01, 1000, 1003));
	/* They count against their user alone, who may never have submitted them (--test-only). */
	gate_budget(line, &b);
	EXPECT(!gate_exceeds(&accepted, &b, 8, 50.5, 1000, 1003));
	gate_budget(line, &b);
	EXPECT(gate_exceeds(&accepted, &b, 8, 0.01, 1000, 1003) && b.left == 0);
	/* A job that can use nothing goes on, whatever is left. */
	b.left = -5;
	EXPECT(!gate_exceeds(&accepted, &b, 7, 0, 1000, 1003));
	EXPECT(gate_exceeds(&accepted, &b, 7, 0.001, 1004, 1004));
	gate_budget(line, &b);
	EXPECT(!gate_exceeds(&accepted, &b, 7, 30, 1001, 1003));
	gate_budget("a bio 50 1000 month 1360000 E *=1", &b);
	EXPECT(!gate_exceeds(&accepted, &b, 7, 50, 990, 1003));
	gate_budget(line, &b);
	for (int i = 0; i < 3 * GATE_ACCEPTED; i++)
		EXPECT(!gate_exceeds(&accepted, &b, 7, 0.001, 2000 + i, 2000 + i));
	/* Many small jobs of a moment all count. */
	for (int i = 0; i < 2 * GATE_ACCEPTED; i++) {
		gate_budget(line, &b);
		EXPECT(!gate_exceeds(&accepted, &b, 9, 50.0 / (2 * GATE_ACCEPTED), 90000, 90000));
	}
	gate_budget(line, &b);
	EXPECT(gate_exceeds(&accepted, &b, 9, 1, 90000, 90001));
	gate_budget(line, &b);

	j.time_limit = 60;
	gate_budget_refusal(&j, &b, 96, text, sizeof(text));
	EXPECT(!strcmp(text, "fairlease: this job may use 96.00 GPU-hours at prices, and account nlp has 50.50 left of its budget of 1000.00 for this month, besides what its "
			     "other jobs may use: ask for a shorter --time or fewer GPUs, or wait for the next period, from 2026-12-01T00:00; see: fairlease budgets"));
	j.time_limit = 0;
	b.left = -3;
	gate_budget_refusal(&j, &b, 96, text, sizeof(text));
	EXPECT(strstr(text, "at prices (it states no --time), and account nlp has 0.00 left"));
}

static void accepted_jobs_do_not_grow(void)
{
	struct gate_settings s = parsed("partitions=gpu\noperator_uids=990");
	struct gate_job none = { .comment = "c", .licenses = "l" }, j;
	char text[GATE_TEXT];

	EXPECT(!gate_grows(&s, &none, 1001, text, sizeof(text)));
#define GROWS(what) (j = none, j.what, gate_grows(&s, &j, 1001, text, sizeof(text)) && !gate_grows(&s, &j, 990, text, sizeof(text)) && !gate_grows(&s, &j, 0, text, sizeof(text)))
	EXPECT(GROWS(time_limit = 5));
	EXPECT(GROWS(begin = 5));
	EXPECT(GROWS(account = "nlp"));
	EXPECT(GROWS(features = "new"));
	EXPECT(GROWS(max_nodes = 2));
	EXPECT(GROWS(partition = "gpu"));
	EXPECT(GROWS(min_nodes = 2));
	EXPECT(GROWS(tasks = 2));
	EXPECT(GROWS(tasks_per_node = 2));
	for (int i = 0; i < 4; i++)
		EXPECT(GROWS(tres[i] = "gres/gpu:1"));
	EXPECT(strstr(text, "cancel the job and submit it again"));
	s.protect_gate = false;
	EXPECT(!gate_grows(&s, &j, 1001, text, sizeof(text)));
}

/* Random texts made of words that matter must neither crash nor be taken silently for settings. */
static void nonsense_is_survived(void)
{
	static const char *const words[] = { "partitions", "gate_seconds", "=", "\n", ",", "gpu", "#", " ", "\t", "yes", "12", "/", ".", "\r", "\xff",
					     "heartbeat_dir", "gres/", ":", "0", ";", "shard", "exclude_users", "gate_license", "opt_out", "refuse", "-", "|" };
	struct gate_settings licensed = parsed("partitions=a\ngate_license=gpu");
	unsigned long state = 20240607;

	for (int round = 0; round < 200000; round++) {
		struct gate_settings s;
		enum gate_way way;
		struct gate_job j = batch();
		struct gate_budget budget;
		char text[512], error[64], p[8], all[512], again[512];
		size_t len = 0;
		const char *word;

		for (;;) {
			state = state * 6364136223846793005UL + 1442695040888963407UL;
			word = words[(state >> 33) % (sizeof(words) / sizeof(words[0]))];
			if (len + strlen(word) >= sizeof(text) || (state >> 60) == 0)
				break;
			memcpy(text + len, word, strlen(word));
			len += strlen(word);
		}
		text[len] = '\0';
		if (gate_parse(text, "f", &s, error, sizeof(error)))
			EXPECT(s.partitions[0] && s.gate_seconds > 0 && s.heartbeat_max_age > 0);
		else
			EXPECT(error[0] == 'f');
		j.tres[0] = j.partition = j.array = text;
		if (gate_budget(text, &budget))
			EXPECT(gate_hours(&j, &budget, 0) >= 0);
		gate_opts_out(&j, &way);
		gate_configured(text, "gpu");
		if (gate_license(&licensed, text, all, sizeof(all))) {
			EXPECT(strstr(all, "gpu") && !strchr(text, '|'));
			EXPECT(gate_license(&licensed, all, again, sizeof(again)) && !strcmp(all, again));
		}
		j.contiguous = true;
		gate_opts_out(&j, &way);
		gate_concerns(&s, &j);
		if (gate_partition(&s, 0, p, sizeof(p)))
			EXPECT(gate_listed(s.partitions, p) && (gate_names(&s, &j, p) || !gate_listed(j.partition, p)));
	}
}

static void the_shipped_settings_are_good(const char *path)
{
	char text[65536], error[GATE_TEXT];
	struct gate_settings s;
	FILE *file = fopen(path, "r");

	EXPECT(file);
	if (!file)
		return;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	if (!gate_parse(text, path, &s, error, sizeof(error))) {
		puts(error);
		failures++;
	}
}

int main(int argc, char **argv)
{
	settings_are_read();
	wrong_settings_are_refused();
	jobs_without_gpus_are_refused();
	the_licence_is_looked_for();
	requests_are_recognised();
	the_right_jobs_are_gated();
	old_heartbeats_do_not_count();
	opting_out_is_recognised();
	contiguous_is_of_several_nodes();
	begin_is_kept();
	the_smaller_ttl_counts();
	deadlines_are_kept();
	licences_are_added();
	users_are_told();
	gates_are_protected();
	budgets_refuse();
	accepted_jobs_do_not_grow();
	nonsense_is_survived();
	if (argc > 1)
		the_shipped_settings_are_good(argv[1]);
	if (argc > 2)
		one_of_several_options_counts(argv[2]);
	printf("gate_test: %s\n", failures ? "FAILED" : "ok");
	return failures != 0;
}
