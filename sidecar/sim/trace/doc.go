// Package trace reads traces of the jobs on a cluster, and generates such jobs.
//
// Open and Read accept any of the formats below, gzipped or not, and detect the format by the
// content. Generate needs no file. Write converts either to plain CSV. The project ships readers
// and a generator, no traces.
//
//	format   where it comes from                                     licence
//	philly   github.com/msr-fiddle/philly-traces, cluster_job_log    CC-BY-4.0, Jeon et al., ATC'19
//	helios   github.com/S-Lab-System-Group/HeliosData,               CC-BY-4.0, Hu et al., SC'21
//	         data/Venus/cluster_log.csv
//	pai      github.com/alibaba/clusterdata, cluster-trace-gpu-v2020, see there, Weng et al., NSDI'22
//	         pai_job_table.csv and pai_task_table.csv in one folder
//	sacct    SacctCommand                                            your own
//	slurmdb  SlurmdbCommand, or sacct -a -D --json                   your own
//	gavel    the jobs that Gavel's simulator draws, with its table of  MIT, Narayanan et al., OSDI'20
//	         throughputs (readThroughputs)
//	plain    Write and WriteFull
//
// The sources of the fields:
//
//	Job       philly              helios       pai                    sacct, slurmdb         plain
//	ID        jobid               job_id       job_name               JobID (20_3, 11+0)     job_id
//	Tenant    vc                  vc           user                   Account                tenant
//	User      user                user         user                   User                   user
//	Name      -                   -            -                      JobName                name
//	Submit    submitted_time      submit_time  start_time of the job  Submit of the first    submit_time (s)
//	Runs      sum of end_time -   duration, or first start_time to    ElapsedRaw, Elapsed    duration_s
//	          start_time          end - start  last end_time of the   or End - Start,
//	                                           tasks with GPUs        summed over attempts
//	GPUs      most of any attempt gpu_num      plan_gpu * inst_num /  gres/gpu of AllocTRES, gpus
//	                                           100 of all tasks,      else of ReqTRES
//	                                           rounded up
//	Nodes     ips of that attempt node_num     -                      node=                  nodes
//	CPUs      -                   cpu_num      plan_cpu * inst_num /  cpu=                   cpus
//	                                           100
//	MemoryMB  -                   -            plan_mem * inst_num    mem=                   memory_mb
//	Model     -                   -            gpu_type, if one only  gres/gpu:MODEL, if it  model
//	                                                                  is that of all
//	Kind      -                   -            -                      -                      kind
//	Limit     -                   -            -                      Timelimit(Raw)         limit_s
//	Outcome   status              state        status                 State of the last      state
//
// Gavel's jobs have no tenant (they get "all"); job_type is their Kind and scale_factor their
// GPUs. Options.Throughputs and PerHour convert steps to Runs, and unit_arrival to Submit: a job
// has the run time of its gang on V100s.
//
// An empty Tenant becomes the User. In plain, columns from Name on may be missing, and so may
// user and state. PAI has no tenants above its users.
//
// # Which rows become jobs
//
// Every row has one classification, and the counts add up (see Counts). An invalid row (a
// negative time, an end before its start, a text for a number, an excess column, a repeated id)
// is bad: it is counted, and the first are named with file and line. A job without GPUs or run
// time is not bad but cannot be simulated; it is counted separately. A job that still ran when
// the trace was taken is a job; its Runs is the run time so far. A file that cannot be read to
// its end is an error: half a trace looks like a quiet month.
//
// Requeued attempts (sacct -D, show_duplicates) are rows with the same id. They are one job,
// submitted with the first, with the sum of the run times and the outcome of the last. Since
// Slurm reuses ids, an attempt belongs to the one before only if it has the same user and counts
// restarts or, without a restart count, if the one before had no final state. Otherwise it is a
// new job, named ID#2. A bad attempt is missing in the sum. Components of a heterogeneous job
// (123+0, 123+1) stay separate jobs; steps are skipped.
//
// Fractional GPUs (PAI only): a job gets whole GPUs. The shares of its instances are summed and
// rounded up, so the two halves of one job share a GPU, and a job of a quarter takes a whole one.
// That overstates the demand of small jobs; Counts.Rounded counts them.
//
// Slurm's accounting has GPUs only if AccountingStorageTRES lists gres/gpu, and models only if it
// lists gres/gpu:MODEL. Otherwise, and for jobs that requested shards of a GPU (gres/shard), a
// job appears to have none: it is in Counts.CPUOnly. GPUs of several models in one job have no
// Model.
//
// # Time
//
// Absolute times are counted from the submission of the first job, which is Epoch. Philly, Helios
// and sacct write local times without a zone. Options.Zone sets it; the default is UTC, which is
// wrong by an hour for jobs during a change of the clocks, and right for all others. (Philly's
// machines were on the American west coast, Helios' in China, which does not change clocks.)
// sacct prints in the zone of its machine. PAI's times have a hidden zero: in UTC+8 the time of
// day and the day of the week are right, the date is not.
//
// # Generated jobs
//
// LikeGavel and LikePhilly have the published numbers of the papers; a Recipe can be changed or
// written from scratch. Tenants vary over the day, with bursts on top:
//
//	r := trace.LikePhilly(1, 60)
//	r.Length = 14 * cluster.Day
//	r.Tenants = trace.Shifts(20, 0.8)
//	jobs, err := trace.Generate(r)
package trace
