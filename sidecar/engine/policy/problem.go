package policy

// Model is a GPU model of the problem.
type Model struct {
	Name  string
	GPUs  float64 // of it; > 0
	Price float64 // of a GPU and hour; used by the cost policies only
	// Together is how many of the GPUs gangs with an Apart can have on as few nodes as
	// they need, at a time; nil = all.
	Together *float64
}

// together gives Together as a limit of a program, which divides by it: where it is 0, a thousandth of a GPU.
func (m *Model) together() float64 {
	if m.Together == nil {
		return m.GPUs
	}
	return max(*m.Together, 1e-3)
}

// Job is a row of a problem: a job, with what it does on each model.
type Job struct {
	ID     int64   // rows are sorted by it: it breaks ties
	Gang   int     // GPUs that it takes at once (Gavel's scale_factor), > 0
	Weight float64 // > 0
	// Speed is the throughput of the whole gang on each model, in steps a second;
	// 0 = it cannot run there.
	Speed []float64
	// Apart is the same where the gang is spread over more nodes than it needs;
	// nil = as fast as Speed.
	Apart []float64

	Steps        float64 // that remain
	Elapsed      float64 // seconds since it came (Gavel's t_m)
	ElapsedAlone float64 // seconds since then with 1/n of the cluster to itself (t_m^isolated)
	Within       float64 // deadline for Steps, in seconds (its SLO); 0 = none
	Entity       int     // index into Entities
	User         string  // of the entity, for Nested; "" = none
}

// Pair is two jobs of the same gang size on the same GPUs (space sharing).
type Pair struct {
	A, B int // indices into Jobs, A < B
	// SpeedA and SpeedB are the throughputs of the two on each model, as in Job;
	// 0 = the pair cannot run there.
	SpeedA, SpeedB []float64
}

// Entity is a group of jobs that share what is due to it (Gavel §4.3).
type Entity struct {
	Name   string
	Weight float64 // > 0
	FIFO   bool    // the first job by ID first; else fair by weight
}

// Problem is what Gavel's policies divide: the time of jobs over models. Models and
// jobs keep their order throughout.
type Problem struct {
	Models   []Model
	Jobs     []Job
	Pairs    []Pair
	Entities []Entity // for Nested, and for Gavel's hierarchical policies
}

// Shares is an answer to a Problem: Time[m][j] is the part of the time, in [0, 1],
// that job m runs by itself on model j with its whole gang. PairTime[p][j] is that of a
// pair, Apart[m][j] that of a gang spread over nodes; each is nil where there is none. Rows
// may be shared: they are not to be written.
// For each job all its parts add up to 1 at most; for each model, times gang, to its
// GPUs at most.
type Shares struct {
	Time     [][]float64
	Apart    [][]float64
	PairTime [][]float64
	// Objective is the policy's own figure of merit.
	Objective float64
	// Late are the jobs, by ID, whose Within cannot be kept: it is left out.
	Late []int64
	// Why is empty where the policy's program was solved; else Time is the fixed share
	// of everybody, and Why says why.
	Why string
}

// Tenant is a row of a market: what GPUs are worth to a tenant.
type Tenant struct {
	Name   string
	Weight float64 // > 0
	Kind           // of its jobs
	Others []Kind  // further kinds of its jobs
}

// Kind is jobs of a tenant that are alike.
type Kind struct {
	User string // of all of them; "" = several users
	// Speedup is the throughput of one GPU of each model, relative to one that is the same for
	// all kinds; 0 = of no use to it.
	Speedup []float64
	// Demand is how many GPUs its jobs can use at once; +Inf = any number.
	Demand float64
}

// Market is what OEF's programs and Gandiva_fair's tickets divide: the GPUs of each
// model between tenants.
type Market struct {
	Models  []Model
	Tenants []Tenant
}

// Parts is an answer to a Market: GPUs[l][j] is how many GPUs of model j tenant l is due, and
// Kinds[l][i][j] how many of them are for its kind i.
type Parts struct {
	GPUs  [][]float64
	Kinds [][][]float64
	// Objective is the sum of all tenants' throughputs.
	Objective float64
	// Bound is an upper bound of the largest sum, where it is not proven that Objective is the
	// largest; else 0.
	Bound float64
	// Gap is how far the largest sum may be above Objective, relatively, as multipliers of the program that OEFCooperative
	// solved prove; 0 for other policies. Without binding demands it is at most 1e-9, unless numbers of the program are nearly alike.
	Gap float64
	// Why is as in Shares.
	Why string
}
