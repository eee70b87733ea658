// Package trace reads what jobs ran on a cluster, and makes such jobs up.
//
// Open and Read take any of the formats below, gzipped or not, and find out by the
// content which it is. Generate needs no file. Write makes plain CSV of either.
// The project ships readers and a generator, no traces.
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
// What becomes of the columns:
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
// Gavel's jobs have no tenant (they get "all"), job_type is their Kind and scale_factor their GPUs. Steps become
// Runs, and unit_arrival Submit, by Options.Throughputs and PerHour: a job runs for as long as its gang would on V100s.
//
// An empty Tenant becomes the User. Columns from Name on may be missing in plain,
// as may user and state. PAI knows no tenants above its users.
//
// # Which rows become jobs
//
// Every row has one fate, and the counts add up (see Counts). A row that makes no
// sense (a negative time, an end before its start, a text for a number, a column
// too many, an id for the second time) is bad: it is counted, and the first are
// named with file and line. A job without GPUs or without any run time is not bad
// but nothing to simulate; it is counted apart. A job that still ran when the trace
// was taken is a job; its Runs is what was seen so far. A file that cannot be read
// to its end is an error: half a trace looks like a quiet month.
//
// Requeued attempts (sacct -D, show_duplicates) are rows with the same id. They
// are one job that was submitted with the first, ran for the sum and ended as the
// last. Since ids come round again, an attempt belongs to the one before only if it
// has the same user and counts restarts, or, where restarts are not told, if the
// one before did not end for good. Otherwise it is a new job, called ID#2. An
// attempt that is bad is missing in the sum. Components of a heterogeneous job (123+0, 123+1)
// stay jobs of their own; steps are passed over.
//
// Fractional GPUs (PAI only): a job is given whole GPUs. The shares that its instances
// ask for are summed and rounded up, so the two halves of one job share a GPU, and a
// job of a quarter takes a whole one. That overstates the demand of small jobs;
// Counts.Rounded says of how many.
//
// Slurm's accounting knows of GPUs only where AccountingStorageTRES lists gres/gpu; the
// models only where it lists gres/gpu:MODEL. Elsewhere, and for jobs that asked
// for shards of a GPU (gres/shard), a job looks as if it had none: it is in
// Counts.CPUOnly. GPUs of several models in one job have no Model.
//
// # Time
//
// Absolute times are counted from the submission of the first job, which Epoch
// keeps. Philly, Helios and sacct write local times without a zone. Options.Zone
// says which it is; UTC is assumed otherwise, which is wrong by an hour for jobs
// that were there when the clocks were changed, and right for all others. (Philly's
// machines stood on the American west coast, Helios' in China, where clocks are not changed.) sacct
// prints in the zone of the machine that it runs on. PAI's times have a hidden
// zero: in UTC+8 the time of day and the day of the week are right, the date is not.
//
// # Made-up jobs
//
// LikeGavel and LikePhilly hold what the papers publish; a Recipe can be changed
// or written from scratch. Tenants swing over the day, bursts come on top:
//
//	r := trace.LikePhilly(1, 60)
//	r.Length = 14 * cluster.Day
//	r.Tenants = trace.Shifts(20, 0.8)
//	jobs, err := trace.Generate(r)
package trace
