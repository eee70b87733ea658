package cluster

import (
	"cmp"
	"strconv"
)

// Slices are the settings of jobs that take turns on a GPU.
type Slices struct {
	Quantum Span        `json:"quantum"`          // length of a turn
	Memory  []GPUMemory `json:"memory,omitempty"` // of GPUs, where it is not known from counters; sorted by model
	Pairs   bool        `json:"pairs,omitempty"`  // two jobs run at the same time where neither is slower than in turns
	Jobs    int         `json:"jobs,omitempty"`   // at most so many on a GPU; 0 = two
}

// Most gives the number of jobs that take turns on a GPU at most.
func (s *Slices) Most() int { return max(s.Jobs, 2) }

// Part gives the part of a GPU that each of them has.
func (s *Slices) Part() MicroGPU { return WholeGPU / MicroGPU(s.Most()) }

// Shards gives the shards that each of them has of a GPU of a node; 0 = these cannot be divided among them.
func (s *Slices) Shards(n *Node) int {
	if n.MPS || n.Shards%s.Most() != 0 {
		return 0
	}
	return n.Shards / s.Most()
}

// Slice is the part of a GPU that a job has instead of a whole one. Slurm gives each of two jobs half of the shards of a GPU, or each of three a
// third, and fairlease suspends all but one of them in turn: each uses the whole GPU for its part of the time.
type Slice struct {
	Ask     string  `json:"ask"`            // its user's own words for the GPU, which are restored when it has its next lease, or is released
	Request Request `json:"request"`        // its user's own request
	Shards  int     `json:"shards"`         // that it asks for instead
	Runs    bool    `json:"runs,omitempty"` // it is its turn
	Held    bool    `json:"held,omitempty"` // Slurm holds it, since it was requeued while it was suspended
	At      Instant `json:"at,omitzero"`    // when its turn began or ended last
	// Ran is for how long it had run when its turn ended, or was seen last since; 0 = it is its turn, or it had none yet. Took is for how long it ran meanwhile, in the turn of
	// its partner. Paused is true if it was suspended since its turn ended. Taken counts how often it was seen to have run after that: its owner resumes
	// it. Told is true once an event said so.
	Ran    Span `json:"ran,omitempty"`
	Took   Span `json:"took,omitempty"`
	Paused bool `json:"paused,omitempty"`
	Taken  int  `json:"taken,omitempty"`
	Told   bool `json:"told,omitempty"`
	// Over is by how much its last turn was too long, since it ended with a round: its next turn is shorter by that.
	Over Span `json:"over,omitempty"`
	// Turn is its turn on its GPU, where turns are not equal.
	Turn Turn `json:"turn,omitzero"`
	// Pair is how it does beside its partner; nil = not known. Replace it, never modify it.
	Pair *Pair `json:"pair,omitempty"`
}

// Turn is the turn of a job on a GPU that it shares; zero = that of equal turns: a quantum, and the part that its shards are.
type Turn struct {
	Part  MicroGPU `json:"part"`  // of the GPU, as it counts in accounts
	Lasts Span     `json:"lasts"` // from its beginning to its end
	Away  Span     `json:"away"`  // from its end to the beginning of the next one
}

// Time gives the part of the time of a GPU with so many jobs that is the job's.
func (t Turn) Time(jobs int) MicroGPU {
	if t.Part == 0 {
		return WholeGPU / MicroGPU(jobs)
	}
	return MicroGPU(MulDiv(int64(WholeGPU), int64(t.Lasts), int64(t.Lasts+t.Away)))
}

// Lasts gives the length of a job's present or next turn.
func (s *Slices) Lasts(of *Slice) Span { return cmp.Or(of.Turn.Lasts, s.Quantum) - of.Over }

// Has gives the holdings of a job as they count in accounts: where turns are not equal, with its part of its GPU in place of that of its shards. Of a
// job that takes no turns, s is nil.
func (s *Slice) Has(holds []Holding) []Holding {
	if s == nil || s.Turn.Part == 0 || len(holds) != 1 || holds[0].Size.IsWhole() {
		return holds
	}
	out := holds[0]
	out.Size = Size{1, s.Turn.Part}
	return []Holding{out}
}

// Pair is how fast a job is beside its partner on a GPU, and while it has the GPU to itself, by its progress reports.
type Pair struct {
	With   JobKey  `json:"with"`             // its partner
	Beside bool    `json:"beside,omitempty"` // they run at the same time, and take no turns
	Since  Instant `json:"since,omitzero"`   // since when they do, or take turns
	Next   Instant `json:"next,omitzero"`    // they take turns at least until then
	Alone  float64 `json:"alone,omitempty"`  // steps a second with the GPU to itself; 0 = not known
	Both   float64 `json:"both,omitempty"`   // steps a second beside its partner; 0 = not known
	Good   int     `json:"good,omitempty"`   // the outcome that an event told last: 1 = they run at the same time, -1 = they do not, 0 = none yet

	Steps     float64 `json:"steps,omitempty"`     // of the report from which the next rate is reckoned
	At        Instant `json:"at,omitzero"`         // of that report; 0 = there is none
	Suspended Span    `json:"suspended,omitempty"` // of its job until that report
}

// mostTaken is how often a job may be seen running in the turns of its partner: the daemon may have stood still, or fairlease thaw run.
const mostTaken = 3

// ResumedByOwner reports whether its owner resumes it in the turns of its partner.
func (s *Slice) ResumedByOwner() bool { return s != nil && s.Taken >= mostTaken }

// sliceMemory is the most of a GPU's memory, in percent, that the jobs that take turns there may need together. Each may need an equal part of that:
// Slurm chooses the GPU, so any of them must fit together.
const sliceMemory = 90

// TakesTurns reports whether a job may take turns on a GPU where its memory fits, by what it asks for and how its last start ended. A job that was requeued at
// its start may: nobody ends turns by requeues of a job, since whole terms cost its partner stops.
func TakesTurns(j *Job, r *Record) bool {
	return j.Hints != nil && j.Hints.Share && j.Ask != "" && j.Batch && j.Het == 0 && (r.Failed == 0 || r.SlurmSaid == RequeuedAtStart)
}

// Fits reports whether a job is known to need so little memory of a GPU of a model that it may take turns there: by its user's word, or by what jobs of
// its type used, if that is more. The sizes of GPUs are known from counters, or from the settings.
func (s *Slices) Fits(j *Job, model string, sizes []GPUMemory, used []MemoryUse) bool {
	size, need := int64(0), int64(0)
	for _, list := range [][]GPUMemory{sizes, s.Memory} {
		for _, m := range list {
			if m.Model == model {
				size = m.Bytes
			}
		}
	}
	if kind, ok := TypeOf(j); ok {
		for _, u := range MemoryOf(used, kind) {
			if u.Model == model {
				need = u.Bytes
			}
		}
	}
	for _, m := range j.Hints.Memory {
		if m.Model == model {
			need = max(need, m.Bytes)
		}
	}
	return need > 0 && need <= size/100*int64(sliceMemory/s.Most())
}

// Words gives the request for its part, in Slurm's words.
func (s *Slice) Words() string { return ShardWords + strconv.Itoa(s.Shards) }

// ShardWords begin the request for shards of a GPU, in Slurm's words.
const ShardWords = "gres/shard:"

// SliceOf gives the request of a job that takes a part of a GPU instead.
func SliceOf(r Request, shards int, part MicroGPU) Request {
	r.Size, r.Shards = Size{1, part}, shards
	r.Nodes, r.MaxNodes, r.PerNode = 1, 1, 0
	return r
}

// LeastTogether is how much two jobs do at the same time on a GPU at least, as a multiple of one alone, to be put together there by what is known of their
// types.
const LeastTogether = 1.2

// Together gives how much two jobs do on a GPU, as a multiple of one alone, by the parts of their speeds that they keep beside each other: at the same time,
// or 1 in turns, if one is slower than that. In turns a has this part of the time.
func Together(a, b, part float64) float64 {
	if a < part || b < 1-part {
		return 1
	}
	return a + b
}
